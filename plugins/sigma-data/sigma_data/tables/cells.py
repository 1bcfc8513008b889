"""Kinds of the columns of a text: what pyarrow infers from one piece, joined over pieces."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sigma_data.labels import EXACT
from sigma_data.readers.figures import MISSING, Figures

LOOSE = "loose"  # numbers that Arrow does not parse: with blanks around them, or groups of digits
BIG = "big"  # integers that floats would merge
SAMPLE = 100  # cells that are tried first
UNITS = ("s", "ms", "us", "ns")
LONG = r"^\s*[+-]?\d{16,}\s*$"

Kind = Any  # a type of Arrow, LOOSE or BIG; None if all values are missing


def kind_of(column: Any, figures: Figures) -> Kind:
    """Return the kind of a column as Arrow parsed it."""
    if types.is_null(column.type):
        return None
    if types.is_string(column.type):
        return string_kind(column, figures)
    if types.is_integer(column.type):
        bounds = pc.min_max(column).as_py()
        return BIG if bounds["min"] is not None and max(-bounds["min"], bounds["max"]) > EXACT else pa.int64()
    return pa.string() if types.is_time(column.type) or types.is_binary(column.type) else column.type


def string_kind(column: Any, figures: Figures) -> Kind:
    """Return LOOSE for a column whose values are all numbers, None for an empty one, else the type of strings."""
    cells = [cell.strip() for cell in column.slice(0, SAMPLE).to_pylist() if cell is not None]
    if all(cell.lower() in MISSING or figures.is_number(cell) for cell in cells):
        with suppress(ValueError):
            has_cells = loosen(column, figures).null_count < len(column) or column.null_count < len(column)
            return LOOSE if has_cells else None
    return pa.string()


def loosen(column: Any, figures: Figures) -> Any:
    """Return the numbers in a column of strings, null for gaps; raises ValueError if one is not a number."""
    cells = pc.utf8_trim_whitespace(column)
    cells = pc.if_else(pc.is_in(pc.utf8_lower(cells), pa.array(sorted(MISSING))), pa.scalar(None, pa.string()), cells)
    if figures.thousands is not None:
        grouped = pc.match_substring(cells, figures.thousands)
        mark, point = re.escape(figures.thousands), re.escape(figures.decimal)
        right = pc.match_substring_regex(cells, rf"^[+-]?\d{{1,3}}(?:{mark}\d{{3}})+(?:{point}\d*)?(?:[eE][+-]?\d+)?$")
        if pc.any(pc.and_not(grouped, right)).as_py():
            raise ValueError("groups of thousands have three digits")
        cells = pc.replace_substring(cells, figures.thousands, "")
    if figures.decimal != ".":
        if pc.any(pc.match_substring(cells, ".")).as_py():
            raise ValueError("another mark stands before the fraction")
        cells = pc.replace_substring(cells, figures.decimal, ".")
    merged = pc.match_substring_regex(cells, LONG)
    numbers = cells.cast(pa.float64())
    if pc.any(pc.and_(merged, pc.greater_equal(pc.abs(numbers), float(EXACT)))).as_py():
        raise ValueError("integers that merge")
    return numbers


def merges(numbers: Any, cells: Any) -> bool:
    """Return whether some of the numbers of a column stand for integers that floats merge."""
    large = pc.greater_equal(pc.abs(numbers), float(EXACT))
    return bool(pc.any(pc.and_(large, pc.match_substring_regex(cells, LONG))).as_py())


def may_merge(numbers: Any) -> bool:
    """Return whether some numbers of a column are as large as integers that floats merge."""
    if are_small(numbers):
        return False  # fast
    bounds = pc.min_max(numbers).as_py()
    return bounds["min"] is not None and max(-bounds["min"], bounds["max"]) >= EXACT


def are_small(numbers: Any) -> bool:
    """Return whether a column of floats has neither gaps nor NaN nor numbers as large as integers that floats merge."""
    return all(part.null_count == 0 and _are_small(part.to_numpy()) for part in numbers.chunks)


def _are_small(values: np.ndarray) -> bool:
    return not len(values) or bool(values.min() > -EXACT and values.max() < EXACT)


def has_leading_zeros(cells: Any) -> bool:
    """Return whether some strings are whole numbers with a zero before their first digit, as codes are."""
    return bool(pc.any(pc.match_substring_regex(cells, r"^\s*[+-]?0\d+\s*$")).as_py())


def join_kinds(one: Kind, other: Kind) -> Kind:
    """Return the kind of a column that holds values of both kinds."""
    if one is None or other is None or one == other:
        return other if one is None else one
    kinds = [one, other]
    numbers = [kind for kind in kinds if kind in (pa.int64(), pa.float64(), LOOSE)]
    if len(numbers) == 2:
        return LOOSE if LOOSE in kinds else pa.float64()
    if BIG in kinds and pa.int64() in kinds:
        return BIG
    if LOOSE not in kinds and BIG not in kinds and pa.string() not in kinds:
        times = [kind for kind in kinds if types.is_timestamp(kind)]
        if times and pa.date32() in kinds and times[0].tz is None:
            return times[0]
        if len(times) == 2 and times[0].tz == times[1].tz:
            return max(times, key=lambda kind: UNITS.index(kind.unit))
    return pa.string()


def parsed_type(kind: Kind) -> Any:
    """Return the type that Arrow is to parse a column of a kind as."""
    return {LOOSE: pa.string(), BIG: pa.int64(), None: pa.float64()}.get(kind, kind)


def final_type(kind: Kind) -> Any:
    """Return the type that a column of a kind is delivered in."""
    return pa.float64() if kind == LOOSE else parsed_type(kind)


def as_kind(column: Any, kind: Kind, figures: Figures) -> Any:
    """Return a parsed column in the type of its kind, blank strings as null; raises ValueError if it cannot be."""
    if kind == LOOSE and types.is_string(column.type):
        return loosen(column, figures)
    wanted = final_type(kind)
    if column.type == pa.string() == wanted:
        blank = pc.or_(pc.equal(pc.binary_length(column), 0), pc.utf8_is_space(column))
        return pc.if_else(blank, pa.scalar(None, pa.string()), column) if pc.any(blank).as_py() else column
    if types.is_string(wanted):
        raise ValueError("the text of values that are parsed already")
    return column.cast(wanted)


def infer_strings(column: Any, figures: Figures) -> Any:
    """Return a column of strings in the type that all its values have."""
    cells = pc.utf8_trim_whitespace(column)
    gap = pc.is_in(pc.utf8_lower(cells), pa.array(sorted(MISSING)))
    present = pc.if_else(gap, pa.scalar(None, pa.string()), cells)
    if present.null_count < len(present):
        low = pc.utf8_lower(present)
        if pc.all(pc.is_in(low.drop_null(), pa.array(["true", "false"]))).as_py():
            return pc.equal(low, "true")
        for kind in (pa.int64(), pa.date32(), pa.timestamp("s"), pa.timestamp("ns")):
            with suppress(ValueError, NotImplementedError):
                return present.cast(kind)
    with suppress(ValueError):
        return loosen(column, figures)
    return as_kind(column, pa.string(), figures)


def as_dates(column: Any) -> Any:
    """Return a column of strings that are all ISO dates or times as these; any other column as it is."""
    if types.is_string(column.type) and column.null_count < len(column):
        for kind in (pa.date32(), pa.timestamp("us")):
            with suppress(ValueError, NotImplementedError):
                return column.cast(kind)
    return column


def is_float(column: Any) -> bool:
    """Return whether a column holds floats."""
    return bool(types.is_floating(column.type))


def line_ranges(numbers: np.ndarray) -> range | np.ndarray:
    """Return numbers of lines as a range where none is left out."""
    first, last = int(numbers[0]), int(numbers[-1])
    return range(first, last + 1) if last - first + 1 == len(numbers) else numbers
