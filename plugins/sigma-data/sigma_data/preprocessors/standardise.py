"""Standardise features to mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np
from attrs import field, frozen

from sigma_kernel import Preprocessor, functions as f
from sigma_kernel.graph import FLOATS, Node

Ends = tuple[np.ndarray, np.ndarray]


@frozen
class Standardise(Preprocessor):
    """Subtract each feature's mean and divide by its standard deviation, both of the training split.

    A feature that is constant there becomes 0.  The deviation is that of the population (divided by n).  Both are
    computed block by block: Chan, Golub, LeVeque, Algorithms for computing the sample variance, 1983, (2.1).

    Args:
        section: Section of the data to transform.
    """

    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return ``mean`` and ``deviation``, float64, of a sample's shape."""
        moments = reduce(RowMoments.merge, map(RowMoments.from_block, blocks))
        mean, deviation = moments.scale
        return {"mean": np.asarray(mean, np.float64), "deviation": np.asarray(deviation, np.float64)}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the standardised values: float64, or their own float type."""
        changed = np.subtract(values, state["mean"], dtype=np.float64)
        changed /= state["deviation"]
        return floating(changed, like=values)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the standardised values as a node."""
        return as_floating((f.cast(values, "float64") - state["mean"]) / state["deviation"], like=values)

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the values before they were standardised."""
        return values * state["deviation"] + state["mean"]


@frozen(eq=False)
class RowMoments:
    """Statistics of rows: count, mean, variance, minimum and maximum of each feature."""

    rows: int
    mean: np.ndarray
    variance: np.ndarray
    ends: Ends

    @classmethod
    def from_block(cls, values: np.ndarray) -> RowMoments:
        """Return the statistics of one block."""
        mean = values.mean(axis=0, dtype=np.float64, keepdims=True)
        variance = values.var(axis=0, dtype=np.float64, mean=mean)
        return cls(len(values), mean[0], variance, (values.min(axis=0), values.max(axis=0)))

    @property
    def scale(self) -> Ends:
        """Return mean and deviation; of a constant feature, its value and 1."""
        low, high = self.ends
        constant = low == high  # by the values: rounding can make the deviation of equal numbers nonzero
        return np.where(constant, low, self.mean), np.where(constant, 1.0, np.sqrt(self.variance))

    def merge(self, other: RowMoments) -> RowMoments:
        """Return the statistics of the rows of both."""
        rows = self.rows + other.rows
        share, apart = other.rows / rows, other.mean - self.mean
        variance = self.variance * (1 - share) + other.variance * share + apart * apart * (share * (1 - share))
        return RowMoments(rows, self.mean + apart * share, variance, wider(self.ends, other.ends))


def wider(one: Ends, other: Ends) -> Ends:
    """Return the union of two ranges: the smaller minimum and the larger maximum."""
    return np.minimum(one[0], other[0]), np.maximum(one[1], other[1])


def floating(changed: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return changed values in the float type of ``like``, or float64 if that holds integers."""
    return changed.astype(like.dtype if like.dtype.kind == "f" else np.float64, copy=False)


def as_floating(changed: Node, like: Node) -> Node:
    """Return changed values in the float type of ``like``, or float64 if that holds integers, as a node."""
    return f.cast(changed, like.dtype if like.dtype in FLOATS else "float64")
