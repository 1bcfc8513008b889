"""Read CSV files, with missing values, decimal marks and line numbers in errors."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from itertools import chain, islice
from typing import ClassVar, Literal

import numpy as np
from attrs import field, frozen

from sigma_data.labels import EXACT
from sigma_data.readers.figures import DECIMAL, GAPS, THOUSANDS, Figures, differ, truth
from sigma_data.readers.lines import as_text, lines
from sigma_kernel import Reader, SigmaDataError, Source
from sigma_kernel.errors import suggest_name
from sigma_kernel.settings import in_, matches_re, min_len, optional

CELLS = 1_000_000  # values held as text at once
LONGEST = 1 << 24  # characters of a line
SMALL = 1 << 19  # bytes of a table that is parsed sooner than Arrow is imported
WIDEST = 10_000  # columns of a table that Arrow parses

DELIMITER = matches_re(r'[^"\r\n]', "one character, neither a quote nor the end of a line")
SEPARATORS = {";": ";", "\t": "\\t", "|": "|", ",": ",", " ": " "}  # as written in a configuration

REST = "*"  # among the columns of a section: every column that no section names

STRINGS = np.dtypes.StringDType()

Row = tuple[int, list[str]]  # with the number of its line in the file


@frozen
class CsvReader(Reader):
    """Read a table as one array per column, by the names in its header, or by number from 0 without a ``header``.

    Columns hold numbers (float64), except those in ``text`` (strings); ``true`` and ``false`` are 1 and 0 in a column
    of these alone. A value is missing if its cell is blank, ``?``, ``NA``, ``NaN``, ``None`` or ``null``; with
    ``missing="nan"`` it becomes NaN. Among words, only a blank is missing, and stays blank. Raises SigmaDataError, with
    ``file:line``, for other missing values, for cells that are not numbers, for integers beyond 2**53, which floats
    merge, and for lines with too many or too few values.

    A plain table of 512 KiB or more is parsed by Arrow.

    Args:
        columns: Columns to read, by name or number; the others are not parsed. By default all.
        text: Columns that hold words.
        header: Whether the first line holds the names of columns.
        delimiter: Character between two values.
        missing: Whether a missing number is refused, or becomes NaN.
        encoding: Encoding of the file.
        decimal: Decimal mark.
        thousands: Separator of groups of three digits; none by default.
    """

    columns: tuple[str | int, ...] | None = field(default=None, validator=optional(min_len(1)))
    text: tuple[str | int, ...] = ()
    header: bool = True
    delimiter: str = field(default=",", validator=DELIMITER)
    missing: Literal["refuse", "nan"] = field(default="refuse", validator=in_(("refuse", "nan")))
    encoding: str = "utf-8-sig"
    decimal: str = field(default=".", validator=DECIMAL, kw_only=True)
    thousands: str | None = field(default=None, validator=[THOUSANDS, differ], kw_only=True)

    gap_advice: ClassVar[str] = "set missing = 'nan'"  # the remedies for a missing value and for words
    names_advice: ClassVar[str] = "or set header = true"
    words_advice: ClassVar[str] = "name the column in `text`, or the others in `columns`"

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return the columns."""
        return self.table(source)[1]

    def top(self, source: Source) -> list[str]:
        """Return the cells of the first line."""
        with self._open_text(source) as text:
            return _read_first(_rows(text, self.delimiter, source.name), source.name)[1]

    def first_row(self, source: Source) -> tuple[int, list[str]]:
        """Return the number of the first line, and the names of the columns."""
        with self._open_text(source) as text:
            line, first = _read_first(_rows(text, self.delimiter, source.name), source.name)
        return line, self._names(line, first, source.name)

    def read_rows(self, source: Source, width: int) -> Iterator[Row]:
        """Yield the cells of each row, with its line; SigmaDataError if there are more or fewer than ``width``."""
        with self._open_text(source) as text:
            rows = _rows(text, self.delimiter, source.name)
            if self.header:
                next(rows)
            yield from _check_widths(rows, width, source.name)

    def table(self, source: Source) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the line number of each row, and the columns."""
        name = source.name
        with self._open_text(source) as text:
            line, first = _read_first(rows := _rows(text, self.delimiter, name), name)
            names, advice = self._names(line, first, name), self._advice(first)
            chosen = self._select_columns(names, name, advice)
            words = {place(column, names, name, advice) for column in self.text}
            truths = _truths(rows if self.header else chain([(line, first)], rows), {*chosen} - words)
        read = names, chosen, words | truths
        lines, *columns = self._swiftly(source, line, *read) or self._carefully(source, *read) or [np.array([])]
        if not len(lines):
            raise SigmaDataError(f"{name}: there is no row of values.{advice or ' Check the file.'}")
        by_place = dict(zip(chosen, columns, strict=True))
        by_place |= {i: self._from_truths(by_place[i].tolist(), lines, f"column {names[i]!r}", name) for i in truths}
        return lines, {names[i]: column for i, column in by_place.items()}

    @contextmanager
    def _open_text(self, source: Source) -> Iterator[TextIOWrapper]:
        with source.open() as stream, as_text(stream, self.encoding, newline="") as text:
            yield text

    @property
    def figures(self) -> Figures:
        """Return the format of numbers."""
        return Figures(self.decimal, self.thousands)

    def _names(self, line: int, cells: list[str], name: str) -> list[str]:
        if not self.header:
            return [str(i) for i in range(len(cells))]
        names = [cell.strip() for cell in cells]
        column, times = Counter(names).most_common(1)[0]
        if times > 1:
            raise SigmaDataError(
                f"{name}:{line}: {times} columns are called {column!r}. Rename all but one; or set header = false, "
                "if this line holds values."
            )
        return names

    def _advice(self, cells: list[str]) -> str:
        """Return the setting to change if the first line does not match the settings."""
        if len(cells) == 1 and (mark := next((sep for sep in SEPARATORS if sep in cells[0].strip()), None)):
            return f" If {SEPARATORS[mark]} stands between values, set delimiter = '{SEPARATORS[mark]}'."
        if not self.header:
            return " With header = false, columns are called by their numbers."
        if any(self.figures.is_number(cell) for cell in cells):
            return " If the first line holds values instead of names, set header = false."
        return ""

    def _select_columns(self, names: list[str], name: str, advice: str) -> Sequence[int]:
        if self.columns is None:
            return range(len(names))
        chosen = [place(column, names, name, advice) for column in self.columns]
        index, times = Counter(chosen).most_common(1)[0]
        if times > 1:
            raise SigmaDataError(f"{name}: column {names[index]!r} is named {times} times. Name it once.")
        return chosen

    # -- fast path, for plain tables -----------------------------------------------------------------------------------
    def _swiftly(
        self, source: Source, line: int, names: list[str], chosen: Sequence[int], words: set[int]
    ) -> list[np.ndarray]:
        """Return lines and columns; nothing if the table is small, or not plain and needs the slow path."""
        with suppress(ValueError, NotImplementedError, SigmaDataError):  # reported later
            if self.thousands is None and len(names) <= WIDEST and chosen and not _is_small(source):
                from sigma_data.readers import swift  # Arrow, whose import takes as long as parsing a small table

                spelling = swift.Spelling(self.encoding, self.delimiter, self.decimal, self.missing == "nan")
                return swift.read(source, spelling, line if self.header else line - 1, len(names), chosen, words)
        return []

    # -- slow path, for all tables -------------------------------------------------------------------------------------
    def _carefully(self, source: Source, names: list[str], chosen: Sequence[int], words: set[int]) -> list[np.ndarray]:
        """Return lines and columns; nothing if there are no rows."""
        rows = self.read_rows(source, len(names))
        parts = [*self._parts(rows, source.name, names, chosen, words)]
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _parts(
        self, rows: Iterator[Row], name: str, names: list[str], chosen: Sequence[int], words: set[int]
    ) -> Iterator[list[np.ndarray]]:
        while part := list(islice(rows, max(1, CELLS // len(names)))):
            numbers = [line for line, _ in part]
            columns = list(zip(*(row for _, row in part), strict=True))
            parsed = [
                (self._words if i in words else self._numbers)(columns[i], numbers, f"column {names[i]!r}", name)
                for i in chosen
            ]
            yield [np.array(numbers), *parsed]

    def _words(self, cells: Sequence[str], lines: Sequence[int], column: str, name: str) -> np.ndarray:
        if self.missing == "refuse":
            blank = next((line for cell, line in zip(cells, lines, strict=True) if not cell.strip()), None)
            if blank is not None:
                raise self._gap(f"{name}:{blank}: {column}")
        return np.array(cells, STRINGS)

    def _numbers(self, cells: Sequence[str], lines: Sequence[int], column: str, name: str) -> np.ndarray:
        with suppress(ValueError):  # reported below, with the line
            values = self.figures.values(cells)
            if np.isfinite(values).all() and (np.abs(values) < EXACT).all():
                return values
        return np.array([self._number(c, f"{name}:{n}: {column}", n) for c, n in zip(cells, lines, strict=True)])

    def _number(self, cell: str, where: str, line: int) -> float:
        if is_gap(cell):
            if self.missing == "refuse":
                raise self._gap(where)
            return np.nan
        try:
            value = self.figures.value(cell)
        except ValueError:
            header = "" if self.header or line > 1 else f", {self.names_advice} if this line holds names"
            advice = f"Correct it, {self.words_advice}{header}.{self.figures.advice(cell)}"
            raise SigmaDataError(f"{where}: {cell!r} is not a number. {advice}") from None
        if not np.isfinite(value):
            raise SigmaDataError(f"{where}: {cell!r} is not a finite number. Correct it.")
        if self.figures.merges(cell, value):
            raise inexact_integer_error(where, cell, value, self.words_advice)
        return value

    def _from_truths(self, cells: Sequence[str], lines: np.ndarray, column: str, name: str) -> np.ndarray:
        values = [truth(cell) for cell in cells]
        for i in (i for i, value in enumerate(values) if value is None):
            where = f"{name}:{lines[i]}: {column}"
            if not is_gap(cells[i]):
                advice = f"Make the values of the column alike, {self.words_advice}"
                raise SigmaDataError(f"{where}: {cells[i]!r} is neither true nor false. {advice}.")
            if self.missing == "refuse":
                raise self._gap(where)
        return np.array([np.nan if value is None else value for value in values])

    def _gap(self, where: str) -> SigmaDataError:
        return SigmaDataError(f"{where}: a value is missing. Fill it in, or {self.gap_advice}.")


def _is_small(source: Source) -> bool:
    with source.open() as stream:
        return len(stream.read(SMALL)) < SMALL


def _truths(rows: Iterator[Row], wanted: set[int]) -> set[int]:
    """Return the columns whose first value is true or false."""
    pending, places = {*wanted}, set[int]()
    for _, row in rows:
        if not pending:
            break
        there = {i for i in pending if i < len(row) and not is_gap(row[i])}
        places |= {i for i in there if truth(row[i]) is not None}
        pending -= there
    return places


def inexact_integer_error(where: str, cell: str, value: float, advice: str) -> SigmaDataError:
    """Return the error for an integer that a float cannot tell from its neighbours."""
    return SigmaDataError(
        f"{where}: floats cannot tell {cell.strip()} from its neighbours, as it is beyond 2**53. Write it as a float, "
        f"such as {value:.3e}, {advice}."
    )


def is_gap(cell: str) -> bool:
    """Return whether a cell stands for a missing value."""
    return cell.strip().lower() in GAPS


def place(column: str | int, names: Sequence[str], where: str, advice: str = "") -> int:
    """Return the index of a column, given by name or by number (from 0; from the end if negative).

    Raises SigmaDataError for columns that are not there, and for a number that is the name of another column.
    """
    if isinstance(column, int):
        if str(column) in names and names.index(str(column)) != column:
            number = f"number {column} is {names[column]!r}, and " if column < len(names) else ""
            raise SigmaDataError(
                f"{where}: {number}another column is called {str(column)!r}. Write its name in quotes."
            )
        if not -len(names) <= column < len(names):
            raise SigmaDataError(f"{where}: there is no column {column}, only 0 to {len(names) - 1}.{advice}")
        return column % len(names)
    if column not in names:
        hint = suggest_name(column, names) or f" There are: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}."
        raise SigmaDataError(f"{where}: there is no column {column!r}.{hint}{advice}")
    return names.index(column)


def separator(source: Source, encoding: str) -> str:
    """Return the separator of the first line; a comma if it has a single value."""
    with source.open() as stream, as_text(stream, encoding) as text:
        first = next(lines(text, LONGEST, source.name), "").strip()
    return next((mark for mark in SEPARATORS if mark in first), ",")


def _rows(text: TextIOWrapper, delimiter: str, name: str) -> Iterator[Row]:
    """Yield each line that is not blank, with its number."""
    reader = csv.reader(lines(text, LONGEST, name), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise SigmaDataError(f"{name}:{reader.line_num}: is not a table: {error}. Correct the quotes there.") from None


def _read_first(rows: Iterator[Row], name: str) -> Row:
    if (first := next(rows, None)) is None:
        raise SigmaDataError(f"{name}: the file is empty. Check the path.")
    return first


def _check_widths(rows: Iterator[Row], width: int, name: str) -> Iterator[Row]:
    for line, row in rows:
        if len(row) != width:
            raise SigmaDataError(
                f"{name}:{line}: {len(row)} values instead of {width}. Correct this line, or `delimiter`."
                + suggest_texts(name)
            )
        yield line, row


def suggest_texts(name: str) -> str:
    """Return a hint, after a blank, that a file may be running text; empty unless it is called ``.txt``."""
    setting = f' If it is running text, write dataset = "texts" and folder = {name!r} in a configuration.'
    return setting if name.lower().endswith(".txt") else ""
