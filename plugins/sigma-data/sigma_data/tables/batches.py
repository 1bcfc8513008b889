"""Record batches of a table, in the types that the rest of the data layer takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen
from pyarrow import types

from sigma_data.sources import stamp_of
from sigma_data.tables.widths import check_width
from sigma_kernel import SigmaDataError, Source
from sigma_kernel.errors import suggest_name

ROWS = 1 << 16  # of a batch
DEEPEST = 32  # fields within fields
DAMAGE = (ArithmeticError, AttributeError, LookupError, MemoryError, NotImplementedError, OSError, RecursionError,
          RuntimeError, TypeError, ValueError)  # fmt: skip # whatever Arrow raises for damaged files

Start = Callable[[Sequence[str] | None], Iterator[Any]]


@frozen(eq=False)
class RecordBatches:
    """The rows of a table, as record batches that can be read again and again.

    Columns hold float64, int64, booleans, strings, dates (date32), timestamps, lists or binary values; missing values
    are null.  Iterating raises SigmaDataError, with the place, for damaged files and for one that changes meanwhile.

    Args:
        name: Name of the table in errors.
        schema: Names and types of its columns.
        rows: Number of rows; None if it is unknown before they are read.
        start: Returns fresh batches of some columns, or of all.
        locate: Returns the place of a row in words.
        stamp: Returns what differs after a change of the source.
        start_whole: Returns the same rows in larger batches, if that takes less time; to read all of them.
        sizes: About how many bytes columns have whose values have any length, by name, as far as that is known.
    """

    name: str
    schema: Any
    rows: int | None
    start: Start = field(repr=False)
    locate: Callable[[int], str] = field(repr=False)
    stamp: Callable[[], Any] = field(default=lambda: None, repr=False)
    start_whole: Start | None = field(default=None, repr=False)
    sizes: Mapping[str, int] = field(factory=dict, repr=False)
    _stamp_of_opening: Any = field(init=False, repr=False)

    @_stamp_of_opening.default
    def _take_stamp(self) -> Any:
        return self.stamp()

    def __iter__(self) -> Iterator[Any]:
        """Return fresh batches, the same rows each time."""
        return self._iterate(None, self.start)

    def select(self, columns: Sequence[str]) -> Iterator[Any]:
        """Return fresh batches of these columns; raise SigmaDataError for one that is not there."""
        for name in columns:
            self._field(name)
        return self._iterate(columns, self.start)

    def place(self, row: int) -> str:
        """Return where a row, counted from 0, stands: ``houses.csv:17``, ``houses.parquet: row 16``."""
        return self.locate(row)

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Return all rows of these columns as an Arrow table; by default of all columns."""
        schema = self.schema if columns is None else pa.schema([self._field(name) for name in columns])
        return pa.Table.from_batches(self._iterate(columns, self.start_whole or self.start), schema)

    def read_first(self, most: int) -> tuple[Any, int]:
        """Return at most this many rows as an Arrow table, and how many there are in all."""
        parts, total = list[Any](), 0
        for batch in self:
            if total < most:
                parts.append(batch.slice(0, most - total))
            elif self.rows is not None:
                break
            total += batch.num_rows
        return pa.Table.from_batches(parts, self.schema), total if self.rows is None else self.rows

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a stream of Arrow, which frames of any library take."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self)).__arrow_c_stream__(requested_schema)

    def _field(self, name: str) -> Any:
        at = self.schema.get_field_index(name)
        if at < 0:
            raise SigmaDataError(f"{self.name}: there is no column {name!r}.{suggest_name(name, self.schema.names)}")
        return self.schema.field(at)

    def _iterate(self, columns: Sequence[str] | None, start: Start) -> Iterator[Any]:
        self._check_stamp()
        row, batches = 0, start(columns)
        while True:
            try:
                with reading(self.name, row):
                    batch = next(batches, None)
            except SigmaDataError:
                self._check_stamp()
                raise
            if batch is None:
                break
            yield batch
            row += batch.num_rows
        self._check_stamp()

    def _check_stamp(self) -> None:
        if self.stamp() != self._stamp_of_opening:
            raise SigmaDataError(f"{self.name}: has changed while it was read. Read it again when it is complete.")


@contextmanager
def reading(name: str, row: int | None = None) -> Iterator[None]:
    """Turn what Arrow raises for a damaged file into a SigmaDataError with its place."""
    try:
        yield
    except SigmaDataError:
        raise
    except DAMAGE as error:
        where = name if not row else f"{name}: at or after row {row}"
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")
        raise SigmaDataError(f"{where}: cannot be read ({reason}). Write or fetch it again.") from error


def from_source(
    source: Source, schema: Any, rows: int | None, start: Start, start_whole: Start | None = None,
    sizes: Mapping[str, int] = {},
) -> RecordBatches:  # fmt: skip
    """Return the batches of a file whose rows have no lines; ``schema`` and batches are those of the file."""
    plain = plain_schema(schema, source.name)
    whole = start_whole or start
    return RecordBatches(
        source.name,
        plain,
        rows,
        lambda columns: plain_batches(start(columns), plain, columns),
        lambda row: f"{source.name}: row {row}",
        lambda: stamp_of(source),
        lambda columns: plain_batches(whole(columns), plain, columns),
        sizes,
    )


# -- types -------------------------------------------------------------------------------------------------------------
def plain_type(kind: Any) -> Any:
    """Return the type in which the values of a column are delivered."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if types.is_integer(kind):
        return pa.int64()
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind) or types.is_duration(kind):
        return pa.float64()
    if types.is_large_string(kind) or types.is_time(kind) or str(kind) == "string_view":
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or str(kind) == "binary_view":
        return pa.binary()
    return pa.date32() if types.is_date(kind) else kind


def plain_schema(schema: Any, name: str) -> Any:
    """Return the names and types of the columns that are delivered; fields of structures are columns ``a.b``."""
    check_width(len(schema), name)
    with reading(name):
        plain = pa.schema(
            [(column.name, plain_type(column.type)) for column in _flatten(schema.empty_table(), name).schema]
        )
        check_width(len(plain), name)
        twice, times = Counter(plain.names).most_common(1)[0] if plain.names else ("", 0)
    if times > 1:
        raise SigmaDataError(f"{name}: {times} columns are called {twice!r}. Rename all but one.")
    if not times:
        raise SigmaDataError(f"{name}: has no columns. Check the file.")
    return plain


def _flatten(table: Any, name: str) -> Any:
    for _ in range(DEEPEST):
        if not any(types.is_struct(kind) for kind in table.schema.types):
            return table
        table = table.flatten()
    raise SigmaDataError(f"{name}: holds fields within fields, more than {DEEPEST} deep. Store fewer.")


def plain_batches(
    batches: Iterable[Any], schema: Any, columns: Sequence[str] | None = None, has_nan: bool = True
) -> Iterator[Any]:
    """Yield batches or tables as record batches of a plain schema, in its order; or only of these columns.

    NaN becomes null; it is not looked for if there is none.
    """
    fields = [schema.field(name) for name in (schema.names if columns is None else columns)]
    for batch in batches:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        table = _flatten(table, "table")
        whole = pa.table(
            [_cast(table[column.name], column.type, has_nan) for column in fields], schema=pa.schema(fields)
        )
        yield from whole.to_batches(ROWS)


def _cast(column: Any, kind: Any, has_nan: bool) -> Any:
    """Return a column in its plain type, with null for NaN, if that is there."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([part.storage for part in column.chunks], column.type.storage_type)
    if types.is_duration(column.type):
        return pc.divide(column.cast(pa.duration("ns")).cast(pa.int64()).cast(kind, safe=False), 1e9)
    if types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if column.type != kind:
        column = column.cast(kind, safe=not types.is_floating(kind))
    return _without_nan(column) if has_nan and types.is_floating(kind) else column


def _without_nan(column: Any) -> Any:
    parts = []
    for part in column.chunks:
        values = part.to_numpy(zero_copy_only=False)
        if np.isnan(values).sum() > part.null_count if part.null_count else np.isnan(values.min(initial=0)):
            part = pa.array(values, from_pandas=True)
        parts.append(part)
    return pa.chunked_array(parts, column.type)
