"""Tables of comma-separated values."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import chain, islice
from typing import Literal

import numpy as np
from attrs import field, frozen
from attrs.validators import in_, matches_re

from sigma_data.readers.lines import as_text, lines
from sigma_kernel import Reader, SigmaDataError, Source
from sigma_kernel.errors import near

CELLS = 1_000_000  # values held as text at once
LONGEST = 1 << 24  # characters of a line
GAPS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})  # what stands where a value is missing

Row = tuple[int, list[str]]  # with the number of its line in the file


@frozen
class CsvReader(Reader):
    """Read a table as one array a column, by the names in its first line, or by number from 0 without a ``header``.

    Columns hold numbers (float64), except those named in ``text`` (strings).  ``columns`` are the ones to read; the
    others are not looked at.  A value is missing if there is nothing, ``?``, ``NA``, ``NaN``, ``None`` or ``null`` in
    its place; it becomes NaN with ``missing="nan"``.  Among words only a blank is missing, and stays one.
    Otherwise such a value, one that is no number, and a line with too many or too few values are SigmaDataErrors with
    ``file:line``.
    """

    columns: tuple[str | int, ...] | None = None
    text: tuple[str | int, ...] = ()
    header: bool = True
    delimiter: str = field(default=",", validator=matches_re(r"(?s)."))
    missing: Literal["refuse", "nan"] = field(default="refuse", validator=in_(("refuse", "nan")))
    encoding: str = "utf-8-sig"

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return the columns."""
        name = source.name
        with source.open() as stream, as_text(stream, self.encoding, newline="") as text:
            names, rows = self._names(_rows(text, self.delimiter, name), name)
            chosen = self._chosen(names, name)
            words = {place(column, names, name) for column in self.text}
            parts = list(self._parts(rows, name, names, chosen, words))
        if not parts:
            raise SigmaDataError(f"{name}: there is no row of values. Check the file.")
        return {names[i]: np.concatenate([part[k] for part in parts]) for k, i in enumerate(chosen)}

    def _names(self, rows: Iterator[Row], name: str) -> tuple[list[str], Iterator[Row]]:
        first = next(rows, None)
        if first is None:
            raise SigmaDataError(f"{name}: the file is empty.")
        if not self.header:
            return [str(i) for i in range(len(first[1]))], chain([first], rows)
        names = [column.strip() for column in first[1]]
        column, times = Counter(names).most_common(1)[0]
        if times > 1:
            raise SigmaDataError(f"{name}:{first[0]}: {times} columns are called {column!r}. Rename all but one.")
        return names, rows

    def _chosen(self, names: list[str], name: str) -> Sequence[int]:
        if self.columns is None:
            return range(len(names))
        chosen = [place(column, names, name) for column in self.columns]
        one, times = Counter(chosen).most_common(1)[0]
        if times > 1:
            raise SigmaDataError(f"{name}: column {names[one]!r} is wanted {times} times. Name it once.")
        return chosen

    def _parts(
        self, rows: Iterator[Row], name: str, names: list[str], chosen: Sequence[int], words: set[int]
    ) -> Iterator[list[np.ndarray]]:
        rows = _even(rows, len(names), name)
        while part := list(islice(rows, max(1, CELLS // len(names)))):
            numbers = [line for line, _ in part]
            columns = list(zip(*(row for _, row in part), strict=True))
            yield [
                (self._words if i in words else self._numbers)(columns[i], numbers, f"column {names[i]!r}", name)
                for i in chosen
            ]

    def _words(self, cells: Sequence[str], lines: Sequence[int], column: str, name: str) -> np.ndarray:
        blank = next((line for cell, line in zip(cells, lines, strict=True) if not cell.strip()), None)
        if blank is not None and self.missing == "refuse":
            raise SigmaDataError(f"{name}:{blank}: {column}: a value is missing. Fill it in, or drop the line.")
        return np.array(cells, np.dtypes.StringDType())

    def _numbers(self, cells: Sequence[str], lines: Sequence[int], column: str, name: str) -> np.ndarray:
        try:
            values = np.array(cells, np.float64)
        except ValueError:
            values = np.array(
                [self._number(cell, f"{name}:{line}: {column}") for cell, line in zip(cells, lines, strict=True)]
            )
        if self.missing == "refuse" and not np.isfinite(values).all():
            first = int(np.argmin(np.isfinite(values)))
            raise SigmaDataError(
                f"{name}:{lines[first]}: {column}: {cells[first]!r} is not a finite number. Correct it."
            )
        return values

    def _number(self, cell: str, where: str) -> float:
        gap = cell.strip().lower() in GAPS
        if gap and self.missing == "refuse":
            raise SigmaDataError(f"{where}: a value is missing. Fill it in, or set missing = 'nan'.")
        try:
            return np.nan if gap else float(cell)
        except ValueError:
            raise SigmaDataError(
                f"{where}: {cell!r} is not a number. Correct it, leave the column out, or read it as `text`."
            ) from None


def place(column: str | int, names: Sequence[str], where: str) -> int:
    """Return the number of a column, given by name or by number (from 0; from the end if negative)."""
    if isinstance(column, int):
        if not -len(names) <= column < len(names):
            raise SigmaDataError(f"{where}: there is no column {column}, only 0 to {len(names) - 1}.")
        return column % len(names)
    if column not in names:
        hint = near(column, names) or f" There are: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}."
        raise SigmaDataError(f"{where}: there is no column {column!r}.{hint}")
    return names.index(column)


def _rows(text: TextIOWrapper, delimiter: str, name: str) -> Iterator[Row]:
    """Yield each line that is not blank with its number."""
    reader = csv.reader(lines(text, LONGEST, name), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise SigmaDataError(f"{name}:{reader.line_num}: is not a table: {error}.") from None


def _even(rows: Iterator[Row], width: int, name: str) -> Iterator[Row]:
    for line, row in rows:
        if len(row) != width:
            raise SigmaDataError(f"{name}:{line}: {len(row)} values instead of {width}. Correct this line.")
        yield line, row
