"""Tables in Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sigma_data.tables.batches import ROWS, RecordBatches, from_source, reading
from sigma_data.tables.handles import random_access
from sigma_data.tables.widths import check_parquet
from sigma_kernel import SigmaDataError, Source

METADATA = 1 << 28  # bytes and items of the description of a file
MOST = 1 << 40  # rows
BATCH = 1 << 26  # bytes of texts in a batch


def open_parquet(source: Source) -> RecordBatches:
    """Return the rows of a Parquet file."""
    with reading(source.name), random_access(source) as file:
        check_parquet(file, source.name)
        held = _open(file)
        schema, rows = held.schema_arrow, held.metadata.num_rows
        _check_sizes(held.metadata, source.name)
        sizes = _find_sizes(held)

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        chosen = None if columns is None else list(columns)
        has_texts = not sizes.keys().isdisjoint(sizes if chosen is None else chosen)
        most = BATCH * rows // max(1, sum(sizes.values())) if has_texts else ROWS
        with random_access(source) as file:
            yield from _open(file).iter_batches(max(1, min(ROWS, most)), columns=chosen)

    def start_whole(columns: Sequence[str] | None) -> Iterator[Any]:
        with random_access(source) as file:
            yield _open(file).read(None if columns is None else list(columns))

    return from_source(source, schema, rows, start, start_whole, sizes)


def count_numbers(stream: Any, name: str) -> int:
    """Return how many cells an open Parquet file has; its end is read alone, if the stream finds it."""
    with reading(name), pa.PythonFile(stream, "r") if stream.seekable() else pa.BufferReader(stream.read()) as file:
        check_parquet(file, name)
        metadata = _open(file).metadata
        _check_sizes(metadata, name)
        return int(metadata.num_rows * metadata.num_columns)


def _open(file: Any) -> Any:
    limits = {"thrift_string_size_limit": METADATA, "thrift_container_size_limit": METADATA}
    return pq.ParquetFile(file, pre_buffer=False, **limits)  # else all row groups stay in memory


def _find_sizes(file: Any) -> dict[str, int]:
    """Return the bytes of columns whose values have any length, an equal share each of what other columns do not need.

    Sizes of single columns are not asked for: in a damaged file, that may end the process.
    """
    metadata, schema = file.metadata, file.schema_arrow
    texts = [field.name for field in schema if not pa.types.is_primitive(field.type)]
    total = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    left = total - 8 * metadata.num_rows * (len(schema) - len(texts))
    return dict.fromkeys(texts, max(0, left) // len(texts)) if texts else {}


def _check_sizes(metadata: Any, name: str) -> None:
    """Raise SigmaDataError if the parts of a file do not add up to it.

    Arrow checks the sizes of columns when it reads them; to ask it for these of a damaged file may end the process.
    """
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if sum(rows) != metadata.num_rows or not 0 <= metadata.num_rows <= MOST:
        raise SigmaDataError(f"{name}: declares more than it holds. Write or fetch it again.")
