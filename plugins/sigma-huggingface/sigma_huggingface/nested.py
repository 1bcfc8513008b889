"""Columns of lists as arrays: of one length as they are, of several padded with zeros."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from sigma_kernel import SigmaDataError

MOST = 1 << 33  # bytes of a padded column
INT32 = np.iinfo(np.int32)

Place = Callable[[int], str]


@frozen(eq=False)
class Sequences:
    """The lists of a column: the numbers of all rows, (steps of all rows, ...), and how many steps each row has."""

    numbers: np.ndarray
    lengths: np.ndarray

    @classmethod
    def from_column(cls, column: Any, name: str, place: Place) -> Sequences:
        """Return a column of Arrow; raises SigmaDataError for gaps, ragged inner lists, and other values."""
        values = column.combine_chunks()
        if not _is_list(values.type):
            raise SigmaDataError(f"{place(0)}: column {name!r} holds {values.type}, no lists. Name another column.")
        _refuse_gaps(values, name, place, int)
        lengths = np.asarray(pc.list_value_length(values), np.int64)
        ends, values = np.cumsum(lengths), values.flatten()

        def row_of(step: int) -> int:
            return int(np.searchsorted(ends, step, side="right"))

        inner: list[int] = []
        while _is_list(values.type):
            size = prod(inner)
            _refuse_gaps(values, name, place, row_of, size)
            counts = np.asarray(pc.list_value_length(values), np.int64)
            if ragged := np.flatnonzero(counts != counts[:1]).tolist():
                raise SigmaDataError(
                    f"{place(row_of(ragged[0] // size))}: column {name!r} holds inner lists of {counts[0]} and "
                    f"{counts[ragged[0]]} values. Only the outer ones may differ in length."
                )
            inner.append(int(counts[0]) if len(counts) else 1)
            values = values.flatten()
        _refuse_gaps(values, name, place, row_of, prod(inner))
        numbers = _to_numbers(values, name, place, lambda number: row_of(number // prod(inner)))
        return cls(numbers.reshape(-1, *inner), lengths)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Return the shape of every row, if all are of one length; else None."""
        same = bool((self.lengths == self.lengths[0]).all())
        return (int(self.lengths[0]), *self.numbers.shape[1:]) if same else None

    def check_filled(self, name: str, where: str) -> None:
        """Raise SigmaDataError if every row is an empty list."""
        if not self.lengths.any():
            raise SigmaDataError(f"{where}: all lists of column {name!r} are empty. Name another column.")

    def pad(self, length: int, where: str) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of one length, cut off or padded with zeros at their ends, and how many steps of each are there.

        Raises SigmaDataError for more than 8 GB.
        """
        shape = (len(self.lengths), length, *self.numbers.shape[1:])
        if (size := prod(shape) * self.numbers.itemsize) > MOST:
            raise SigmaDataError(
                f"{where}: {shape[0]:,} rows of {length:,} steps take {size / 1e9:,.0f} GB. Set `length` to fewer."
            )
        kept = np.minimum(self.lengths, length)
        starts = np.cumsum(self.lengths) - self.lengths
        padded = np.zeros(shape, self.numbers.dtype)
        there = np.arange(length) < kept[:, None]
        padded[there] = self.numbers[(starts[:, None] + np.arange(length))[there]]
        return padded, kept.astype(np.int32)


def _is_list(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _refuse_gaps(values: Any, name: str, place: Place, row_of: Callable[[int], int], size: int = 1) -> None:
    if values.null_count:
        first = row_of(int(np.flatnonzero(np.asarray(values.is_null()))[0]) // size)
        raise SigmaDataError(f"{place(first)}: column {name!r} has a gap. Fill it in, or drop the row.")


def _to_numbers(values: Any, name: str, place: Place, row_of: Callable[[int], int]) -> np.ndarray:
    """Return integers as int32, and other numbers as float32; raises SigmaDataError for integers beyond int32."""
    types = pa.types
    if not (types.is_integer(values.type) or types.is_floating(values.type) or types.is_boolean(values.type)):
        raise SigmaDataError(f"{place(0)}: column {name!r} holds lists of {values.type}. It takes lists of numbers.")
    numbers = np.asarray(values)
    if not types.is_integer(values.type):
        return numbers.astype(np.float32)
    if len(beyond := np.flatnonzero((numbers < INT32.min) | (numbers > INT32.max))):
        raise SigmaDataError(
            f"{place(row_of(int(beyond[0])))}: column {name!r} holds {numbers[beyond[0]]}, which is beyond int32. Cast "
            "the column to floats if it holds quantities, or number its values from 0."
        )
    return numbers.astype(np.int32)


def count_values(lengths: np.ndarray) -> str:
    """Return the least, the median and the most of some lengths in a few words."""
    low, middle, high = np.min(lengths), np.median(lengths), np.max(lengths)
    return f"{low:,}" if low == high else f"{low:,} … {middle:,.0f} … {high:,}"
