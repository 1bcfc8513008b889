"""Tables that are objects already: of Arrow, of its interfaces, and frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from sigma_data.frames import check_texts, columns_of
from sigma_data.tables.batches import RecordBatches, plain_batches, plain_schema, reading
from sigma_kernel import SigmaDataError


def open_object(value: Any, name: str = "table") -> RecordBatches:
    """Return the rows of an object; values are not copied where their types are plain."""
    if isinstance(value, RecordBatches):
        return value
    with reading(name):
        try:
            table = as_table(value, name)
        except UnicodeError:  # which does not say where
            check_texts(columns_of(value, name), name)
            raise
    schema = plain_schema(table.schema, name)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        return plain_batches([table], schema, columns)

    return RecordBatches(name, schema, table.num_rows, start, lambda row: f"{name}: row {row}")


def as_table(value: Any, name: str) -> Any:
    """Return an object as an Arrow table; a stream is read to its end."""
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if isinstance(value, Mapping):
        return pa.table({str(key): column for key, column in value.items()})
    if type(value).__module__.partition(".")[0] == "pandas" and hasattr(value, "columns"):
        return pa.Table.from_pandas(value, preserve_index=False)
    if hasattr(value, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(value).read_all()
    if hasattr(value, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(value)])
    if hasattr(type(value), "columns"):
        return pa.table({str(column): pa.array(value[column], from_pandas=True) for column in value.columns})
    raise SigmaDataError(
        f"{name}: cannot read a {type(value).__name__}. Give a path, a source, an Arrow object or a data frame."
    )
