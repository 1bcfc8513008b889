"""Tables in the sheets of spreadsheets: Excel (.xlsx) and OpenDocument (.ods), by python-calamine."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from importlib import import_module
from itertools import islice
from typing import Any

import pyarrow as pa
from attrs import frozen

from sigma_data.readers.figures import GAPS
from sigma_data.sources import stamp_of
from sigma_data.sources.unpacked import read_all
from sigma_data.tables.batches import ROWS, RecordBatches, plain_batches, plain_schema
from sigma_data.tables.cell_counts import check_sizes
from sigma_kernel import SigmaConfigError, SigmaDataError, SigmaPluginError, Source
from sigma_kernel.errors import suggest_name

MARKS = ("xl/workbook.xml", "content.xml")  # members that workbooks of Excel and OpenDocument have
EXACT = 2.0**53
KINDS = {bool: "truth", int: "number", float: "number", str: "word", date: "date", datetime: "date and time",
         time: "time", timedelta: "duration"}  # fmt: skip
TYPES = {"truth": pa.bool_(), "word": pa.string(), "date": pa.date32(), "date and time": pa.timestamp("us"),
         "time": pa.string(), "duration": pa.float64(), "number": pa.float64()}  # fmt: skip


def is_spreadsheet(stream: Any) -> bool:
    """Return whether a zip archive is a workbook, by the names of its members; the stream stays where it is."""
    here = stream.tell()
    try:
        names = zipfile.ZipFile(stream).namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
    finally:
        stream.seek(here)
    return any(mark in names for mark in MARKS)


def open_spreadsheet(source: Source, sheet: str | None, limit: int) -> RecordBatches:
    """Return the rows of a sheet; its first row that is not blank names the columns.

    Dates are dates, durations seconds.  Blank cells, formulas that ended in an error, and words such as ``NA`` among
    numbers are missing.  Raises SigmaDataError, with sheet and cell, for a column that mixes kinds of values.
    """
    content = read_all(source, limit).content
    check_sizes(content, source.name, limit)
    held = _read_sheet(content, source.name, sheet)
    schema = plain_schema(pa.schema(held.find_types()), source.name)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        return plain_batches(held.make_tables(schema), schema, columns)

    def locate(row: int) -> str:
        return f"{held.where}, row {held.rows[row] + 1}" if row < len(held.rows) else f"{held.where}: row {row}"

    return RecordBatches(source.name, schema, len(held.rows), start, locate, lambda: stamp_of(source))


@frozen(eq=False)
class Sheet:
    """The cells of a sheet below the row with the names of its columns."""

    where: str  # file and sheet
    names: dict[int, str]  # by column
    rows: list[int]  # of the sheet, counted from 0, that hold values
    cells: Any  # of calamine

    def read(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield each row that holds values, with its number."""
        there = iter(self.rows)
        at = next(there, None)
        for number, row in enumerate(self.cells.iter_rows()):
            if number == at:
                yield number, row
                at = next(there, None)

    def check_unnamed(self, top: int, columns: Sequence[int]) -> None:
        """Raise SigmaDataError for a column without a name in the row ``top`` that has values."""
        for number, row in self.read() if columns else ():
            if (column := next((i for i in columns if _kind_of(row[i])), None)) is not None:
                raise SigmaDataError(
                    f"{self.where}, cell {cell_name(top, column)}: there is no name for this column, which has a "
                    f"value in {cell_name(number, column)}. Name it, or delete what is above and beside the table."
                )

    def find_types(self) -> list[tuple[str, Any]]:
        """Return the names and types of the columns; raises SigmaDataError for a column that mixes kinds."""
        first: dict[int, dict[str, int]] = {column: {} for column in self.names}
        whole = dict.fromkeys(self.names, True)
        for number, row in self.read():
            for column, kinds in first.items():
                kind = _kind_of(value := row[column])
                kinds.setdefault(kind, number)
                if kind == "number" and whole[column]:
                    whole[column] = float(value).is_integer() and abs(value) < EXACT
        return [(name, self._type_of(column, first[column], whole[column])) for column, name in self.names.items()]

    def _type_of(self, column: int, first: dict[str, int], whole: bool) -> Any:
        kinds = {kind: row for kind, row in first.items() if kind not in ("", "gap")}
        if {*kinds} == {"date", "date and time"}:
            return TYPES["date and time"]
        if len(kinds) > 1:
            (_, before), (kind, row) = sorted(kinds.items(), key=lambda pair: pair[1])[:2]
            raise SigmaDataError(
                f"{self.where}, cell {cell_name(row, column)}: holds a {kind}, in a column whose cell "
                f"{cell_name(before, column)} holds a {next(k for k in kinds if kinds[k] == before)}. "
                "Make the cells of a column alike."
            )
        kind = next(iter(kinds), "word" if "gap" in first else "number")
        return pa.int64() if kind == "number" and kinds and whole else TYPES[kind]

    def make_tables(self, schema: Any) -> Iterator[Any]:
        """Yield the rows as Arrow tables."""
        rows = (row for _, row in self.read())
        while part := list(islice(rows, ROWS)):
            yield pa.table([_as_array([row[i] for row in part], schema.field(self.names[i]).type) for i in self.names],
                           schema=schema)  # fmt: skip


def _kind_of(value: Any) -> str:
    if isinstance(value, str):
        return "" if not value.strip() else "gap" if value.strip().lower() in GAPS else "word"
    return KINDS.get(type(value), "")


def _as_array(values: Iterable[Any], kind: Any) -> Any:
    return pa.array([_as_value(value, kind) for value in values], kind)


def _as_value(value: Any, kind: Any) -> Any:
    if isinstance(value, str):
        return value if pa.types.is_string(kind) and value.strip() else None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, time):
        return value.isoformat()
    if pa.types.is_integer(kind):
        return int(value)
    if type(value) is date and kind == TYPES["date and time"]:
        return datetime(value.year, value.month, value.day)
    return value


def cell_name(row: int, column: int) -> str:
    """Return the name of a cell in a spreadsheet, such as ``B17``; both numbers are from 0."""
    letters, left = "", column + 1
    while left:
        left, digit = divmod(left - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return f"{letters}{row + 1}"


def _read_sheet(content: bytes, name: str, sheet: str | None) -> Sheet:
    calamine = _calamine()
    try:
        workbook = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        chosen = _choose(workbook.sheet_names, sheet, name)
        cells = workbook.get_sheet_by_name(chosen)
    except (SigmaDataError, SigmaConfigError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
        raise SigmaDataError(f"{name}: cannot be read ({reason}). Save it again.") from error
    return _find_table(cells, f"{name}: sheet {chosen!r}")


def _find_table(cells: Any, where: str) -> Sheet:
    """Return the table in the cells of a sheet."""
    numbers, titles = [], None
    for number, row in enumerate(cells.iter_rows()):
        if all(_kind_of(value) == "" for value in row):
            continue
        if titles is None:
            titles = number, row
        else:
            numbers.append(number)
    if titles is None:
        raise SigmaDataError(f"{where}: is empty. Choose another sheet.")
    if not numbers:
        raise SigmaDataError(f"{where}: there is no row of values below that of the names. Check the sheet.")
    names = {i: _title(value) for i, value in enumerate(titles[1])}
    table = Sheet(where, {i: title for i, title in names.items() if title}, numbers, cells)
    table.check_unnamed(titles[0], [i for i, title in names.items() if not title])
    return table


def _title(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def _choose(names: Sequence[str], sheet: str | None, name: str) -> str:
    """Return the name of the sheet to read."""
    if sheet is None and len(names) != 1:
        shown = ", ".join(map(repr, names[:12])) or "none"
        raise SigmaDataError(f"{name}: has {len(names)} sheets: {shown}. Name one as `sheet`.")
    chosen = names[0] if sheet is None else sheet
    if chosen not in names:
        raise SigmaConfigError(f"sheet: {name} has no {chosen!r}.{suggest_name(chosen, names, 'It has')}")
    return chosen


def _calamine() -> Any:
    try:
        return import_module("python_calamine")
    except ImportError as error:
        raise SigmaPluginError(
            'spreadsheets need python-calamine. Install it: python -m pip install "sigma-data[spreadsheets]"'
        ) from error
