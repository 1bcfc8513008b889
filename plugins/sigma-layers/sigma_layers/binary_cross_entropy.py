"""Binary cross-entropy with logits, for binary and multi-label classification."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph import Node, Spec
from sigma_layers.targets import advise_words, alike, check_shape, first_bad, mean, warn_of_a_second


@define(eq=False)
class BinaryCrossEntropy(CostLayer):
    """Minimise the cross-entropy of independent binary outputs, given as logits: ``Output(1) + BinaryCrossEntropy()``.

    With ``t`` in ``[0, 1]``: the mean of ``-t log sigmoid(x) - (1 - t) log(1 - sigmoid(x))`` over all elements,
    computed as ``softplus(x) - t x``, which never overflows.  Matches
    ``torch.nn.functional.binary_cross_entropy_with_logits``.  Predictions are probabilities.

    Shapes: output ``(batch, ...)`` and targets of the same shape, or without a trailing axis of 1 -> scalar.
    """

    decides: ClassVar[bool] = True

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        warn_of_a_second("sigmoid", context.address, output)
        answers = alike("binary_cross_entropy", self.targets, targets, output)
        return mean(f.softplus(output) - answers * output, weights)

    def prediction(self, output: Node) -> Node:
        """Return the probabilities, ``sigmoid(output)``."""
        return f.sigmoid(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape, or are not between 0 and 1."""
        check_shape(self.targets, targets, output.shape)
        wrong = ~((targets >= 0) & (targets <= 1))
        if wrong.any():
            place = first_bad(wrong)
            raise SigmaDataError(
                f"data: section {self.targets!r}, row {place[0]}: {targets[place]} is not a probability. "
                f"Targets are 0 for no, 1 for yes, or between.{advise_words(targets, 2)}"
            )
