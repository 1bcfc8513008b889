"""Tables that encoders look values up in, made once of what they learned: prediction applies this again and again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

KEPT = 16  # tables in memory
FEW = 8  # times fewer rows than categories are looked up one by one


@frozen(eq=False)
class SameObject:
    """An object as a key of a cache: equal to itself alone, and held there, so that its identity stays its own."""

    value: Any

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.value is other.value


@frozen(eq=False, slots=False)
class CategoryTable:
    """Categories as an Arrow array, and the place of each."""

    options: Any

    def place_few(self, values: Any) -> np.ndarray | None:
        """Return the places of values, -1 where they are none of the categories; None if Arrow finds them faster.

        Numbers that are not whole are left to Arrow, which tells 0 from -0.
        """
        kind = self.options.type
        exact = pa.types.is_string(kind) or pa.types.is_int64(kind) or pa.types.is_boolean(kind)
        if not exact or values.type != kind or FEW * len(values) > len(self.options):
            return None
        places = self._places
        return np.fromiter((places.get(value, -1) for value in values.to_pylist()), np.int64, len(values))

    @cached_property
    def _places(self) -> dict[Any, int]:
        last_first = range(len(self.options) - 1, -1, -1)  # so that the first of equal ones stays
        return dict(zip(reversed(self.options.to_pylist()), last_first, strict=True))


def tabulate_categories(categories: Sequence[Any]) -> CategoryTable:
    """Return the table of a list of categories, which must not be changed; the same one for the same list."""
    return _tabulate(SameObject(categories))


@lru_cache(maxsize=KEPT)
def _tabulate(categories: SameObject) -> CategoryTable:
    return CategoryTable(pa.array(categories.value))
