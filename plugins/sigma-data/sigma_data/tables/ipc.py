"""Tables in files of Arrow, which are those of Feather, and in the format of streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from sigma_data.tables.batches import RecordBatches, from_source, reading
from sigma_data.tables.handles import random_access
from sigma_data.tables.widths import check_arrow, check_stream
from sigma_kernel import Source


def open_ipc(source: Source) -> RecordBatches:
    """Return the rows of an Arrow file with an index."""
    with reading(source.name), random_access(source) as file:
        check_arrow(file, source.name)
        held = pa.ipc.open_file(file)
        schema, count = held.schema, held.num_record_batches

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        with random_access(source) as file:
            held = pa.ipc.open_file(file)
            for i in range(count):
                yield _validate(held.get_batch(i))

    return from_source(source, schema, None, start)


def open_stream(source: Source) -> RecordBatches:
    """Return the rows of an Arrow stream."""
    with reading(source.name), source.open() as stream:
        check_stream(stream, source.name)
    with reading(source.name), source.open() as stream:
        schema = pa.ipc.open_stream(stream).schema

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        with source.open() as stream:
            yield from map(_validate, pa.ipc.open_stream(stream))

    return from_source(source, schema, None, start)


def _validate(batch: Any) -> Any:
    """Return a batch whose offsets lie within it; Arrow does not look before it follows them."""
    batch.validate(full=True)
    return batch
