"""Encode categories that have an order as their rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import field, frozen

from sigma_data.encoders.columns import (
    EMPTY,
    are_distinct,
    count_categories,
    fill_rule,
    is_missing,
    place_categories,
    read_batches,
    read_categories,
    refuse_missing,
    refuse_unseen,
)
from sigma_kernel import Encoder, SigmaDataError
from sigma_kernel.settings import in_, must

UNSEEN = ("refuse", "missing")
REMEDY = "Correct it, add it to order, or set unseen = 'missing'."
ORDER = must(
    lambda value: are_distinct(value) and len({isinstance(one, str) for one in value}) < 2,
    "categories that differ, all words or all numbers",
)


@frozen
class OrdinalEncoder(Encoder):
    """Encode a category as its rank, from 0.

    Args:
        order: All categories from the lowest to the highest; by default those of the training rows, sorted.
        missing: What replaces missing values: the median rank of the training rows, or this number. By default, a
            missing value is an error.
        unseen: Whether a category that is not in the order is an error or counts as missing.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("category", "boolean", "number", "date", "constant")
    order: tuple[str | float, ...] = field(default=(), converter=tuple, validator=ORDER)
    missing: Literal["refuse", "median"] | float = field(default="refuse", validator=fill_rule("refuse", "median"))
    unseen: Literal["refuse", "missing"] = field(default="refuse", validator=in_(UNSEEN))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``categories`` in order, and the rank ``fill`` of a missing value."""
        values, counts, _ = count_categories(read_batches(columns, self._read))
        if not len(values):
            raise SigmaDataError(EMPTY)
        categories = [*self.order] or values.to_pylist()
        ranks = place_categories(values, categories)
        if self.unseen == "refuse" and (ranks < 0).any():
            for _ in read_batches(columns, lambda column: self._rank(column, categories)):
                pass
        state = {"categories": categories, "fill": None}
        if self.missing == "median":
            return {**state, "fill": _median(ranks[ranks >= 0], counts[ranks >= 0])}
        return state if isinstance(self.missing, str) else {**state, "fill": float(self.missing)}

    def _read(self, column: Any) -> Any:
        values = read_categories(column)
        if self.missing == "refuse":
            refuse_missing(is_missing(values), column, "set missing = 'median' or a rank, or leave the row out")
        return values

    def _rank(self, column: Any, categories: list[Any]) -> np.ndarray:
        """Return the rank of each row, -1 where it is missing."""
        values = self._read(column)
        ranks = place_categories(values, categories)
        if self.unseen == "refuse" or self.missing == "refuse":
            refuse_unseen(ranks, is_missing(values), column, categories, REMEDY)
        return ranks

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the ranks, of shape (rows, 1)."""
        ranks = self._rank(column, state["categories"]).astype(np.float64)
        return (ranks if state["fill"] is None else np.where(ranks < 0, state["fill"], ranks))[:, None]

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the name of the column."""
        return (column,)


def _median(ranks: np.ndarray, counts: np.ndarray) -> float:
    """Return the median of ranks that occur so often: the lower one of two in the middle; 0 if there are none."""
    order = np.argsort(ranks)
    below = np.cumsum(counts[order])
    return float(ranks[order][np.searchsorted(2 * below, below[-1])]) if len(below) else 0.0
