"""Softmax cross-entropy for classification, with class weights, label smoothing and an ignored label."""

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
from sigma_kernel.settings import and_, finite, ge, le, must, optional, whole
from sigma_layers.labels import are_labels, as_labels, check_labels
from sigma_layers.targets import check_distributions, mean, rows, warn_of_a_second


def _are_weights(value: Any) -> bool:
    numbers = isinstance(value, list | tuple) and all(isinstance(w, int | float) and 0 <= w < inf for w in value)
    return numbers and any(value)


@define(eq=False)
class SoftmaxCrossEntropy(CostLayer):
    """Minimise ``-log softmax(output)[label]``: ``Output(10) + SoftmaxCrossEntropy()``.

    Targets are class indices, ``(batch, ...)`` or ``(batch, ..., 1)``, or class probabilities such as one-hot rows,
    ``(batch, ..., classes)``. Numerically stable for logits of any size. Matches
    ``torch.nn.functional.cross_entropy``, except that classes are the last axis. A batch whose labels all have weight
    0, or are ignored, has gradient 0, where PyTorch's is NaN; its loss is NaN in curves, and does not count in means.
    Predictions are probabilities.

    Shapes: output ``(batch, ..., classes)`` and targets as above -> scalar, or Totals if labels have weights.

    Szegedy, Vanhoucke, Ioffe, Shlens and Wojna, Rethinking the Inception Architecture for Computer Vision,
    arXiv:1512.00567 (label smoothing).

    Args:
        class_weights: Factors on the terms, one for each class. As in PyTorch, the sum is divided by the weights of the
            labels for indices, and by the number of rows for probabilities.
        label_smoothing: Share of the targets' probability that is spread evenly over all classes. A smoothed term has
            the weight of its class.
        ignore_index: Label that does not count, such as that of padding, -100 in PyTorch. The mean is over all others.
            Integers of a table that contain it are taken as class indices.
    """

    chooses: ClassVar[bool] = True

    class_weights: Sequence[float] | None = field(
        default=None,
        validator=optional(must(_are_weights, "numbers of at least 0, one of them above", SigmaNetworkError)),
    )
    label_smoothing: float = field(default=0.0, validator=and_(finite, ge(0), le(1)))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    @property
    def ignores(self) -> int | None:
        """Return the label that does not count."""
        return self.ignore_index

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if rows have weights; raises SigmaNetworkError if shapes do not fit."""
        warn_of_a_second("softmax", context.address, output)
        if are_labels(targets.shape, output.shape):
            return self._of_labels(output, as_labels(targets, output), weights)
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
        counted = None if self.ignore_index is None else f.not_equal(labels, self.ignore_index)
        targets = labels if counted is None else f.where(counted, labels, 0)
        losses, classes = f.softmax_cross_entropy(output, targets), self._class_weights(output)
        each = None if classes is None else f.take(classes, targets)
        weighted = losses if each is None else losses * each
        if self.label_smoothing:
            spread = f.log_softmax(output) if classes is None else f.log_softmax(output) * classes
            weighted = self._smooth_labels(weighted, -f.mean(spread, axis=-1))
        if each is None and counted is None:
            return mean(weighted, weights)
        each = f.ones(losses.shape, losses.dtype) if each is None else each
        if counted is not None:
            weighted, each = f.where(counted, weighted, 0.0), f.where(counted, each, 0.0)
        if weights is not None:
            weighted, each = weighted * rows(weights, each), each * rows(weights, each)
        return Totals(f.sum(weighted), f.sum(each))

    def _of_probabilities(self, output: Node, targets: Node, weights: Node | None) -> Node | Totals:
        if self.ignore_index is not None:
            raise SigmaNetworkError(
                f"softmax_cross_entropy: ignore_index = {self.ignore_index} is a label, and section {self.targets!r} "
                "holds probabilities. Give labels, or leave rows out by sample weights of 0."
            )
        targets = targets if targets.dtype == output.dtype else f.cast(targets, output.dtype)
        if self.label_smoothing:
            targets = self._smooth_labels(targets, 1.0 / output.shape[-1])
        terms, classes = f.log_softmax(output) * targets, self._class_weights(output)
        terms = terms if classes is None else terms * classes
        if weights is not None:
            return mean(-f.sum(terms, axis=-1), weights)
        return -f.sum(terms) / float(prod(output.shape[:-1]))

    def _smooth_labels(self, own: Node, even: Node | float) -> Node:
        return own * (1.0 - self.label_smoothing) + even * self.label_smoothing

    def _class_weights(self, output: Node) -> Node | None:
        """Return the weights as a node of constants, because an array can enter a graph only as an input."""
        if self.class_weights is None:
            return None
        if len(self.class_weights) != output.shape[-1]:
            raise SigmaNetworkError(
                f"softmax_cross_entropy: {len(self.class_weights)} class_weights for {output.shape[-1]} classes. "
                "Give one number for each class, in the order of their indices."
            )
        return f.stack(*(f.constant(float(weight), output.dtype) for weight in self.class_weights))

    def prediction(self, output: Node) -> Node:
        """Return the probabilities of the classes."""
        return f.softmax(output)

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError for a label that is not a class index, or a row that is not a distribution."""
        if are_labels(targets.shape[1:], output.shape):
            check_labels(self.targets, targets, output.shape[-1], self.ignore_index)
        elif targets.shape[1:] == output.shape:
            advice = " For several labels per sample, use BinaryCrossEntropy."
            check_distributions(self.targets, targets, advice)
        else:
            raise SigmaDataError(
                f"data: section {self.targets!r} has rows of shape {targets.shape[1:]}; expected {output.shape[:-1]} "
                f"(labels) or {output.shape} (probabilities)."
            )
