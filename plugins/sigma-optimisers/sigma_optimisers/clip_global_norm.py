"""Gradient transform: clip the global norm of all gradients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Transform, live
from sigma_kernel.graph import Node

EPSILON = 1e-6  # as in PyTorch; avoids division by a norm of 0


@define(eq=False)
class ClipGlobalNorm(Transform):
    """Scale all matching gradients by one factor if their global norm exceeds ``limit``.

    ``g <- g * min(1, limit / (norm + 1e-6))``, the Euclidean norm being over all elements of all gradients.

    Pascanu, Mikolov and Bengio, On the Difficulty of Training Recurrent Neural Networks, 2013.  Same as
    ``torch.nn.utils.clip_grad_norm_``.

    Args:
        limit: Maximum global norm, in units of the gradient.
    """

    limit: float = live(1.0, low=0.0)

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        """Return the gradients, scaled by one factor."""
        return {
            **gradients,
            **limit_norm(self.select_gradients(gradients, objective), objective.setting(owner, "limit")),
        }


def limit_norm(gradients: Mapping[str, Node], limit: Node) -> dict[str, Node]:
    """Return gradients scaled to a global norm of at most ``limit``, a scalar."""
    if not gradients:
        return {}
    norm = f.sqrt(reduce(add, [f.sum(gradient * gradient) for gradient in gradients.values()]))
    factor = f.minimum(limit / (norm + EPSILON), 1.0)
    return {address: gradient * factor for address, gradient in gradients.items()}
