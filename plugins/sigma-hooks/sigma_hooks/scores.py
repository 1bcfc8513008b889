"""Scores of a network before they become probabilities: float32 holds no probability between 1 - 6e-8 and 1."""

from __future__ import annotations

from sigma_kernel import functions as f
from sigma_kernel.graph import Node

HIDDEN = -1e38  # below all scores, and far enough from infinity for a difference to be finite


def log_odds(prediction: Node) -> Node:
    """Return ``log(p / (1 - p))`` of probabilities p that a sigmoid or a softmax makes, else the predictions.

    Odds rank as probabilities do, those of a class against all others for a softmax, and do not saturate.
    """
    if prediction.op == "sigmoid":
        return prediction.inputs[0]
    return _against_others(prediction.inputs[0]) if _chooses(prediction) else prediction


def log_probabilities(prediction: Node) -> Node:
    """Return the logarithms of probabilities, finite however small those are if a softmax makes them."""
    return f.log_softmax(prediction.inputs[0]) if _chooses(prediction) else f.log(prediction)


def log_probability(prediction: Node, index: Node) -> Node:
    """Return the logarithm of the probability of one class at each place, as :func:`log_probabilities` does."""
    if _chooses(prediction):
        return -f.softmax_cross_entropy(prediction.inputs[0], index)
    own = f.one_hot(index, prediction.shape[-1], "bool")
    return f.log(f.sum(f.where(own, prediction, 0.0), axis=-1))


def _chooses(prediction: Node) -> bool:
    """Return whether a softmax makes the predictions, along the last axis of several classes."""
    last = len(prediction.shape) - 1
    return prediction.op == "softmax" and prediction.attrs["axis"] == last and prediction.shape[last] > 1


def _against_others(x: Node) -> Node:
    """Return logits minus the logarithm of the sum of the exponentials of all others.

    The sum of the others is never that of all minus one: the greatest is left out, or counts as 1.
    """
    greatest = f.one_hot(f.argmax(x, axis=-1), x.shape[-1], "bool")
    rest = f.where(greatest, HIDDEN, x)
    first, second = f.max(x, axis=-1, keepdims=True), f.max(rest, axis=-1, keepdims=True)
    without_first = second + f.log(f.sum(f.exp(rest - second), axis=-1, keepdims=True))
    shares = f.exp(rest - first)
    return x - f.where(greatest, without_first, first + f.log1p(f.sum(shares, axis=-1, keepdims=True) - shares))
