"""Encode categories as vectors with a 1 at the place of the category."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from attrs import field, frozen

from sigma_data.encoders.columns import (
    EMPTY,
    count_categories,
    is_missing,
    place_categories,
    read_batches,
    read_categories,
    refuse_missing,
    refuse_unseen,
)
from sigma_kernel import Encoder, SigmaDataError
from sigma_kernel.settings import ge, in_

UNSEEN = ("other", "refuse")
MISSING = ("category", "refuse")
REMEDY = "Correct it, or set unseen = 'other'."


@frozen
class OneHotEncoder(Encoder):
    """Encode a category as one number for each of the training rows' categories: 1 for its own, 0 for the others.

    Categories are in alphabetical or numerical order; ``other``, which stands for rare ones, and the missing value
    follow, if the training rows have such.  Unseen categories are ``other``, and all numbers are 0 if there is none.

    Args:
        least: Number of training rows with fewer of which a category is rare.
        most: Largest number of categories that are not rare; more are an error.
        unseen: Whether a category that no training row has is ``other`` or an error.
        missing: Whether a missing value is a category or an error.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("category", "boolean", "constant", "number", "identifier", "text")
    least: int = field(default=1, validator=ge(1))
    most: int = field(default=1000, validator=ge(1))
    unseen: Literal["other", "refuse"] = field(default="other", validator=in_(UNSEEN))
    missing: Literal["category", "refuse"] = field(default="category", validator=in_(MISSING))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``categories`` and the rare ones, and whether there are missing values."""
        values, counts, missing = count_categories(read_batches(columns, self._read))
        if not len(values):
            raise SigmaDataError(EMPTY)
        often = counts >= self.least
        categories, rare = (values.filter(pa.array(part)).to_pylist() for part in (often, ~often))
        if len(categories) > self.most:
            raise SigmaDataError(
                f"there are {len(categories):,} categories, and most is {self.most:,}. Increase least, or use the "
                "encoder hashing, target_mean or index."
            )
        return {
            "categories": categories,
            "rare": rare if self.unseen == "refuse" else bool(rare),
            "missing": missing > 0,
        }

    def _read(self, column: Any) -> Any:
        values = read_categories(column)
        if self.missing == "refuse":
            refuse_missing(is_missing(values), column, "set missing = 'category', or leave the row out")
        return values

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the vectors, of shape (rows, categories)."""
        values, categories = self._read(column), state["categories"]
        places, missing = place_categories(values, categories), is_missing(values)
        if self.unseen == "refuse":
            seen = np.maximum(places, place_categories(values, state["rare"]))
            refuse_unseen(seen, missing, column, [*categories, *state["rare"]], REMEDY)
        width = len(categories)
        for value, there in (((places < 0) & ~missing, state["rare"]), (missing, state["missing"])):
            if there:
                places, width = np.where(value, width, places), width + 1
        vectors = np.zeros((len(places), width))
        rows = np.flatnonzero(places >= 0)
        vectors[rows, places[rows]] = 1.0
        return vectors

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the column with each category."""
        beyond = [
            f"{column} is {word}" for word, there in (("other", state["rare"]), ("missing", state["missing"])) if there
        ]
        return (*(f"{column}={category}" for category in state["categories"]), *beyond)
