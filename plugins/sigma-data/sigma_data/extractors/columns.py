"""Extract sections from the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Literal

import numpy as np
from attrs import field, frozen

from sigma_data.arrays import cast_values
from sigma_data.labels import check_exact, indices
from sigma_data.readers.csv import REST, place
from sigma_kernel import Extractor, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import SHAPE, finite, in_, min_len, optional


@frozen
class Column:
    """The columns of one section, and how to convert them.

    A column of words is kept for a classification cost to encode, unless its dtype is ``class``.

    Args:
        columns: Column of the section, which gives a scalar per sample, or a list of columns, which gives a vector;
            ``["*"]`` is every column that no section names.
        shape: Shape of a sample made of several columns; by default a vector.
        dtype: Dtype of the section, by default float64, which is cast to the precision of a run once it is
            preprocessed; with ``class``, words or integers become class indices in sorted order.
        scale: Factor on numbers.
    """

    columns: str | int | tuple[str | int, ...]
    shape: tuple[int, ...] | None = field(default=None, validator=optional(SHAPE))
    dtype: Literal["auto", "float32", "float64", "int32", "class"] = field(
        default="auto", validator=in_(("auto", "float32", "float64", "int32", "class"))
    )
    scale: float = field(default=1.0, validator=finite)


@frozen
class Columns(Extractor):
    """Extract sections from columns, by name or number; see :class:`Column`.

    Raises SigmaDataError, with the section, for a missing column or a shape that does not fit.

    Args:
        sections: Columns of each section, by the section's name.
    """

    sections: Mapping[str, Column] = field(validator=min_len(1))

    def extract(self, records: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the sections."""
        names = list(records)
        named = {place(c, names, f"section {s!r}") for s, spec in self.sections.items() for c in _columns_by_name(spec)}
        rest = [i for i in range(len(names)) if i not in named]
        return {section: _section(section, column, records, rest) for section, column in self.sections.items()}


def as_tuple(columns: str | int | tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return columns as a tuple, even if there is only one."""
    return (columns,) if isinstance(columns, str | int) else tuple(columns)


def cut(values: np.ndarray, shape: tuple[int, ...] | None, where: str) -> np.ndarray:
    """Return rows of values reshaped; SigmaConfigError if the sizes differ."""
    if shape is None:
        return values
    if prod(shape) != prod(values.shape[1:]):
        have = prod(values.shape[1:])
        raise SigmaConfigError(
            f"shape: {where} has {have} values a row, which do not make {list(shape)}. Choose others."
        )
    return values.reshape(len(values), *shape)


def _columns_by_name(column: Column) -> list[str | int]:
    return [name for name in as_tuple(column.columns) if name != REST]


def _section(section: str, column: Column, records: Mapping[str, np.ndarray], rest: list[int]) -> np.ndarray:
    names, where = list(records), f"section {section!r}"
    wanted = [i for name in as_tuple(column.columns) for i in (rest if name == REST else [place(name, names, where)])]
    if not wanted:
        raise SigmaDataError(f"{where}: there is no column left for it. Name some.")
    alone = isinstance(column.columns, str | int) and column.columns != REST
    if alone and column.dtype == "auto" and _are_words(records[names[wanted[0]]]):
        return records[names[wanted[0]]]
    parts = [_to_column_type(records[names[i]], column, f"{where}, column {names[i]!r}") for i in wanted]
    return cut(parts[0] if alone else np.stack(parts, axis=1), column.shape, where)


def _to_column_type(values: np.ndarray, column: Column, where: str) -> np.ndarray:
    if column.dtype == "class":
        return indices(values, where)[0]
    if _are_words(values):
        raise SigmaDataError(f"{where}: holds words, such as {str(values[0])!r}. Leave it out, or use dtype = 'class'.")
    dtype = "float64" if column.dtype == "auto" else column.dtype
    if dtype.startswith("float"):
        check_exact(values, where, "row {}".format, "Give such numbers as floats, or leave the column out.")
    return cast_values(values * column.scale if column.scale != 1.0 else values, dtype, where)


def _are_words(values: np.ndarray) -> bool:
    return values.dtype.kind in "TUS"
