"""Parse plain CSV tables with a library, in pieces.

This fast path takes plain tables only; anything else is left to the reader's slow path, which knows its line in the
file.  Both give the same arrays.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from typing import Any, Literal

import numpy as np
from attrs import evolve, field, frozen

from sigma_data.labels import EXACT

CHARACTERS = 1 << 22  # bytes of a piece
INTEGER = re.compile(r"(?<![\d.])\d{16,}+(?![.eE])", re.ASCII)  # long enough for a float to merge it with others

Columns = dict[int, "np.ndarray | list[str]"]  # by number: float64, or words


class Unfit(ValueError):
    """Raised if a table is not plain, so that the slow path must read it."""


@frozen
class TableLayout:
    """The format of a table's lines; ``kinds`` are those of its columns: numbers, words, or not read.

    With ``gaps``, numbers may be missing, and are NaN.
    """

    kinds: Sequence[bool | None]  # True: words
    delimiter: str
    decimal: str
    gaps: bool = False

    @property
    def quote_pattern(self) -> re.Pattern[str]:
        """Return a pattern of a quoted cell without line ends, in which two quotes stand for one."""
        mark = re.escape(self.delimiter)
        return re.compile(rf'(?:^|(?<={mark}))"(?:[^"\n]|"")*+"(?={mark}|$)', re.MULTILINE)

    @property
    def gap(self) -> re.Pattern[str]:
        """Return a pattern of a cell that stands for a missing number; its prefix limits backtracking."""
        mark = re.escape(self.delimiter)
        return re.compile(rf"[?nN](?<=[{mark}\n].)(?:(?<=\?)|(?i:an|ull|one|/?a))(?=[{mark}\n])")

    def select_columns(self, words: bool) -> TableLayout:
        """Return the layout with only the columns of words, or only those of numbers; the others are not read."""
        return evolve(self, kinds=[kind if kind is words else None for kind in self.kinds])


Parse = Callable[[Sequence[str], TableLayout], Columns]


@frozen
class Piece:
    """Some lines of a table: their numbers in the file, and their columns."""

    lines: np.ndarray
    columns: Columns = field(eq=False)


def pieces(text: TextIOWrapper, layout: TableLayout, line: int, longest: int) -> Iterator[Piece]:
    """Yield a table in pieces, its first line having number ``line``; raises ValueError if it is not plain."""
    for several, whole in _cut(text, longest):
        rows = _rows(whole, layout)
        numbers = np.arange(line, line + len(rows))
        line += len(rows)
        if "" in rows:
            there = [i for i, row in enumerate(rows) if row]
            numbers, rows = numbers[there], [rows[i] for i in there]
        if rows:
            yield Piece(numbers, _parse_rows(rows, layout, _library() if several else by_numpy))


def _cut(text: TextIOWrapper, longest: int) -> Iterator[tuple[bool, str]]:
    """Yield pieces of whole lines, and whether there are several pieces."""
    several, rest = False, ""
    while chunk := text.read(CHARACTERS):
        several |= len(chunk) == CHARACTERS
        whole, end, rest = (rest + chunk).rpartition("\n")
        if len(rest) > longest:
            raise Unfit("a line without an end")
        if end:
            yield several, whole
    if rest:
        yield several, rest


def _rows(whole: str, layout: TableLayout) -> list[str]:
    text = (whole + "\n").replace("\r\n", "\n")
    if "\r" in text or "\0" in text:
        raise Unfit("other ends of lines")
    if '"' in text and '"' in layout.quote_pattern.sub("", text):
        raise Unfit("quotes that are no frame")
    if layout.decimal != ".":
        if "." in text or layout.decimal == layout.delimiter:
            raise Unfit("two kinds of marks")
        text = text.replace(layout.decimal, ".")
    rows = text.split("\n")[:-1]
    if max(map(len, rows)) > csv.field_size_limit():
        raise Unfit("a long line")
    return rows


def _parse_rows(rows: Sequence[str], layout: TableLayout, parse: Parse) -> Columns:
    try:
        return _check_columns(parse(rows, layout), rows, layout, np.isfinite)
    except ValueError:
        if not layout.gaps:
            raise
    numbers, words = layout.select_columns(words=False), layout.select_columns(words=True)
    table = _check_columns(parse(_fill_missing(rows, layout), numbers), rows, numbers, lambda values: ~np.isinf(values))
    return table | _check_columns(parse(rows, words), rows, words, np.isfinite) if any(layout.kinds) else table


def _fill_missing(rows: Sequence[str], layout: TableLayout) -> list[str]:
    """Return lines with missing numbers replaced by ``nan``; words must not be read from them."""
    mark, text = layout.delimiter, "\n".join(["", *rows, ""])
    low = text.lower()
    if mark.isalnum() or any(odd in low for odd in ("+nan", "-nan", "nan(")):
        raise Unfit("what could be taken for a gap")
    for _ in range(2):  # matches do not overlap: the second pass fills every other one of adjacent gaps
        text = text.replace(mark * 2, f"{mark}nan{mark}")
    text = text.replace(f"{mark}\n", f"{mark}nan\n").replace(f"\n{mark}", f"\nnan{mark}")
    return layout.gap.sub("nan", text).split("\n")[1:-1]


def _check_columns(
    columns: Columns, rows: Sequence[str], layout: TableLayout, right: Callable[[np.ndarray], np.ndarray]
) -> Columns:
    """Return the columns; raise Unfit unless they have one value per row and all numbers are finite."""
    for i, column in columns.items():
        if len(column) != len(rows):
            raise Unfit("values of several lines")
        if isinstance(column, np.ndarray) and not right(column).all():
            raise Unfit("numbers that are not finite")
        if isinstance(column, np.ndarray) and (np.abs(column) >= EXACT).any() and INTEGER.search("\n".join(rows)):
            raise Unfit("integers that merge")
        if isinstance(column, list) and layout.decimal != ".":
            columns[i] = [cell.replace(".", layout.decimal) for cell in column]
    return columns


@cache
def _library() -> Parse:
    """Return the faster library if it is installed; importing it takes as long as parsing a small table."""
    if find_spec("pyarrow") is None:
        return by_numpy
    parse: Parse = import_module("sigma_data.readers.arrow").by_arrow
    return parse


def by_numpy(rows: Sequence[str], layout: TableLayout) -> Columns:
    """Parse lines with NumPy; raises ValueError if it cannot."""
    if all(kind is False for kind in layout.kinds):
        table = _load_rows(rows, layout, np.float64, 2)
        if table.shape[1] != len(layout.kinds):
            raise Unfit("another number of columns")
        return {i: np.ascontiguousarray(column) for i, column in enumerate(table.T)}
    fields = [(str(i), "f8" if kind is False else "O") for i, kind in enumerate(layout.kinds)]
    table = _load_rows(rows, layout, fields, 1)
    wanted = {i: kind for i, kind in enumerate(layout.kinds) if kind is not None}
    return {i: table[str(i)].tolist() if words else table[str(i)].copy() for i, words in wanted.items()}


def _load_rows(rows: Sequence[str], layout: TableLayout, dtype: Any, axes: Literal[1, 2]) -> Any:
    return np.loadtxt(rows, dtype, comments=None, delimiter=layout.delimiter, quotechar='"', ndmin=axes, encoding=None)
