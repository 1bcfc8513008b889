"""Read a table to predict from, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from attrs import frozen

from sigma_data.frames import check_names
from sigma_kernel import SigmaDataError
from sigma_kernel.errors import suggest_name


class ColumnReader(Protocol):
    """Reads one section from columns of a table."""

    @property
    def section(self) -> str:
        """Return the name of the section."""

    @property
    def sources(self) -> Sequence[str]:
        """Return the names of the columns that it reads."""

    def apply(self, table: Any, place: Any) -> np.ndarray:
        """Return the section of a table of Arrow."""

    def count_replaced(self, table: Any) -> Mapping[str, tuple[int, int]]:
        """Return how many values of each column are missing, and how many unseen."""


@frozen(eq=False)
class RowsToPredict:
    """Consecutive rows of a table.

    ``sections`` are what the network reads, ``kept`` an Arrow table of other columns, and ``replaced`` the number of
    missing and of unseen values by column.
    """

    sections: Mapping[str, np.ndarray]
    kept: Any
    replaced: Mapping[str, tuple[int, int]]

    def __len__(self) -> int:
        return int(self.kept.num_rows)


def stream_rows(
    readers: Sequence[ColumnReader],
    place: Any,
    rows: int,
    keep: Sequence[str] = (),
    wanted: Sequence[str] = (),
    form: Mapping[str, Any] | None = None,
) -> Iterator[RowsToPredict]:
    """Yield the rows of a table, ``rows`` at a time, and fewer at the end.

    Args:
        readers: What reads the sections.
        place: Whatever ``open_table`` takes.
        rows: Rows at a time.
        keep: Columns to keep, if the table has them.
        wanted: Columns to keep; SigmaDataError if the table lacks one.
        form: Settings of the format of the table that the training read; those for another kind of file are ignored.
    """
    open_alike = import_module("sigma_data.tables").open_alike  # now, as it imports Arrow
    source = open_alike(place, form or {}, (*keep, *wanted))
    names, read = source.schema.names, [name for reader in readers for name in reader.sources]
    check_names(dict.fromkeys(names), read, names, source.name)
    for name in wanted:
        if name not in names:
            raise SigmaDataError(f"{source.name}: there is no column {name!r} to keep.{suggest_name(name, names)}")
    held = [name for name in names if name in {*keep, *wanted}]
    columns, first = [*dict.fromkeys((*read, *held))], 0
    for table in regroup(source.select(columns), rows):
        yield _read_rows(readers, table, held, source, first)
        first += table.num_rows


def regroup(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield tables of ``rows`` rows, and one with the rest, from record batches of any length."""
    arrow = import_module("pyarrow")
    held, count = list[Any](), 0
    for batch in batches:
        held, count = [*held, batch], count + batch.num_rows
        if count >= rows:
            whole, begin = arrow.Table.from_batches(held), 0
            while count - begin >= rows:
                yield whole.slice(begin, rows)
                begin += rows
            held, count = whole.slice(begin).to_batches(), count - begin
    if count:
        yield arrow.Table.from_batches(held)


def _read_rows(readers: Sequence[ColumnReader], table: Any, held: Sequence[str], source: Any, first: int) -> Any:
    sections, replaced = dict[str, np.ndarray](), dict[str, tuple[int, int]]()
    for reader in readers:
        part = table.select([*dict.fromkeys(reader.sources)])
        try:
            sections[reader.section] = reader.apply(part, lambda row: source.place(first + row))
        except SigmaDataError as error:
            text = str(error)
            raise SigmaDataError(text.replace("frame: ", f"{source.name}: ", 1)) from error
        replaced |= reader.count_replaced(part)
    return RowsToPredict(sections, table.select(held), replaced)
