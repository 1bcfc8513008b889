"""Mergers: how the gradients of all shards of a batch become one.

Each part is a gradient times the shard's share of the rows; dividing it by that gives the mean over the shard's rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import field, frozen

from sigma_kernel import matches
from sigma_kernel.contracts import Merger, merge_in_tree
from sigma_kernel.errors import SigmaConfigError


def _add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(a + b)


def _sum(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the sum in the fixed tree, also of one part as a new array."""
    total = merge_in_tree(parts, _add)
    return total.copy() if len(parts) == 1 else total


def _scale(part: np.ndarray, factor: float) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(part * part.dtype.type(factor))


@frozen
class Sum(Merger):
    """Sum gradients: weighted means over shards add up to the mean over the batch."""

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        """Return the sum, which is not finite if the gradients of a shard have overflowed."""
        return _sum(parts)


@frozen
class MeanOfShards(Merger):
    """Average gradients: every shard counts alike, however many rows it has."""

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        """Return the mean over shards of the mean gradients over their rows."""
        return _sum([_scale(part, 1 / (weight * len(parts))) for part, weight in zip(parts, weights, strict=True)])


def _read_weights(weights: Sequence[float]) -> tuple[float, ...]:
    """Return weights as a tuple; raise SigmaConfigError for what is none."""
    given = tuple(weights) if isinstance(weights, Sequence) and not isinstance(weights, str) else ()
    numbers = all(isinstance(weight, int | float) and 0 <= weight < np.inf for weight in given)
    if not numbers or sum(given) == 0:
        raise SigmaConfigError(f"Weighted.weights: must be numbers of at least 0, not all 0 (got {weights!r}).")
    return given


@frozen
class Weighted(Merger):
    """Weight shards by numbers of one's own.

    Args:
        weights: One for each shard, in their order; they are divided by their sum.
    """

    weights: Sequence[float] = field(converter=_read_weights)

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        """Return the weighted mean of the mean gradients over the rows of each shard."""
        own = self.weights[: len(parts)]
        if len(own) < len(parts) or not sum(own):
            raise SigmaConfigError(
                f"Weighted.weights: {len(self.weights)} weights are for as many shards, not all of them 0, and a batch"
                f" has {len(parts)}. Give one weight for each of the operator's shards."
            )
        scaled = (_scale(p, w / (rows * sum(own))) for p, w, rows in zip(parts, own, weights, strict=True))
        return _sum([*scaled])


@frozen
class Largest(Merger):
    """Take each entry from the shard where it has the greatest magnitude."""

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        """Return the entries of the greatest magnitude; of equal ones, that of the first shard."""
        means = np.stack([_scale(part, 1 / weight) for part, weight in zip(parts, weights, strict=True)])
        chosen = np.argmax(np.where(np.isnan(means), np.inf, np.abs(means)), axis=0)  # NaN is not hidden
        return np.asarray(np.take_along_axis(means, chosen[None], axis=0)[0])


@frozen
class MergerRules(Merger):
    """Merge parameters in different ways.

    Args:
        rules: A merger for the parameters that each pattern matches, such as ``**.biases``; the first that does counts.
        otherwise: The merger for all others.
    """

    rules: Mapping[str, Merger]
    otherwise: Merger = field(factory=Sum)

    def merge(self, parts: Sequence[np.ndarray], weights: Sequence[float], address: str) -> np.ndarray:
        """Return the gradient that the merger of the address makes."""
        chosen = (merger for pattern, merger in self.rules.items() if matches(pattern, address))
        return next(chosen, self.otherwise).merge(parts, weights, address)
