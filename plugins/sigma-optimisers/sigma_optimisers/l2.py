"""Gradient transform: L2 regularisation."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from sigma_kernel.contracts import Objective, Transform, live
from sigma_kernel.graph import Node


@define(eq=False)
class L2(Transform):
    """Add the gradient of ``factor / 2 * sum(p^2)`` for every matching parameter: ``g + factor * p``.

    The reported loss does not include the penalty.  Hoerl and Kennard, Ridge Regression, 1970; same as
    ``weight_decay`` of ``torch.optim.SGD``, ``Adagrad``, ``Adam`` ...

    Args:
        factor: Weight of the penalty, in units of loss / parameter squared.
    """

    factor: float = live(1e-4, low=0.0)

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        """Return the gradients with the penalty's gradient added."""
        factor, values = objective.setting(owner, "factor"), objective.parameters
        penalised = {a: g + factor * values[a] for a, g in self.select_gradients(gradients, objective).items()}
        return {**gradients, **penalised}
