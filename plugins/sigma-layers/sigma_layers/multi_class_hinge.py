"""Hinge loss over classes, for classification with a margin."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals, live
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import in_
from sigma_layers.labels import are_labels, as_labels, check_labels
from sigma_layers.targets import mean


@define(eq=False)
class MultiClassHinge(CostLayer):
    """Minimise ``max(0, margin - output[label] + output[other])``: ``Output(10) + MultiClassHinge()``.

    The mean is over the rows; of each, it is the sum over all other classes divided by the number of classes, as in
    ``torch.nn.functional.multi_margin_loss`` (Weston and Watkins), or the largest term (Crammer and Singer), which is
    scikit-learn's ``hinge_loss``. Predictions are ``softmax(output)``, which are no calibrated probabilities. The
    margin can be set live.

    Shapes: output ``(batch, ..., classes)`` and labels ``(batch, ...)`` or ``(batch, ..., 1)`` -> scalar.

    Weston and Watkins, Support Vector Machines for Multi-Class Pattern Recognition, 1999; Crammer and Singer, On the
    Algorithmic Implementation of Multiclass Kernel-based Vector Machines, 2001.

    Args:
        margin: Lead of the label's score over others from which on there is no loss.
        power: Power of each term: 1 or 2.
        over: Which other classes count: ``all`` of them, or only the ``worst``.
    """

    chooses: ClassVar[bool] = True

    margin: float = live(1.0, low=0.0)
    power: int = field(default=1, validator=in_((1, 2)))
    over: str = field(default="all", validator=in_(("all", "worst")))

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if samples have weights; raises SigmaNetworkError if the shapes differ."""
        if not are_labels(targets.shape, output.shape):
            raise SigmaNetworkError(
                f"multi_class_hinge({output.shape[1:]}, {targets.shape[1:]}): rows of section {self.targets!r} must be "
                f"labels of shape {output.shape[1:-1]}. For binary outputs, use hinge."
            )
        classes = output.shape[-1]
        own = f.one_hot(as_labels(targets, output), classes, "bool")
        score = f.sum(f.where(own, output, 0.0), axis=-1, keepdims=True)
        terms = f.where(own, 0.0, f.relu(context.live["margin"] - score + output))
        terms = terms if self.power == 1 else f.square(terms)
        return mean(f.max(terms, axis=-1) if self.over == "worst" else f.sum(terms, axis=-1) / float(classes), weights)

    def prediction(self, output: Node) -> Node:
        """Return numbers that add up to 1, the largest for the class of the largest output."""
        return f.softmax(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError if targets have another shape, or are not class indices."""
        if not are_labels(targets.shape[1:], output.shape):
            raise SigmaDataError(
                f"data: section {self.targets!r} has rows of shape {targets.shape[1:]}; expected {output.shape[:-1]}."
            )
        check_labels(self.targets, targets, output.shape[-1])
