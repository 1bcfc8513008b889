"""Tables of delimited text: CSV and TSV, with types that are inferred from all rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, field

from sigma_data.bounds import CHUNK
from sigma_data.readers.csv import CELLS, CsvReader
from sigma_data.readers.delimited import GAP_WORDS, Parser, Piece, pieces
from sigma_data.readers.figures import Figures
from sigma_data.sources import stamp_of
from sigma_data.tables.batches import RecordBatches, plain_batches, plain_schema
from sigma_data.tables.cells import (
    LOOSE,
    Kind,
    are_small,
    as_kind,
    final_type,
    has_leading_zeros,
    infer_strings,
    is_float,
    join_kinds,
    kind_of,
    line_ranges,
    may_merge,
    merges,
    parsed_type,
)
from sigma_data.tables.dialect import Dialect, detect
from sigma_data.tables.widths import WIDEST, check_width
from sigma_data.threads import map_ahead, map_in_threads
from sigma_kernel import SigmaDataError, Source

HEAD = 1 << 16  # bytes that the dialect is found from
LONG_HEAD = 1 << 23  # bytes that may be read for it where lines are long
END, WIDE_MARKS = re.compile(rb"\r\n?|\n"), (b",", b";", b"\t", b"|", b" ")
LINE = 1 << 28  # bytes of the first line of which the columns are counted
KEPT = 1 << 28  # bytes of parsed rows that are kept from the first pass


def open_text(source: Source, exact: Sequence[str] = (), **given: Any) -> RecordBatches:
    """Return the rows of a delimited text; its dialect is found where it is not ``given``.

    Whole numbers with leading zeros stay texts in ``exact`` columns, such as those of identifiers.
    """
    head = _read_head(source)
    dialect = detect(head, **{name: value for name, value in given.items() if value is not None})
    if b"\0" in head and not dialect.encoding.lower().startswith(("utf-16", "utf-32", "utf_16", "utf_32")):
        raise SigmaDataError(f"{source.name}: holds a zero byte, so it is not text. Give the path of a table.")
    table = TextTable(source, dialect, frozenset(exact))
    schema = plain_schema(pa.schema([(name, final_type(kind)) for name, kind in table.kinds.items()]), source.name)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        return plain_batches(table.read_tables(columns), schema, columns, table.has_nan)

    return RecordBatches(source.name, schema, table.rows, start, table.locate, lambda: stamp_of(source))


@define(eq=False)
class TextTable:
    """A delimited text, and what a first pass says: the kinds of its columns, and the lines of its rows.

    Rows that are not plain are parsed with care, and kept.
    """

    source: Source
    dialect: Dialect
    exact: frozenset[str] = frozenset()
    names: list[str] = field(init=False)
    kinds: dict[str, Kind] = field(init=False, factory=dict)
    lines: list[Sequence[int] | np.ndarray] = field(init=False, factory=list)
    has_nan: bool = field(init=False, default=True)  # whether a number may be NaN
    _before: int = field(init=False)
    _parsed: list[Any] | None = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        """Read all rows once."""
        check_width(_count_columns(self.source, self.dialect), self.source.name)
        line, self.names = self._reader.first_row(self.source)
        check_width(len(self.names), self.source.name)
        self._before = line if self.dialect.header else line - 1
        try:
            self._look_swiftly()
        except (ValueError, NotImplementedError):
            self._read_carefully()
        if not self.rows:
            raise SigmaDataError(f"{self.source.name}: there is no row of values. Check the file.")

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.lines))

    def locate(self, row: int) -> str:
        """Return the file and line of a row."""
        left = row
        for part in self.lines:
            if left < len(part):
                return f"{self.source.name}:{part[left]}"
            left -= len(part)
        return f"{self.source.name}: row {row}"

    def read_tables(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Yield the rows in their types, some at a time."""
        if self._parsed is not None:
            yield from self._parsed
            return
        wanted = self.names if columns is None else columns
        types = {name: parsed_type(self.kinds[name]) for name in wanted}
        yield from map_ahead(lambda piece: self._convert(self._parse(piece, types, wanted)), self._pieces())

    @property
    def _figures(self) -> Figures:
        return Figures(self.dialect.decimal, self.dialect.thousands)

    @property
    def _reader(self) -> CsvReader:
        own = self.dialect
        return CsvReader(
            header=own.header, delimiter=own.delimiter, encoding=own.encoding, decimal=own.decimal,
            thousands=own.thousands,
        )  # fmt: skip

    def _pieces(self) -> Iterator[Piece]:
        return pieces(self.source, self.dialect.encoding, self._before, self.dialect.delimiter, len(self.names))

    def _parse(self, piece: Piece, types: Mapping[str, Any] = {}, columns: Sequence[str] | None = None) -> Any:
        own = self.dialect
        return Parser(self.names, own.delimiter, own.decimal, types, columns, GAP_WORDS).parse(piece)

    def _convert(self, table: Any) -> Any:
        columns = {name: as_kind(table[name], self.kinds[name], self._figures) for name in table.column_names}
        return pa.table(columns)

    def _look_swiftly(self) -> None:
        """Find kinds and lines; keep the parsed rows if there are few."""
        tables, size = list[Any](), 0
        self.has_nan = False
        looked = map_ahead(self._look_into, ((piece, self._likely) for piece in self._pieces()))
        for table, lines, kinds, has_nan in looked:
            self.lines.append(lines)
            self.has_nan |= has_nan
            self.kinds = {name: join_kinds(self.kinds.get(name), kinds[name]) for name in self.names}
            size += table.nbytes
            tables = [*tables, table] if size <= KEPT else []
        try:
            self._parsed = map_in_threads(self._convert, tables) if size <= KEPT else None
        except ValueError:
            self._parsed = None  # pieces differ: they are parsed again in the joined types

    @property
    def _likely(self) -> Mapping[str, Any]:
        """Return the types of columns in earlier pieces; of exact ones, a type would hide how numbers are written."""
        kinds = {name: kind for name, kind in self.kinds.items() if name not in self.exact}
        return {name: parsed_type(kind) for name, kind in kinds.items() if kind not in (None, LOOSE)}

    def _look_into(
        self, item: tuple[Piece, Mapping[str, Any]]
    ) -> tuple[Any, Sequence[int] | np.ndarray, dict[str, Kind], bool]:
        """Return the rows of a piece, their lines, the kinds of the columns, and whether one of these may hold NaN."""
        piece, likely = item
        table = self._parse_swiftly(piece, likely)
        lines = line_ranges(piece.number_rows(table.num_rows))
        large = {name for name in self.names if is_float(table[name]) and not are_small(table[name])}
        kinds = {name: self._kind(table[name], name, piece, name in large) for name in self.names}
        return table, lines, kinds, bool(large) or LOOSE in kinds.values()

    def _parse_swiftly(self, piece: Piece, likely: Mapping[str, Any]) -> Any:
        """Return the rows of a piece; in the types of earlier pieces, if it fits them, which saves time."""
        with suppress(ValueError):
            return self._parse(piece, likely)
        return self._parse(piece)

    def _kind(self, column: Any, name: str, piece: Piece, is_large: bool) -> Kind:
        written = name in self.exact and (pa.types.is_integer(column.type) or is_float(column))
        if written and has_leading_zeros(self._parse(piece, {name: pa.string()}, [name])[name]):
            return pa.string()
        if is_large and may_merge(column):
            cells = self._parse(piece, {name: pa.string()}, [name])[name]
            return pa.string() if merges(column, cells) else pa.float64()
        return kind_of(column, self._figures)

    def _read_carefully(self) -> None:
        """Parse all rows in Python, which knows the line of an error."""
        self.lines, self.has_nan, parts = [], True, []
        rows = self._reader.read_rows(self.source, len(self.names))
        while part := list(islice(rows, max(1, CELLS // len(self.names)))):
            self.lines.append(np.array([line for line, _ in part]))
            cells = zip(*(row for _, row in part), strict=True)
            parts.append(pa.table([pa.array(column, pa.string()) for column in cells], names=self.names))
        if parts:
            whole = pa.concat_tables(parts).combine_chunks()
            self._parsed = [pa.table({name: self._infer(name, whole[name]) for name in self.names})]
            self.kinds = dict(zip(self.names, self._parsed[0].schema.types, strict=True))

    def _infer(self, name: str, cells: Any) -> Any:
        if name in self.exact and has_leading_zeros(cells):
            return as_kind(cells, pa.string(), self._figures)
        return infer_strings(cells, self._figures)


def _read_head(source: Source) -> bytes:
    """Return the beginning of a text: more of it where the first two lines are longer, but not too wide for a table."""
    with source.open() as stream:
        first = head = stream.read(HEAD)
        while len(head) < LONG_HEAD and len(END.findall(head, 0)) < 2:
            more = stream.read(len(head))
            if not more or max(map(head.count, WIDE_MARKS)) > 2 * WIDEST:
                return first
            head += more
    return head


def _count_columns(source: Source, dialect: Dialect) -> int:
    """Return the number of columns of the first line, without keeping it; 0 if it holds quotes, or wide characters."""
    if dialect.encoding.lower().startswith(("utf-16", "utf-32", "utf_16", "utf_32")):
        return 0
    mark, count = dialect.delimiter.encode(dialect.encoding.removesuffix("-sig")), 1
    with source.open() as stream:
        for _ in range(LINE // CHUNK):
            piece, end, _ = stream.read(CHUNK).replace(b"\r", b"\n").partition(b"\n")
            if b'"' in piece:
                return 0
            count += piece.count(mark)
            if end or not piece:
                break
    return count
