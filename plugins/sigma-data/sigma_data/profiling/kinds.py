"""Infer the kind of a column of a table: what it holds, and why.

The kinds are ``number``, ``boolean``, ``category`` (few words), ``date``, ``text`` (sentences), ``identifier`` (another
value in almost every row, or a count of the rows), ``constant``, and ``other`` (lists, bytes).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np
from attrs import evolve, frozen

from sigma_data.examination import IDENTIFIER, ROWS, TIME, UNNAMED
from sigma_data.readers.figures import MISSING

Kind = Literal["number", "boolean", "category", "date", "text", "identifier", "constant", "other"]

FEW = 12  # distinct whole numbers from 0 that may be codes of categories
MANY = 0.9  # share of distinct words from which a column names the rows
SENTENCE = 4.0  # words in a mean cell from which a column holds text
MIXED = 0.5  # share of words that are numbers from which a column of words is meant to hold numbers
DATE = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}(:?\d{2})?)?)?\s*$"  # ISO 8601
DOTTED = r"^\s*(0?[1-9]|[12]\d|3[01])\.(0?[1-9]|1[0-2])\.\d{4}(\s+\d{2}:\d{2}(:\d{2})?)?\s*$"  # 31.12.2024
NUMBER = r"^\s*[+-]?(\d+([.,]\d*)*|\.\d+)([eE][+-]?\d+)?\s*%?\s*$"


@frozen
class Inferred:
    """The kind of a column, the reason, and what is unsure about it, a sentence with the line to change or empty.

    ``distinct`` is the number of different values, if the kind depends on it; ``infinite`` that of the cells with an
    infinite number.
    """

    kind: Kind
    reason: str
    unsure: str = ""
    distinct: int | None = None
    infinite: int = 0


def infer_kind(name: str, column: Any, is_reason_read: bool = True) -> Inferred:
    """Return the kind of a column, an array of Arrow or one in chunks.

    If nobody reads the reason, it may be empty, and infinite numbers may not be counted, which takes two passes.
    """
    if not is_reason_read and _begins_with_reals(column):
        return Inferred("number", "")
    inferred = _infer_kind(name, column)
    infinite = count_infinite(column) if inferred.kind == "number" else 0
    if not infinite:
        return inferred
    if infinite == len(column) - column.null_count:
        return evolve(inferred, kind="constant", reason="every number is infinite", infinite=infinite)
    return evolve(inferred, unsure=f"{describe_infinite(infinite)}, taken as missing", infinite=infinite)


def describe_infinite(cells: int) -> str:
    """Return how many cells are infinite, as a clause."""
    return "1 cell is infinite" if cells == 1 else f"{cells:,} cells are infinite"


def count_infinite(column: Any) -> int:
    """Return the number of cells with an infinite number."""
    pc = import_module("pyarrow.compute")
    floating = import_module("pyarrow").types.is_floating(column.type)
    return int(pc.sum(pc.is_inf(column), min_count=0).as_py()) if floating else 0


def _infer_kind(name: str, column: Any) -> Inferred:
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    present = len(column) - column.null_count
    if not present:
        return Inferred("constant", "every cell is blank")
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return Inferred("other", f"holds {column.type}")
    if pa.types.is_floating(column.type) and (real := _infer_reals(column)):
        return real  # fast: distinct numbers need not be counted
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_dictionary(column.type):
        words, counts = pc.value_counts(pc.drop_null(column).cast("string")).flatten()  # each word once
        return evolve(_infer_words(name, words, counts, present), distinct=len(words))
    distinct = pc.count_distinct(column, mode="only_valid").as_py()
    return evolve(_infer_by_values(name, column, present, distinct), distinct=distinct)


def _infer_by_values(name: str, column: Any, present: int, distinct: int) -> Inferred:
    types, pc = import_module("pyarrow").types, import_module("pyarrow.compute")
    if distinct == 1 < present:
        return Inferred("constant", f"{_read_first(column)!r} in all rows")
    if types.is_boolean(column.type):
        return Inferred("boolean", f"{present:,} booleans")
    if types.is_temporal(column.type) and not types.is_duration(column.type):
        return Inferred("date", f"{distinct:,} dates from {pc.min(column).as_py()} to {pc.max(column).as_py()}")
    return _infer_numbers(name, column, present, distinct)


def _infer_reals(column: Any) -> Inferred | None:
    """Return the kind of a column of which some numbers are not whole; None for others."""
    whole, low, high = True, np.inf, -np.inf
    for chunk in getattr(column, "chunks", [column]):
        values, least, most = _read_bounded(chunk)
        low, high = min(low, least), max(high, most)
        whole = whole and bool((values == np.rint(values)).all())  # up to the first that is not
    return None if whole or low == high else Inferred("number", f"numbers from {low:g} to {high:g}")


def _begins_with_reals(column: Any) -> bool:
    """Return whether there are different numbers in the first chunk of a column, some of which are not whole."""
    if not len(column) or not import_module("pyarrow").types.is_floating(column.type):
        return False
    values, low, high = _read_bounded(next(iter(getattr(column, "chunks", [column]))))
    return low < high and bool((values != np.rint(values)).any())


def _read_bounded(column: Any) -> tuple[np.ndarray, float, float]:
    """Return the finite numbers of a column, the least and the greatest; infinities of other signs without any."""
    values = _read_present(column)
    least, most = _bound(values)
    if not most - least < np.inf:  # NaN, too
        values = values[np.isfinite(values)]
        least, most = _bound(values)
    return values, least, most


def _bound(values: np.ndarray) -> tuple[float, float]:
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def _infer_numbers(name: str, column: Any, present: int, distinct: int) -> Inferred:
    values = as_floats(column)
    whole = bool((values == np.rint(values)).all())
    span = f"{distinct:,} distinct numbers from {values.min():g} to {values.max():g}"
    if UNNAMED.fullmatch(name):
        return Inferred("identifier", "has no name, as an index that was saved with the table")
    if whole and present >= ROWS and distinct == present and not TIME.search(name):
        dense = present <= values.max() - values.min() + 1 < 2 * present
        if (np.diff(values) > 0).all():
            return Inferred("identifier", "counts the rows up, as an index does")
        if dense or IDENTIFIER.search(name):
            return Inferred("identifier", "another whole number in every row")
    if whole and 2 < distinct <= FEW and values.min() >= 0 and present >= ROWS:
        return Inferred("number", span, f'if these are codes of categories, write {name} = "one_hot"')
    return Inferred("number", span)


def _infer_words(name: str, words: Any, counts: Any, present: int) -> Inferred:
    """Return the kind of a column from its distinct words, and how many cells hold each."""
    pc, distinct, counts = import_module("pyarrow.compute"), len(words), counts.to_numpy()
    if distinct == 1 < present:
        return Inferred("constant", f"{_read_first(words)!r} in all rows")
    if pc.all(pc.match_substring_regex(words, DATE)).as_py():
        return Inferred("date", f"{distinct:,} dates from {pc.min(words).as_py()} to {pc.max(words).as_py()}")
    if pc.all(pc.match_substring_regex(words, DOTTED)).as_py():
        dates = import_module("sigma_data.encoders.date").as_iso(words)
        return Inferred(
            "date", f"{distinct:,} dates, day first, from {pc.min(dates).as_py()} to {pc.max(dates).as_py()}"
        )
    are_numbers = pc.match_substring_regex(words, NUMBER)
    numeric = int(counts[np.asarray(are_numbers)].sum())
    lengths = int(counts @ np.asarray(count_words(words))) / present
    if numeric >= MIXED * present:
        bad = pc.filter(words, pc.invert(are_numbers))
        what = f", such as {_read_first(bad)!r}" if numeric < present else " in this format"
        return Inferred(
            "category" if distinct <= FEW else "other",
            f"{numeric:,} of {present:,} cells are numbers, {present - numeric:,} are words{what}",
            f"correct the words of {name}, or leave these cells blank if their values are missing",
        )
    if lengths >= SENTENCE and distinct > present / 2:
        return Inferred("text", f"{lengths:.0f} words in a mean cell, {distinct:,} distinct")
    if present >= ROWS and distinct > MANY * present:
        return Inferred("identifier", f"{distinct:,} words in {present:,} cells, as names are")
    unsure = f"{distinct:,} words are many for {present:,} rows: those seen in few rows are taken together"
    unsure = unsure if distinct > max(50, present // 20) else _name_gaps(words)
    return Inferred("category", f"{distinct:,} words", unsure)


def _name_gaps(words: Any) -> str:
    """Return a sentence about words that may stand for missing values; empty if there are none."""
    pc = import_module("pyarrow.compute")
    stripped = pc.utf8_trim_whitespace(words)
    gaps = stripped.filter(pc.is_in(pc.utf8_lower(stripped), import_module("pyarrow").array(sorted(MISSING))))
    listed = ", ".join(map(repr, sorted({*gaps.drop_null().to_pylist()})))
    return (
        f"{listed} are categories of their own; leave these cells blank if their values are missing" if listed else ""
    )


def count_words(column: Any) -> Any:
    """Return the number of words of each text in a column of Arrow; that of a missing one is missing."""
    pc = import_module("pyarrow.compute")
    return pc.add(pc.count_substring_regex(column.cast("string"), r"\S\s+\S"), 1)


def count_ticks(column: Any) -> Any:
    """Return the times in a column of Arrow as whole numbers that grow evenly with them."""
    pa, pc = import_module("pyarrow"), import_module("pyarrow.compute")
    if pa.types.is_time(column.type):
        return pc.cast(pc.cast(column, pa.time64("ns")), pa.int64())
    return pc.cast(pc.cast(column, pa.timestamp("s"), safe=False), pa.int64())


def as_floats(column: Any) -> np.ndarray:
    """Return the numbers of a column that are not missing, float64."""
    values = _read_finite(column)
    return values if len(values) else np.zeros(1)


def _read_finite(column: Any) -> np.ndarray:
    values = _read_present(column)
    finite = np.isfinite(values)
    return values if finite.all() else values[finite]


def _read_present(column: Any) -> np.ndarray:
    pa = import_module("pyarrow")
    if column.null_count or column.type != pa.float64() or hasattr(column, "chunks"):
        pc = import_module("pyarrow.compute")
        column = pc.cast(pc.drop_null(column), "float64", safe=False)
    return np.asarray(column, np.float64)


def _read_first(column: Any) -> Any:
    pc = import_module("pyarrow.compute")
    there = pc.drop_null(column)
    return there[0].as_py() if len(there) else ""


def list_names(names: Sequence[str], most: int = 12) -> str:
    """Return the first of some names of columns, each on one line and cut off where it is long."""
    return ", ".join([*map(shorten, names[:most]), *(["..."] if len(names) > most else [])])


def pick_example(names: Sequence[str]) -> str:
    """Return the last name that is short enough to be repeated in a sentence, quoted; COLUMN if all are long."""
    return next((repr(name) for name in reversed(names) if shorten(name) == name), "COLUMN")


def shorten(text: Any, most: int = 40) -> str:
    """Return a cell on one line of at most so many characters."""
    line = re.sub(r"\s++", " ", str(text)).strip()
    return line if len(line) <= most else line[: most - 1] + "…"
