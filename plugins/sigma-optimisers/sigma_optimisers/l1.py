"""Gradient transform: L1 regularisation."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Objective, Transform, live
from sigma_kernel.graph import Node


@define(eq=False)
class L1(Transform):
    """Add the gradient of ``factor * sum(|p|)`` for every matching parameter: ``g + factor * sign(p)``.

    The reported loss does not include the penalty.  Tibshirani, Regression Shrinkage and Selection via the
    Lasso, 1996.

    Args:
        factor: Weight of the penalty, in units of loss / parameter.
    """

    factor: float = live(1e-4, low=0.0)

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        """Return the gradients with the penalty's gradient added."""
        factor, values = objective.setting(owner, "factor"), objective.parameters
        penalised = {a: g + factor * f.sign(values[a]) for a, g in self.select_gradients(gradients, objective).items()}
        return {**gradients, **penalised}
