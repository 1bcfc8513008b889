"""Checks and conversion of targets, for cost layers."""

from __future__ import annotations

import warnings
from math import prod

import numpy as np

from sigma_kernel import functions as f
from sigma_kernel.contracts import Totals
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Node


def alike(cost: str, section: str, targets: Node, output: Node) -> Node:
    """Return targets in the dtype and shape of the output; they may lack a trailing axis of 1.

    Raises SigmaNetworkError if the shapes differ otherwise.
    """
    if not lines_up(targets.shape, output.shape):
        classes = " For classes, use softmax_cross_entropy." if targets.shape == output.shape[:-1] else ""
        raise SigmaNetworkError(
            f"{cost}({output.shape[1:]}, {targets.shape[1:]}): section {section!r} must have the output's shape. "
            f"Change the number of units, or put a Reshape before the cost.{classes}"
        )
    same = targets if targets.shape == output.shape else f.reshape(targets, output.shape)
    return same if same.dtype == output.dtype else f.cast(same, output.dtype)


def lines_up(targets: tuple[int, ...], output: tuple[int, ...]) -> bool:
    """Return whether the shapes are equal, up to a trailing axis of 1 that targets may lack."""
    return targets == output or (*targets, 1) == output


def warn_of_a_second(op: str, address: str, output: Node) -> None:
    """Warn if an output ends in an op that the cost at this address applies itself."""
    while output.op in ("reshape", "cast"):
        output = output.inputs[0]
    if output.op == op:
        warnings.warn(
            f"{address}: its input ends in a {op}, and this cost applies another one, which slows training. "
            f"Leave out the {op}; predictions are probabilities without it as well.",
            stacklevel=3,
        )


def mean(losses: Node, weights: Node | None) -> Node | Totals:
    """Return the mean of losses ``(batch, ...)``; with sample weights ``(batch,)``, Totals of the weighted mean."""
    if weights is None:
        return f.mean(losses)
    total = f.sum(losses * rows(weights, losses))
    return Totals(total, f.sum(f.cast(weights, losses.dtype)) * float(prod(losses.shape[1:])))


def rows(weights: Node, losses: Node) -> Node:
    """Return weights ``(batch,)`` in the dtype of losses ``(batch, ...)``, with axes to multiply them by."""
    return f.reshape(f.cast(weights, losses.dtype), (losses.shape[0], *[1] * (len(losses.shape) - 1)))


def check_shape(section: str, targets: np.ndarray, output: tuple[int, ...]) -> None:
    """Raise SigmaDataError unless each row of targets lines up with an output of this shape."""
    if not lines_up(targets.shape[1:], output):
        raise SigmaDataError(f"data: section {section!r} has rows of shape {targets.shape[1:]}; expected {output}.")


def signs(targets: Node) -> Node:
    """Return 1 for targets of 1, and -1 for targets of 0 or -1."""
    return f.where(targets > 0.0, f.ones(targets.shape, targets.dtype), -1.0)


def check_signs(section: str, targets: np.ndarray) -> None:
    """Raise SigmaDataError for the first target that is not 1, 0 or -1."""
    wrong = ~np.isin(targets, (-1, 0, 1))
    if wrong.any():
        place = first_bad(wrong)
        raise SigmaDataError(
            f"data: section {section!r}, row {place[0]}: {targets[place]} is neither yes nor no. "
            "Targets are 1 for yes, and 0 or -1 for no."
        )


def check_distributions(section: str, targets: np.ndarray, advice: str = "") -> None:
    """Raise SigmaDataError for the first row along the last axis that is not at least 0, or does not sum to 1."""
    wrong = ~((targets >= 0).all(-1) & (np.abs(targets.sum(-1) - 1) < 1e-3))
    if wrong.any():
        place = first_bad(wrong)
        raise SigmaDataError(
            f"data: section {section!r}, row {place[0]}: {targets[place].tolist()} are not probabilities, "
            f"which are at least 0 and add up to 1.{advice}"
        )


def advise_words(targets: np.ndarray, classes: int) -> str:
    """Return how as many whole numbers as there are classes become these; empty for any other targets."""
    single = targets.shape in ((len(targets),), (len(targets), 1)) and (targets == np.floor(targets)).all()
    if not single or len(np.unique(targets)) != classes:
        return ""
    ways = 'as words, labels.astype(str), or by the extractor columns with dtype = "class"'
    return f" These {classes} values become classes {ways}."


def first_bad(wrong: np.ndarray) -> tuple[int, ...]:
    """Return the index of the first wrong entry, its row first."""
    return tuple(int(i) for i in np.argwhere(wrong)[0])
