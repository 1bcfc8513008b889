"""A series that is larger than memory: its columns are encoded once, in the order of groups and time, on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import define, evolve, field, frozen

from sigma_data.encoded import EncodedColumn, EncodedColumns, Place, join
from sigma_data.prepared.blocks import BlockLayout, ResidentBlocks, count_open
from sigma_data.prepared.preparing import EncodedPart, PreparedTable, Sections, group_columns
from sigma_data.series.layout import encode_rows
from sigma_data.series.training import SeriesPlan, find_given_step, order_rows
from sigma_data.series.windows import SeriesWindows, find_rows, slide
from sigma_data.tables.batches import RecordBatches

INPUTS = "inputs"


Windows = tuple[dict[str, SeriesWindows], dict[str, Any]]


def read_blocks(series: Any, prepared: PreparedTable, roles: Mapping[str, Any], layout: BlockLayout) -> Windows:
    """Return the windows of each split of a data set ``series`` that is not in memory, and what it learned.

    Times, groups and targets are in memory; other columns are read some at a time.
    """
    windows = cut_windows(series, prepared, roles, layout)
    pa.default_memory_pool().release_unused()  # what times and groups took
    return windows


def cut_windows(series: Any, prepared: PreparedTable, roles: Mapping[str, Any], layout: BlockLayout) -> Windows:
    """Return the same as :func:`read_blocks`."""
    plan, total = read_plan(series, prepared, roles)

    def fit(source: RecordBatches) -> Sections:
        names = (*roles["targets"], *roles["others"], *roles["known"])
        rows = evolve(plan.rows, table=OrderedColumns(source, names, plan.rows.numbers))
        return {INPUTS: EncodedColumns(tuple(plan.fit(rows)))}

    arrays, sections = prepared.prepare(OrderedRows(plan, total), fit)
    return plan.cut(arrays[INPUTS], sections[INPUTS].columns, partial(MappedWindows, layout=layout))


def read_plan(series: Any, prepared: PreparedTable, roles: Mapping[str, Any]) -> tuple[SeriesPlan, int]:
    """Return the plan of a series, whose rows have no columns any more, and how many rows the table has."""
    side = dict.fromkeys(filter(None, (roles["time"], roles["group"], *roles["targets"])))
    table = prepared.read_aside([*side])
    rows = order_rows(table, roles, prepared, find_given_step(series), series.gaps == "hold")
    plan, total = SeriesPlan.from_rows(series, rows, roles, prepared.name), table.num_rows
    del table, rows
    plan = evolve(plan, rows=evolve(plan.rows, table=None))
    pa.default_memory_pool().release_unused()
    return plan, total


@define(eq=False, slots=False)
class OrderedColumns:
    """The columns of a table by name, their rows in the order of a series; some columns at a time are in memory."""

    source: RecordBatches
    names: Sequence[str]
    numbers: np.ndarray
    _held: Any = field(default=None, init=False)

    def __getitem__(self, name: str) -> Any:
        """Return a column; those that are read together with it come next."""
        if self._held is None or name not in self._held.column_names:
            self._held = None  # makes room
            self._held = self.source.read(next(group for group in self._groups if name in group))
        return join(self._held[name]).take(pa.array(self.numbers))

    @cached_property
    def _groups(self) -> list[list[str]]:
        return group_columns(self.source, self.names, len(self.numbers))


@frozen(eq=False)
class RowPlaces:
    """Where the values of a table are in a series, of which each row has those of the row that is so much ``later``.

    ``numbers`` are the rows of the table that the rows of the series are.
    """

    numbers: np.ndarray
    later: int
    _held: np.ndarray = field(init=False)  # the row of the table whose values a row has
    _order: np.ndarray | None = field(init=False)  # of these; None if they ascend

    @_held.default
    def _find_held(self) -> np.ndarray:
        return self.numbers[self.shift(np.arange(len(self.numbers)))] if self.later else self.numbers

    @_order.default
    def _find_order(self) -> np.ndarray | None:
        return None if (np.diff(self._held) >= 0).all() else np.argsort(self._held, kind="stable")

    def shift(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of the series whose values these rows have."""
        shifted: np.ndarray = np.minimum(rows + self.later, len(self.numbers) - 1)
        return shifted

    def find(self, first: int, count: int) -> np.ndarray:
        """Return the rows of the series, ascending, that have the values of rows of the table from ``first`` on."""
        low, high = np.searchsorted(self._held, [first, first + count], sorter=self._order)
        return np.arange(low, high) if self._order is None else np.sort(self._order[low:high])


@frozen(eq=False, slots=False)
class OrderedRows:
    """The rows of a series, which has those of a table of ``total`` rows in another order, or several times."""

    plan: SeriesPlan
    total: int

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        return len(self.plan.rows.numbers)

    @cached_property
    def _places(self) -> tuple[RowPlaces, RowPlaces]:
        """Return where rows are, and where the values of columns are that are known in advance."""
        return tuple(RowPlaces(self.plan.rows.numbers, later) for later in (0, self.plan.series.ahead))  # type: ignore[return-value]

    def encode(self, columns: Sections, batch: Any, first: int) -> Iterator[EncodedPart]:
        """Yield the numbers of a batch of the table, of which this is the first row, for each run of columns."""
        early, last = {*self.plan.roles["known"]}, 0
        for is_known, run in groupby(columns[INPUTS].columns, lambda column: column.name in early):
            own = EncodedColumns(tuple(run))
            start, last = last, last + len(own.elements)
            places = self._places[is_known]
            where = places.find(first, batch.num_rows)
            if len(where):
                values, place = self._encode(own.columns, batch, places.shift(where), first)
                yield EncodedPart(INPUTS, (find_rows(where), slice(start, last)), values, own.elements, place)

    def _encode(
        self, columns: Sequence[EncodedColumn], batch: Any, where: np.ndarray, first: int
    ) -> tuple[np.ndarray, Place]:
        """Return the numbers of rows of the series that are in a batch, and their places."""
        plan, time = self.plan, self.plan.roles["time"]
        table = pa.Table.from_batches([batch]).take(pa.array(plan.rows.numbers[where] - first))
        filled = {name: values[where] for name, values in plan.filled.items()}
        rows = plan.rows.take(where, table)
        return encode_rows(rows, columns, time, {time: plan.series.ahead}, filled), rows.place


class MappedWindows(SeriesWindows):
    """Windows over rows that are ``mapped`` to memory, in small blocks; they are drawn from several blocks at once."""

    def __init__(self, *rows: Any, layout: BlockLayout) -> None:
        super().__init__(*rows)
        self.mapped, self._size = rows[0], layout.rows_per_block(self.window_bytes)
        self._resident, self._lanes = ResidentBlocks(layout.memory), layout.lanes

    @property
    def open_blocks(self) -> int:
        """Return how many blocks have 64 MiB, at most 16."""
        return count_open(self._size * self.window_bytes)

    @property
    def lanes(self) -> int:
        """Return into how many lanes the windows are dealt."""
        return self._lanes

    def _read_inputs(self, starts: np.ndarray) -> np.ndarray:
        """Return windows as views of their rows, of which there are fewer, if they are not far apart."""
        first, last = int(starts[0]), int(starts[-1]) + self.past
        if last - first > len(starts) * self.past:
            read = super()._read_inputs
            return self._resident.get((first, last), lambda: {INPUTS: read(starts)})[INPUTS]
        rows = self._resident.get((first, last), lambda: {INPUTS: self.mapped[first:last]})[INPUTS]
        return slide(rows, self.past)[find_rows(starts - first)]
