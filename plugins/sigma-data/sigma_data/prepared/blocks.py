"""Blocks of rows that are mapped to memory, of which as many as fit stay there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_data.arrays import Titled, read_only
from sigma_data.derived import Derived
from sigma_data.encoded import EncodedColumns
from sigma_data.subset import Subset
from sigma_kernel import Dataset, SigmaConfigError

BLOCK, LOT = 1 << 22, 1 << 26  # bytes of a block by default, and of the rows that are drawn together
MOST = 1 << 30  # bytes of a block
OPEN = 16  # blocks that rows are drawn from, at most

Block = dict[str, np.ndarray]


@frozen(eq=False)
class PreparedRows(Titled):
    """A section of encoded columns that is mapped to memory; ``encode_by`` returns its rows by other columns."""

    encode_by: Callable[[EncodedColumns], Titled] = field(kw_only=True)

    def align(self, table: Any, names: Any) -> Titled:
        """Return the same rows, encoded by the columns of the training."""
        if not isinstance(table, EncodedColumns) or not isinstance(self.table, EncodedColumns):
            return super().align(table, names)
        return self if table.to_plain() == self.table.to_plain() else self.encode_by(table)


@define(eq=False)
class BlockMemory:
    """How many bytes of blocks may still be copied to memory, from all splits of a table together."""

    room: int
    _given_back: deque[int] = field(factory=deque, init=False)
    _lock: Lock = field(factory=Lock, init=False)

    def take(self, size: int) -> bool:
        """Return whether there is room for so many bytes, which are then taken."""
        with self._lock:
            while self._given_back:
                self.room += self._given_back.popleft()
            if size > self.room:
                return False
            self.room -= size
            return True

    def give_back(self, size: int) -> None:
        """Make room for so many bytes again; the lock is not taken, as the garbage collector calls this anywhere."""
        self._given_back.append(size)


@define(eq=False)
class ResidentBlocks:
    """Copies of blocks of a split that stay in memory, while there is room."""

    memory: BlockMemory
    _held: dict[tuple[int, int], Block] = field(factory=dict, init=False)  # by first and last row
    _lock: Lock = field(factory=Lock, init=False)

    def __del__(self) -> None:
        """Make room for the blocks of other splits."""
        self.memory.give_back(sum(map(_count_bytes, self._held.values())))

    def get(self, key: tuple[int, int], read: Callable[[], Block]) -> Block:
        """Return a block, from memory if it is there."""
        with self._lock:
            if key in self._held:
                return self._held[key]
        block = read()
        with self._lock:
            if key in self._held or not self.memory.take(_count_bytes(block)):
                return self._held.get(key, block)
            self._held[key] = {name: np.array(values) for name, values in block.items()}
            return self._held[key]


@frozen
class BlockLayout:
    """How many rows a block has, by default so many that it has 4 MiB, the lanes, and the memory of blocks that stay.

    The layout is a function of the columns and the settings alone: runs have the same bits, whatever stays in memory.
    """

    block_rows: int | None
    memory: BlockMemory
    lanes: int = 1

    def rows_per_block(self, row_bytes: int) -> int:
        """Return the rows of a block; raise SigmaConfigError for blocks above 1 GiB."""
        if self.block_rows is None:
            return max(1, BLOCK // max(1, row_bytes))
        if self.block_rows * row_bytes > MOST:
            raise SigmaConfigError(
                f"block_rows: {self.block_rows:,} rows of {row_bytes:,} bytes are more than 1 GiB, the most of "
                f"a block. Set at most {MOST // row_bytes:,}."
            )
        return self.block_rows

    def cut(self, rows: Subset) -> RowBlocks:
        """Return the rows of a table in blocks."""
        mapped = [values for values in rows.dataset.block(0).values() if is_mapped(values)]
        row_bytes = sum(values[:1].nbytes for values in mapped)
        return RowBlocks(rows, self.rows_per_block(row_bytes), row_bytes, ResidentBlocks(self.memory), self.lanes)


class RowBlocks(Derived):
    """Rows of a table, in blocks of equal size; rows are drawn from several blocks at once.

    Sections that are mapped to memory are read by block, and not as columns.
    """

    def __init__(self, rows: Subset, block_rows: int, row_bytes: int, resident: ResidentBlocks, lanes: int = 1) -> None:
        super().__init__(rows)
        self._numbers, self._block_rows, self._row_bytes = rows.rows_of_dataset, block_rows, row_bytes
        self._resident, self._lanes = resident, lanes
        self.starts = [*range(0, len(self._numbers), block_rows), len(self._numbers)]

    def __repr__(self) -> str:
        return f"RowBlocks({len(self._numbers)} rows, {self._block_rows} in a block)"

    def with_dataset(self, dataset: Dataset) -> RowBlocks:
        """Return the same blocks of another data set, whose arrays may be the same."""
        assert isinstance(dataset, Subset)
        own, others = (self._mapped_arrays(rows) for rows in (self.dataset, dataset))
        same = own.keys() == others.keys() and all(own[name] is others[name] for name in own)
        resident = self._resident if same else ResidentBlocks(self._resident.memory)
        return RowBlocks(dataset, self._block_rows, self._row_bytes, resident, self._lanes)

    def groups(self) -> Sequence[Hashable] | None:
        """Return the group of each row, if there are groups."""
        return self.dataset.groups()  # type: ignore[attr-defined, no-any-return]

    @property
    def blocks(self) -> int:
        """Return the number of blocks."""
        return len(self.starts) - 1

    @property
    def open_blocks(self) -> int:
        """Return how many blocks have 64 MiB, at most 16."""
        return count_open(self._block_rows * self._row_bytes)

    @property
    def lanes(self) -> int:
        """Return into how many lanes the rows are dealt."""
        return self._lanes

    def rows(self, block: int) -> int:
        """Return the number of rows of a block."""
        return self.starts[block + 1] - self.starts[block]

    def numbers(self, block: int) -> np.ndarray:
        """Return the numbers of the rows of a block."""
        return np.arange(self.starts[block], self.starts[block + 1])

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the rows of a block."""
        first, last = self.starts[block], self.starts[block + 1]
        numbers, arrays = self._numbers[first:last], self._arrays
        consecutive = last - first == numbers[-1] - numbers[0] + 1 and bool((np.diff(numbers) == 1).all())
        where = slice(int(numbers[0]), int(numbers[-1]) + 1) if consecutive else numbers
        mapped = self._mapped_arrays(self.dataset)
        held = self._resident.get((first, last), lambda: {name: values[where] for name, values in mapped.items()})
        return read_only({name: held[name] if name in held else values[where] for name, values in arrays.items()})

    def column(self, section: str) -> np.ndarray | None:
        """Return all rows of a section; None if it is not in memory."""
        return None if section in self._mapped_arrays(self.dataset) else super().column(section)

    @property
    def _arrays(self) -> Mapping[str, np.ndarray]:
        return self.dataset.dataset.arrays  # type: ignore[attr-defined, no-any-return]

    @staticmethod
    def _mapped_arrays(rows: Any) -> dict[str, np.ndarray]:
        return {name: values for name, values in rows.dataset.arrays.items() if is_mapped(values)}


def count_open(block_bytes: int) -> int:
    """Return from how many blocks of a size rows are drawn: those that have 64 MiB, at most 16."""
    return min(OPEN, max(1, LOT // max(1, block_bytes)))


def _count_bytes(block: Block) -> int:
    return sum(values.nbytes for values in block.values())


def is_mapped(values: np.ndarray) -> bool:
    """Return whether an array, or what it is a view of, is mapped to memory from a file."""
    return isinstance(values, np.memmap)
