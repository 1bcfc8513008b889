"""Tables in ORC files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyarrow import orc

from sigma_data.tables.batches import RecordBatches, from_source, reading
from sigma_data.tables.handles import random_access
from sigma_data.tables.widths import check_orc
from sigma_kernel import Source


def open_orc(source: Source) -> RecordBatches:
    """Return the rows of an ORC file, stripe by stripe."""
    with reading(source.name), random_access(source) as file:
        check_orc(file, source.name)
        held = orc.ORCFile(file)
        schema, rows = held.schema, held.nrows

    def start(columns: Sequence[str] | None) -> Iterator[Any]:
        with random_access(source) as file:
            held = orc.ORCFile(file)
            whole = [name if name in schema.names else name.split(".")[0] for name in columns or schema.names]
            for i in range(held.nstripes):
                yield held.read_stripe(i, [*dict.fromkeys(whole)])

    return from_source(source, schema, rows, start)
