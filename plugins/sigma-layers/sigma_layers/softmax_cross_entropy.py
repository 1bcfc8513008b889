"""Softmax cross-entropy for classification, with class weights."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Totals
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import must, optional
from sigma_layers.targets import first_bad, mean, rows, warn_of_a_second


def _are_weights(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(w, int | float) and 0 <= w < inf for w in value)


@define(eq=False)
class SoftmaxCrossEntropy(CostLayer):
    """Minimise ``-log softmax(output)[label]``: ``Output(10) + SoftmaxCrossEntropy()``.

    Targets are class indices, ``(batch, ...)`` or ``(batch, ..., 1)``, or class probabilities such as one-hot rows,
    ``(batch, ..., classes)``. Numerically stable for logits of any size. Matches
    ``torch.nn.functional.cross_entropy``, except that classes are the last axis and that a batch whose labels all have
    weight 0 has loss 0, where PyTorch gives NaN. Predictions are probabilities.

    Shapes: output ``(batch, ..., classes)`` and targets as above -> scalar, or Totals if labels have weights.

    Args:
        class_weights: Factors on the terms, one for each class. As in PyTorch, the sum is divided by the weights of the
            labels for indices, and by the number of rows for probabilities.
    """

    chooses: ClassVar[bool] = True

    class_weights: Sequence[float] | None = field(
        default=None, validator=optional(must(_are_weights, "numbers of at least 0", SigmaNetworkError))
    )

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if rows have weights; raises SigmaNetworkError if shapes do not fit."""
        warn_of_a_second("softmax", context.address, output)
        if targets.shape == (*output.shape[:-1], 1) and output.shape[-1] > 1:
            targets = f.reshape(targets, output.shape[:-1])
        if targets.shape == output.shape[:-1]:
            labels = targets if targets.dtype in ("int32", "int64") else f.cast(targets, "int32")
            return self._of_labels(output, labels, weights)
        if targets.shape == output.shape:
            return self._of_probabilities(output, targets, weights)
        flat = len(targets.shape) == 1 or targets.shape[1:] == output.shape[-1:]
        remedy = "Give one label for each row."
        if flat and len(output.shape) > 2:
            remedy = "Put Flatten() before the output."
        raise SigmaNetworkError(
            f"softmax_cross_entropy({output.shape[1:]}, {targets.shape[1:]}): rows of section {self.targets!r} must "
            f"have shape {output.shape[1:-1]} (labels) or {output.shape[1:]} (probabilities). {remedy}"
        )

    def _of_labels(self, output: Node, labels: Node, weights: Node | None) -> Node | Totals:
        losses, classes = f.softmax_cross_entropy(output, labels), self._class_weights(output)
        if classes is None:
            return mean(losses, weights)
        each = f.take(classes, labels)
        each = each if weights is None else each * rows(weights, each)
        return Totals(f.sum(losses * each), f.sum(each))

    def _of_probabilities(self, output: Node, targets: Node, weights: Node | None) -> Node | Totals:
        terms = f.log_softmax(output) * (targets if targets.dtype == output.dtype else f.cast(targets, output.dtype))
        classes = self._class_weights(output)
        terms = terms if classes is None else terms * classes
        if weights is not None:
            return mean(-f.sum(terms, axis=-1), weights)
        return -f.sum(terms) / float(prod(output.shape[:-1]))

    def _class_weights(self, output: Node) -> Node | None:
        """Return the weights as a node of constants, because an array can enter a graph only as an input."""
        if self.class_weights is None:
            return None
        if len(self.class_weights) != output.shape[-1]:
            raise SigmaNetworkError(
                f"softmax_cross_entropy: {len(self.class_weights)} class_weights for {output.shape[-1]} classes."
            )
        return f.stack(*(f.constant(float(weight), output.dtype) for weight in self.class_weights))

    def prediction(self, output: Node) -> Node:
        """Return the probabilities of the classes."""
        return f.softmax(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError for a label that is not a class index, or a row that is not a distribution."""
        column = targets.shape[1:] == (*output.shape[:-1], 1) and output.shape[-1] > 1
        if column or targets.shape[1:] == output.shape[:-1]:
            self._check_labels(targets, output.shape[-1])
        elif targets.shape[1:] == output.shape:
            self._check_probabilities(targets)
        else:
            raise SigmaDataError(
                f"data: section {self.targets!r} has rows of shape {targets.shape[1:]}; expected {output.shape[:-1]} "
                f"(labels) or {output.shape} (probabilities)."
            )

    def _check_labels(self, labels: np.ndarray, classes: int) -> None:
        wrong = ~((labels >= 0) & (labels < classes) & (labels == np.floor(labels)))
        if wrong.any():
            place = first_bad(wrong)
            fractions = labels.dtype.kind == "f" and (labels != np.floor(labels)).any()
            raise SigmaDataError(
                f"data: section {self.targets!r}, row {place[0]}: label {labels[place]} is not one of {classes} "
                f"classes. Labels are integers from 0 to {classes - 1}; Output({classes}) says how many there are, "
                f"and these go from {labels.min()} to {labels.max()}."
                f"{' For numbers instead of classes, use SquaredDifference().' if fractions else ''}"
            )

    def _check_probabilities(self, rows: np.ndarray) -> None:
        wrong = ~((rows >= 0).all(-1) & (np.abs(rows.sum(-1) - 1) < 1e-3))
        if wrong.any():
            place = first_bad(wrong)
            raise SigmaDataError(
                f"data: section {self.targets!r}, row {place[0]}: {rows[place].tolist()} are not probabilities, "
                "which are at least 0 and add up to 1. For several labels per sample, use BinaryCrossEntropy."
            )
