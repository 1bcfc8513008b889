"""Encode categories as indices, for the layer ``embedding``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from sigma_data.encoders.columns import EMPTY, count_categories, place_categories, read_batches, read_categories
from sigma_kernel import Encoder, SigmaDataError
from sigma_kernel.settings import ge


@frozen
class IndexEncoder(Encoder):
    """Encode a category as an index from 1, int32; missing, rare and unseen ones are 0.

    Categories are in alphabetical or numerical order.  A layer ``embedding`` needs a ``vocabulary`` of one more than
    their number.

    Args:
        least: Number of training rows with fewer of which a category is rare.
        section: Section of the data that the indices belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("category", "boolean", "identifier", "number", "text", "constant")
    least: int = field(default=1, validator=ge(1))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``categories``, from index 1 on."""
        values, counts, _ = count_categories(read_batches(columns, read_categories))
        if not len(values):
            raise SigmaDataError(EMPTY)
        return {"categories": values.filter(pa.array(counts >= self.least)).to_pylist()}

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the indices, int32, of shape (rows, 1)."""
        return (place_categories(column, state["categories"]) + 1).astype(np.int32)[:, None]

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the name of the column."""
        return (column,)
