"""Prepare a table that is larger than memory: fit the encoders some columns at a time, then encode batch by batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import define, evolve, frozen

from sigma_data.encoded import EncodedColumn, EncodedColumns, EncoderMaker, Place, join
from sigma_data.frames import check_names
from sigma_data.pictures.progress import DecodingProgress, report
from sigma_data.prepared.blocks import PreparedRows
from sigma_data.prepared.entries import PreparedEntry
from sigma_data.prepared.files import Original, is_columnar
from sigma_data.prepared.remote import ASIDE, COPY
from sigma_data.sources.file import File
from sigma_data.tables.batches import RecordBatches
from sigma_data.tables.parquet import open_parquet
from sigma_data.threads import map_in_threads
from sigma_kernel import Encoder, SigmaDataError

AT_ONCE = 1 << 23  # numbers that are encoded at once
MANY = 1 << 22  # cells of columns that are read together, and rows from which on one column at a time is in memory
WORDY = 32  # cells that one of words, or of other values of any length, counts for
HEAVY = 1 << 26  # bytes of a column from which on one column at a time is in memory
NOTED = 1 << 28  # bytes after which it is noted how many rows are written
ROWS = "rows.parquet"  # the table

Choose = Callable[[str, Any], tuple[Encoder | None, bool]]  # from a column; whether it names the rows
Chosen = Mapping[str, tuple[EncodedColumn | None, bool]]
Sections = dict[str, EncodedColumns]


@frozen(eq=False)
class EncodedPart:
    """Numbers of some rows and neighbouring columns of a section, and ``where`` they are in its array.

    ``elements`` are the names of the columns, and ``place`` has the places of the rows.
    """

    section: str
    where: Any
    values: np.ndarray
    elements: Sequence[str]
    place: Place


class RowsToEncode(Protocol):
    """The rows of a table that are prepared, in an order of their own."""

    @property
    def total(self) -> int:
        """Return how many rows the table has."""

    @property
    def count(self) -> int:
        """Return how many rows there are."""

    def encode(self, columns: Sections, batch: Any, first: int) -> Iterable[EncodedPart]:
        """Return the numbers of a batch of the table, of which this is the first row."""


@frozen(eq=False)
class Selection:
    """The rows of a table that have a target: their ``numbers`` in it, in order, and which are of the ``training``.

    There are no numbers if they are all rows, in the order of the table. ``goals`` are what encoders learn from, one
    number or class for each training row, and ``place`` has the places of rows for errors.
    """

    total: int
    numbers: np.ndarray | None
    training: np.ndarray
    goals: np.ndarray | None
    place: Place

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        return self.total if self.numbers is None else len(self.numbers)

    @property
    def without_training(self) -> Selection:
        """Return the same rows, none of which is of the training."""
        return evolve(self, training=self.training[:0], goals=None)

    @cached_property
    def ranks(self) -> np.ndarray | None:
        """Return the place of each row of the table among these, -1 if it is none; None if they are all, in order."""
        if self.numbers is None:
            return None
        ranks = np.full(self.total, -1)
        ranks[self.numbers] = np.arange(len(self.numbers))
        return ranks

    @cached_property
    def training_ranks(self) -> np.ndarray:
        """Return the place of each row among those of the training, -1 if it is none."""
        ranks = np.full(self.count, -1)
        ranks[self.training] = np.arange(len(self.training))
        return ranks

    def take(self, column: Any) -> Any:
        """Return the rows of a column of the table."""
        return column if self.numbers is None else column.take(pa.array(self.numbers))

    def encode(self, columns: Sections, batch: Any, first: int) -> Iterator[EncodedPart]:
        """Yield the sections of a batch of the table, of which this is the first row."""
        encoded = EncodedBatch.from_batch(columns, batch, first, self)
        for name, values in encoded.sections.items():
            yield EncodedPart(name, encoded.rows, values, columns[name].elements, encoded.place)


@define(eq=False, slots=False)
class PreparedTable:
    """A table, and its entry in the cache.

    ``stamps`` are what ``original`` told of its content when the entry was named; ``dtype`` is that of encoded numbers,
    and ``encoders`` are those that were given, by column.
    """

    name: str
    original: Original
    stamps: Sequence[Any]
    entry: PreparedEntry
    dtype: str
    encoders: Mapping[str, Encoder]

    @cached_property
    def source(self) -> RecordBatches:
        """Return the table as it is before it is prepared."""
        return self.original.open(self.entry)  # type: ignore[no-any-return]

    @cached_property
    def names(self) -> Sequence[str]:
        """Return the names of the columns; a text that is prepared need not be read for them."""
        names: Sequence[str] = self.entry.read().get("names", ())
        return names or self.source.schema.names

    def place(self, row: int) -> str:
        """Return where a row of the table is."""
        return self.source.place(row)

    # -- columns -------------------------------------------------------------------------------------------------------
    def read_aside(self, names: Sequence[str]) -> Any:
        """Return the columns that are not encoded; those of a text, and of a file elsewhere, are copied once."""
        if not self.original.is_copied and self._columnar:
            return self.source.read(names)
        with self.entry.hold_lock():
            path = self.entry.folder / ASIDE
            if not path.exists():
                table = self._open_columns().read(names)
                with self.entry.replacing(ASIDE) as part:
                    pq.write_table(table, part)
            return open_parquet(File(path)).read(names)

    @cached_property
    def _columnar(self) -> bool:
        return is_columnar(self.original.list_files(self.entry))

    def _open_columns(self) -> RecordBatches:
        """Return the table in a format of which single columns can be read; others are copied to Parquet."""
        if self._columnar:
            return self.source
        path, progress = self.entry.folder / ROWS, DecodingProgress(self.name, self.source.rows or 0, "rows copied")
        if not path.exists():
            report(f"{self.name}: is copied to {path}, as columns are read one by one.")
            with self.entry.replacing(ROWS) as part, pq.ParquetWriter(part, self.source.schema) as writer:
                for batch in self.source:
                    writer.write_batch(batch)
                    progress.advance(batch.num_rows)
        return open_parquet(File(path))

    # -- encoding ------------------------------------------------------------------------------------------------------
    def encode(self, selection: Selection, fit: Callable[[RecordBatches], Sections]) -> dict[str, PreparedRows]:
        """Return the sections of the selected rows, mapped to memory; see :meth:`prepare`."""
        arrays, columns = self.prepare(selection, fit)
        encode_by = partial(self._encode_by, selection.without_training)  # which is less to keep
        return {
            name: PreparedRows(arrays[name], own.titles, own, self.name, encode_by=encode_by)
            for name, own in columns.items()
        }

    def prepare(self, rows: RowsToEncode, fit: Callable[[RecordBatches], Sections]) -> tuple[dict[str, Any], Sections]:
        """Return the array of each section, mapped to memory, and its columns; they are prepared if they are not there.

        ``fit`` returns the columns of each section, fitted.  Raises SigmaDataError for values that encoders refuse, for
        files that change meanwhile, and for a full disk.
        """
        with self.entry.hold_lock():
            document = self.entry.read()
            if not document.get("complete") or not self._map(document):
                document = self._prepare(document, rows, fit)
            arrays, columns = self._map(document), self._read_columns(document)
            self.entry.touch()
        return arrays, columns

    def _encode_by(self, selection: Selection, columns: EncodedColumns) -> PreparedRows:
        """Return a section by the columns of the training, of other rows."""
        check_names(dict.fromkeys(self.names), columns.names, self.names, self.name)
        key = name_entry([self.entry.folder.name, columns.to_plain()])
        encoders = {column.name: column.encoder for column in columns.columns}
        other = evolve(self, entry=PreparedEntry(self.entry.folder.with_name(key)), encoders=encoders)
        if not other.entry.read().get("complete"):
            self.original.copy_to(other.entry)
        return other.encode(selection, lambda rows: {columns.section: columns})[columns.section]

    def _prepare(
        self, document: dict[str, Any], rows: RowsToEncode, fit: Callable[[RecordBatches], Sections]
    ) -> dict[str, Any]:
        """Write all sections; return the document of the entry."""
        if document.get("complete"):  # and arrays are missing
            document = {name: document[name] for name in ("source", "names", "columns")}
            self.entry.write(document)
        try:
            if "columns" not in document:
                columns = {name: own.to_plain() for name, own in fit(self._open_columns()).items()}
                about = {"source": self.name, "names": [*self.names], "columns": columns}
                document = json.loads(json.dumps(about))
                self.entry.write(document)
            self._write(document, rows)
            if self.original.describe() != self.stamps:
                raise SigmaDataError(
                    f"{self.name}: has changed while it was prepared. Start again when it is complete."
                )
        except SigmaDataError:  # what is written is of no use
            self.entry.clear()
            raise
        document["complete"] = True
        self.entry.write(document)
        for name in (ROWS, COPY):
            (self.entry.folder / name).unlink(missing_ok=True)
        pa.default_memory_pool().release_unused()
        return document

    def _write(self, document: dict[str, Any], rows: RowsToEncode) -> None:
        """Encode the rows and write them, from the first that has not been written yet."""
        columns, arrays = self._read_columns(document), self._map(document, "r+")
        first = noted = document.get("done", 0) if arrays else 0
        progress = DecodingProgress(self.name, rows.total, "rows prepared")
        progress.advance(first)
        for batch in self._read_batches(columns, first):
            for part in rows.encode(columns, batch, first):
                if part.section not in arrays:
                    shape = (rows.count, len(columns[part.section].elements))
                    arrays[part.section] = self._create(document, part.section, shape, part.values)
                arrays[part.section][part.where] = self._cast(part)
            first += batch.num_rows
            progress.advance(batch.num_rows)
            if (first - noted) * sum(array[:1].nbytes for array in arrays.values()) >= NOTED:
                noted = self._note(document, arrays, first)
        self._note(document, arrays, first)

    def _note(self, document: dict[str, Any], arrays: Mapping[str, Any], done: int) -> int:
        """Note that so many rows of the table are on the disk."""
        for array in arrays.values():
            array.flush()
        document["done"] = done
        self.entry.write(document)
        return done

    def _read_batches(self, columns: Sections, first: int) -> Iterator[Any]:
        """Yield the rows of the table from the first on, few enough at once."""
        names = dict.fromkeys(name for own in columns.values() for name in own.names)
        size = max(1, AT_ONCE // sum(len(own.elements) for own in columns.values()))
        for batch in self._open_columns().select([*names]):
            skipped = min(first, batch.num_rows)
            first -= skipped
            for start in range(skipped, batch.num_rows, size):
                yield batch.slice(start, size)

    def _create(self, document: dict[str, Any], name: str, shape: tuple[int, ...], values: np.ndarray) -> Any:
        """Return a new array for a section, floats in the dtype of the table."""
        dtype = np.dtype(self.dtype) if values.dtype.kind == "f" else values.dtype
        report(f"{self.name}: {np.prod(shape) * dtype.itemsize / 1e6:,.0f} MB are prepared in {self.entry.folder}.")
        array = self.entry.create(name, shape, dtype)
        document.setdefault("arrays", {})[name] = {"shape": [*shape], "dtype": dtype.str}
        return array

    def _cast(self, part: EncodedPart) -> np.ndarray:
        """Return numbers in the dtype of the table; raise SigmaDataError for one that is too large."""
        if part.values.dtype.kind != "f":
            return part.values
        with np.errstate(over="ignore"):
            cast = part.values.astype(self.dtype)
        if (wrong := ~np.isfinite(cast)).any():
            row, column = np.argwhere(wrong)[0]
            number, where = part.values[row, column], f"{part.place(int(row))}: {part.elements[column]!r}"
            if np.isfinite(number):
                raise SigmaDataError(
                    f"{where} is {number:g}, too large for {self.dtype}. Scale it, or set block_dtype = 'float64'."
                )
            raise SigmaDataError(
                f"{where} is {number:g} when it is encoded. Correct the value, leave the row out, or choose another "
                "encoder."
            )
        return cast

    # -- the document --------------------------------------------------------------------------------------------------
    def _read_columns(self, document: Mapping[str, Any]) -> Sections:
        """Return the columns of each section."""
        return {name: self._read_section(name, about) for name, about in document["columns"].items()}

    def _read_section(self, section: str, about: Mapping[str, Any]) -> EncodedColumns:
        make = EncoderMaker().make
        columns = [
            EncodedColumn(name, self.encoders.get(name) or make(own["encoder"]), own["state"])
            for own in about["columns"]
            for name in [own["name"]]
        ]
        return EncodedColumns(tuple(columns), section=section, kept=tuple(about.get("kept", ())))

    def _map(self, document: Mapping[str, Any], mode: str = "r") -> dict[str, Any]:
        """Return the array of each section, mapped to memory; none if one is not there."""
        arrays = {
            name: self.entry.map(name, tuple(about["shape"]), np.dtype(about["dtype"]), mode)
            for name, about in document.get("arrays", {}).items()
        }
        return arrays if all(array is not None for array in arrays.values()) else {}


@frozen(eq=False)
class EncodedBatch:
    """The selected rows of a batch: where they are among all of these, their places, and their sections."""

    rows: Any
    place: Place
    sections: Mapping[str, np.ndarray]

    @classmethod
    def from_batch(cls, columns: Sections, batch: Any, first: int, selection: Selection) -> EncodedBatch:
        """Return the rows of a batch of the table, of which this is the first, as their columns encode them."""
        table, rows = pa.Table.from_batches([batch]), np.arange(first, first + batch.num_rows)
        if selection.ranks is not None:
            rows = selection.ranks[rows]
            table, rows = table.filter(pa.array(rows >= 0)), rows[rows >= 0]
        place: Place = lambda row: selection.place(int(rows[row]))  # noqa: E731
        if not len(rows):
            return cls(rows, place, {})
        numbers = selection.training_ranks[rows]
        training = np.flatnonzero(numbers >= 0)
        sections = {name: own.apply(table, place, training, numbers[training]) for name, own in columns.items()}
        return cls(rows if selection.ranks is not None else slice(first, first + len(rows)), place, sections)


def fit_columns(
    rows: RecordBatches, names: Sequence[str], selection: Selection, choose: Choose
) -> dict[str, tuple[EncodedColumn | None, bool]]:
    """Return the encoder of each column, fitted on the training rows; some columns at a time are in memory."""
    progress, training = DecodingProgress(rows.name, len(names), "columns fitted"), pa.array(selection.training)
    place: Place = lambda row: selection.place(int(selection.training[row]))  # noqa: E731

    def fit(name: str, column: Any) -> tuple[EncodedColumn | None, bool]:
        encoder, names_rows = choose(name, column)
        fitted = None
        if encoder is not None:
            table = pa.table({name: join(column).take(training)})
            fitted = EncodedColumn(name, encoder).fit(table, selection.goals, place)
        progress.advance()
        return fitted, names_rows

    def fit_group(group: Sequence[str]) -> list[tuple[EncodedColumn | None, bool]]:
        table = rows.read(group)
        return [fit(name, selection.take(table[name])) for name in group]

    groups = group_columns(rows, names, selection.total)
    is_light = selection.total < MANY and max(rows.sizes.values(), default=0) < HEAVY
    fitted = map_in_threads(fit_group, groups, most=2 if is_light else 1)
    return dict(zip(names, chain.from_iterable(fitted), strict=True))


def group_columns(table: RecordBatches, names: Sequence[str], rows: int) -> list[list[str]]:
    """Return the columns in groups that are read together, each of at most MANY cells or of one column.

    Each reading looks at the description of the whole file, which is long if there are many columns.
    """
    groups, cells = list[list[str]](), MANY
    most = max(1, len(names) // 2)  # so that two threads have work
    for name in names:
        is_plain = pa.types.is_primitive(table.schema.field(name).type)
        more = rows if is_plain else max(rows * WORDY, table.sizes.get(name, 0) // 8)
        cells += more
        if cells > MANY or len(groups[-1]) == most:
            groups.append([])
            cells = more
        groups[-1].append(name)
    return groups


def name_entry(about: Any) -> str:
    """Return the name of an entry: a hash of what it is made from."""
    return hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()
