"""Hinge loss, for binary classification with a margin."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals, live
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import in_
from sigma_layers.targets import alike, check_shape, check_signs, mean, signs


@define(eq=False)
class Hinge(CostLayer):
    """Minimise ``max(0, margin - sign * output)`` of binary outputs: ``Output(1) + Hinge()``.

    The sign is 1 for targets of 1, and -1 for targets of 0 or -1; the mean is over all elements. With 1 as the margin
    it is scikit-learn's ``hinge_loss``, and with ``power`` 2 the squared hinge. ``sign * output`` as a distance, with
    target -1, gives it as ``torch.nn.functional.hinge_embedding_loss``. Predictions are ``sigmoid(output)``: above one
    half for yes, and no calibrated probabilities. The margin can be set live.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a trailing axis of 1 -> scalar.

    Cortes and Vapnik, Support-Vector Networks, 1995.

    Args:
        margin: Signed output from which on there is no loss.
        power: Power of each term: 1 or 2.
    """

    decides: ClassVar[bool] = True

    margin: float = live(1.0, low=0.0)
    power: int = field(default=1, validator=in_((1, 2)))

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        sign = signs(alike("hinge", self.targets, targets, output))
        terms = f.relu(context.live["margin"] - sign * output)
        return mean(terms if self.power == 1 else f.square(terms), weights)

    def prediction(self, output: Node) -> Node:
        """Return numbers in (0, 1) that are above one half for yes, ``sigmoid(output)``."""
        return f.sigmoid(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape, or are not 1, 0 or -1."""
        check_shape(self.targets, targets, output.shape)
        check_signs(self.targets, targets)
