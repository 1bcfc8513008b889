"""Gradient transform: clip each element to a range."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Transform, live
from sigma_kernel.graph import Node


@define(eq=False)
class ClipValue(Transform):
    """Clip every element of the matching gradients to ``[-limit, limit]``.

    Same as ``torch.nn.utils.clip_grad_value_``.

    Args:
        limit: Maximum absolute value of an element, in units of the gradient.
    """

    limit: float = live(1.0, low=0.0)

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        """Return the gradients with their elements clipped."""
        limit = objective.setting(owner, "limit")
        clipped = {
            a: f.maximum(f.minimum(g, limit), -limit) for a, g in self.select_gradients(gradients, objective).items()
        }
        return {**gradients, **clipped}
