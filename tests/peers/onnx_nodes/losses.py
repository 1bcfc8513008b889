"""ONNX's losses and normalisations, in functions of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from sigma_kernel import functions as f
from tests.peers.onnx_nodes.reading import OutOfScopeError, Table

LOSSES = Table()
row = LOSSES.row


# -- losses ------------------------------------------------------------------------------------------------------------
def _classes_last(x: Any) -> Any:
    return f.permute(x, [0, *range(2, len(x.shape)), 1])


def _reduced(each: Any, weights: Any, reduction: str) -> Any:
    if reduction == "none":
        return each
    return f.sum(each) if reduction == "sum" else f.sum(each) / f.sum(weights)


def _weights(labels: Any, weight: Any, ignore_index: int | None, dtype: str) -> tuple[Any, Any]:
    """Return the weight of each label, and the labels with 0 in place of those that are ignored."""
    ignored = f.zeros(labels.shape, "bool") if ignore_index is None else f.equal(labels, ignore_index)
    kept = f.where(ignored, 0, labels)
    each = f.ones(labels.shape, dtype) if weight is None else f.take(weight, kept)
    return f.where(ignored, 0.0, each), kept


@row("NegativeLogLikelihoodLoss")
def _nll(x: Any, labels: Any, weight: Any = None, reduction: str = "mean", ignore_index: int | None = None) -> Any:
    rows, dtype = _classes_last(x), str(x.dtype)
    weights, kept = _weights(labels, weight, ignore_index, dtype)
    chosen = f.sum(f.one_hot(kept, rows.shape[-1], dtype) * rows, -1)
    return _reduced(-chosen * weights, weights, reduction)


@row("SoftmaxCrossEntropyLoss")
def _cross_entropy(
    x: Any, labels: Any, weight: Any = None, reduction: str = "mean", ignore_index: int | None = None
) -> Any:
    rows = _classes_last(x)
    weights, kept = _weights(labels, weight, ignore_index, str(x.dtype))
    each = f.softmax_cross_entropy(rows, kept) * weights
    return _reduced(each, weights, reduction), f.log_softmax(x, 1)


# -- normalisations ----------------------------------------------------------------------------------------------------
def _standard(x: Any, axes: Sequence[int], epsilon: float) -> tuple[Any, Any, Any]:
    mean = f.mean(x, axes, keepdims=True)
    factor = 1.0 / f.sqrt(f.variance(x, axes, keepdims=True) + epsilon)
    return (x - mean) * factor, mean, factor


@row("LayerNormalization")
def _layer_norm(
    x: Any, scale: Any, shift: Any = None, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    at = axis % len(x.shape)
    rows = f.reshape(x, (*x.shape[:at], prod(x.shape[at:])))
    flat = [f.reshape(y, (-1,)) for y in (scale, shift if shift is not None else f.zeros(scale.shape))]
    _, mean, factor = _standard(x, range(at, len(x.shape)), epsilon)
    return f.reshape(f.layer_norm(rows, *flat, epsilon=epsilon), x.shape), mean, factor


@row("LpNormalization")
def _lp_norm(x: Any, axis: int = -1, p: int = 2) -> Any:
    size = f.norm(x, axis, keepdims=True) if p == 2 else f.sum(f.abs(x), axis, keepdims=True)
    return f.where(f.equal(size, 0.0), 0.0, x / f.where(f.equal(size, 0.0), 1.0, size))


@row("MeanVarianceNormalization")
def _mean_variance(x: Any, axes: Sequence[int] = (0, 2, 3)) -> Any:
    return (x - f.mean(x, axes, keepdims=True)) / (f.sqrt(f.variance(x, axes, keepdims=True)) + 1e-9)


@row("Dropout", static=(1, 2))
def _dropout(x: Any, ratio: Any = 0.5, training: Any = None, seed: int = 0) -> Any:
    if training is not None and bool(np.asarray(training)) and float(np.asarray(ratio)):
        raise OutOfScopeError("random numbers", "Dropout")
    return x, f.ones(x.shape, "bool")
