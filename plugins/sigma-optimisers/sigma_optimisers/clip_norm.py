"""Gradient transform: clip each gradient's norm."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import Objective, Transform, live
from sigma_kernel.graph import Node
from sigma_optimisers.clip_global_norm import limit_norm


@define(eq=False)
class ClipNorm(Transform):
    """Scale each matching gradient whose norm exceeds ``limit`` to that norm, separately.

    Same as ``torch.nn.utils.clip_grad_norm_`` on each parameter separately, with the Euclidean norm.

    Args:
        limit: Maximum norm of one parameter's gradient, in units of the gradient.
    """

    limit: float = live(1.0, low=0.0)

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        """Return the gradients, each clipped separately."""
        limit = objective.setting(owner, "limit")
        clipped = [
            limit_norm({address: gradient}, limit)
            for address, gradient in self.select_gradients(gradients, objective).items()
        ]
        return {**gradients, **{address: gradient for group in clipped for address, gradient in group.items()}}
