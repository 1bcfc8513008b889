"""Adaptive softmax, for very many classes: frequent ones in a head, rare ones in clusters of narrow layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import Context, CostLayer, Parameter, Totals
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import and_, finite, ge, must, optional, whole
from sigma_layers.labels import are_labels, as_labels, check_labels
from sigma_layers.settings import count, flag, is_count
from sigma_layers.targets import mean, rows


def _are_cutoffs(value: Any) -> bool:
    ends = isinstance(value, list | tuple) and len(value) > 0 and all(map(is_count, value))
    return ends and all(low < high for low, high in pairwise(value))


@define(eq=False)
class AdaptiveSoftmax(CostLayer):
    """Minimise ``-log P(label)`` over very many classes: ``LSTM(256) + AdaptiveSoftmax(20000, [2000, 8000])``.

    Classes are in the order of their frequency, the most frequent first, as words of the encoder ``tokens`` are. The
    head is a softmax over the first ``cutoffs[0]`` classes and over clusters; a tail is a softmax over the classes of
    one cluster, from ``cutoffs[i]`` up to the next cutoff, behind a projection that is narrower the rarer they are:
    ``P(label) = head[label]``, or ``head[cluster] * tail[label]``. It replaces the output layer, whose parameters are
    most of those of a language model. A row computes all tails; what is saved is their width. Matches
    ``torch.nn.AdaptiveLogSoftmaxWithLoss``, whose weights are transposed. Predictions are the probabilities of all
    classes.

    Shapes: output ``(batch, ..., features)``, targets ``(batch, ...)`` or ``(batch, ..., 1)`` -> scalar, or Totals if
    rows have weights or a label is ignored; predictions ``(batch, ..., classes)``. Parameters: ``head.weights``
    ``(features, cutoffs[0] + clusters)``, ``head.biases``, and for each cluster ``tail-0.projection`` ``(features,
    width)`` and ``tail-0.weights`` ``(width, classes of it)``, where the width is ``features // divisor ** (i + 1)``.

    Grave, Joulin, Cisse, Grangier and Jegou, Efficient softmax approximation for GPUs, arXiv:1609.04309.

    Args:
        classes: Number of classes.
        cutoffs: First class of each cluster, rising; those before the first cutoff are in the head.
        divisor: How many times narrower each tail is than the one before, and the first one than the features.
        bias: Whether the head adds biases.
        ignore_index: Label that does not count, such as that of padding. The mean is over all others.
    """

    chooses: ClassVar[bool] = True

    classes: int = field(validator=count)
    cutoffs: Sequence[int] = field(
        validator=must(_are_cutoffs, "whole numbers of at least 1, each above the one before", SigmaNetworkError)
    )
    divisor: float = field(default=4.0, validator=and_(finite, ge(1)))
    bias: bool = field(default=False, validator=flag)
    ignore_index: int | None = field(default=None, validator=optional(whole))

    @cutoffs.validator
    def _(self, _: Any, value: Sequence[int]) -> None:
        if value[-1] >= self.classes:
            raise SigmaNetworkError(
                f"AdaptiveSoftmax.cutoffs: {value[-1]} is not one of {self.classes} classes. The last cluster ends "
                f"with the last class: give cutoffs below {self.classes}."
            )

    @property
    def ignores(self) -> int | None:
        """Return the label that does not count."""
        return self.ignore_index

    @property
    def clusters(self) -> tuple[tuple[int, int], ...]:
        """Return the first class of each cluster, and the one after its last."""
        return tuple(pairwise((*self.cutoffs, self.classes)))

    def parameters(self, *inputs: Spec) -> dict[str, Parameter]:
        """Return those of the head and of the tails; raises SigmaNetworkError if a tail would have no width."""
        features, head = inputs[0].shape[-1] if inputs[0].shape else 0, self.cutoffs[0] + len(self.clusters)
        declared = {"head.weights": Parameter((features, head), "glorot_uniform")}
        if self.bias:
            declared["head.biases"] = Parameter((head,))
        for i, (low, high) in enumerate(self.clusters):
            width = int(features // self.divisor ** (i + 1))
            if not width:
                raise SigmaNetworkError(
                    f"adaptive_softmax({inputs[0].shape}): {features} features, divided {i + 1} times by "
                    f"{self.divisor:g}, leave no width for the classes from {low}. Give it more features, a smaller "
                    "divisor, or fewer cutoffs."
                )
            declared[f"tail-{i}.projection"] = Parameter((features, width), "glorot_uniform")
            declared[f"tail-{i}.weights"] = Parameter((width, high - low), "glorot_uniform")
        return declared

    def forward(self, context: Context, output: Node, targets: Node, weights: Node | None = None) -> Node | Totals:
        """Return the mean, or Totals if rows have weights; raises SigmaNetworkError if shapes do not fit."""
        if not are_labels(targets.shape, output.shape):
            raise SigmaNetworkError(
                f"adaptive_softmax({output.shape[1:]}, {targets.shape[1:]}): rows of section {self.targets!r} must be "
                f"labels of shape {output.shape[1:-1]}. Give one label for each row of features."
            )
        labels = as_labels(targets, output)
        if self.ignore_index is None:
            return mean(self._losses(context, output, labels), weights)
        counted = f.not_equal(labels, self.ignore_index)
        losses = self._losses(context, output, f.where(counted, labels, 0))
        each = f.cast(counted, losses.dtype)
        each = each if weights is None else each * rows(weights, each)
        return Totals(f.sum(f.where(counted, losses * each, 0.0)), f.sum(each))

    def _losses(self, context: Context, output: Node, labels: Node) -> Node:
        """Return ``-log P(label)`` of each label."""
        tails, places = f.zeros(labels.shape, output.dtype), labels
        for i, (low, high) in enumerate(self.clusters):
            inside = f.logical_and(f.greater_equal(labels, low), f.less(labels, high))
            own = f.clip(labels - low, 0, high - low - 1)
            tails = tails + f.where(inside, f.softmax_cross_entropy(self._tail(context, output, i), own), 0.0)
            places = f.where(inside, self.cutoffs[0] + i, places)
        return f.softmax_cross_entropy(self._head(context, output), places) + tails

    def _head(self, context: Context, output: Node) -> Node:
        logits = output @ context.parameters["head.weights"]
        return logits + context.parameters["head.biases"] if self.bias else logits

    def _tail(self, context: Context, output: Node, cluster: int) -> Node:
        projected = output @ context.parameters[f"tail-{cluster}.projection"]
        return projected @ context.parameters[f"tail-{cluster}.weights"]

    def predict(self, context: Context, output: Node) -> Node:
        """Return the probabilities of all classes: the softmax of their logarithms, which metrics read."""
        head = f.log_softmax(self._head(context, output))
        frequent, *shares = f.split(head, (self.cutoffs[0], *(1 for _ in self.clusters)))
        tails = (share + f.log_softmax(self._tail(context, output, i)) for i, share in enumerate(shares))
        return f.softmax(f.concat(frequent, *tails))

    def output_size(self, targets: Spec, classes: int = 0) -> None:
        """Raise SigmaNetworkError: an output of as many units as classes is what this cost replaces."""
        raise SigmaNetworkError(
            "adaptive_softmax: is an output layer itself, and takes features. Leave out the Output() before it."
        )

    def check(self, targets: np.ndarray, output: Spec) -> None:
        """Raise SigmaDataError for a label that is not a class index."""
        if not are_labels(targets.shape[1:], output.shape):
            raise SigmaDataError(
                f"data: section {self.targets!r} has rows of shape {targets.shape[1:]}; expected {output.shape[:-1]} "
                "(labels)."
            )
        check_labels(self.targets, targets, self.classes, self.ignore_index, f"AdaptiveSoftmax({self.classes}, ...)")
