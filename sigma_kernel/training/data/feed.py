"""The data of a trainer: one resident block, an order of rows, and a cursor.

A burst runs on one block.  Minibatches are cut from the block's rows in an order that is a function of the seed, the
epoch and the block alone; what is left at the end of a block is a smaller batch, or is dropped.  While a burst runs,
the next block is already being read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts import Dataset, Order
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph.random import permutation
from sigma_kernel.training.data.dataset import Host
from sigma_kernel.training.data.preprocessing import placed

MANY = 2048  # rows whose order is drawn ahead


@frozen
class Shuffled(Order):
    """Every row once in each epoch, in an order drawn from the seed."""

    def order(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return the permutation of one epoch and block."""
        return permutation(seed, block, epoch, rows)


@frozen
class Cursor:
    """Where training stands in its data: the epoch, the block in it, and the first row not yet used."""

    epoch: int = 0
    block: int = 0
    row: int = 0


@frozen
class Batches:
    """Minibatches of equal size from one block: ``rows`` has shape ``(n, batch)``."""

    block: Mapping[str, Any]
    rows: np.ndarray


K = TypeVar("K")


V = TypeVar("V")


@define(eq=False)
class Ahead(Generic[K, V]):
    """What is made of the present key, and, beside training, what is made of the one that comes after it."""

    make: Callable[[K], V]
    beside: Callable[[], Executor]
    present: tuple[K, V] | None = None
    following: tuple[K, Future[V]] | None = None

    def of(self, key: K, after: K | None) -> V:
        """Return what is made of a key; begin with that of the one ``after``, if there is to be one."""
        if self.present is None or self.present[0] != key:
            ahead, self.following = self.following, None
            self.present = key, ahead[1].result() if ahead is not None and ahead[0] == key else self.make(key)
        if after is not None and self.following is None:
            self.following = after, self.beside().submit(self.make, after)
        return self.present[1]


@define(eq=False)
class Feed:
    """Hand out minibatches of a dataset; ``prepare`` makes a block ready and checks it, ``place`` moves it over."""

    dataset: Dataset
    batch_size: int
    seed: int
    prepare: Callable[[Mapping[str, np.ndarray]], Host]
    place: Callable[[np.ndarray], Any]
    order: Order = field(factory=Shuffled)
    keep_last: bool = True
    cursor: Cursor = Cursor()
    _before: list[int] = field(init=False)  # iterations of an epoch before each block, and all of them
    _orders: Ahead[tuple[int, int], np.ndarray] = field(init=False)  # by epoch and block
    _blocks: Ahead[int, Mapping[str, Any]] = field(init=False)
    _reader: ThreadPoolExecutor | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        """Refuse what cannot be trained on."""
        if len(self.dataset) == 0:
            raise SigmaDataError("data: there is no row. Check the path, the split and the filters.")
        if self.batch_size > len(self.dataset):
            raise SigmaDataError(
                f"data: a batch of {self.batch_size} is larger than the data, {len(self.dataset)} rows. "
                "Choose a smaller batch_size."
            )
        rows, size = map(self.dataset.rows, range(self.dataset.blocks)), self.batch_size
        self._before = [0, *accumulate(-(-n // size) if self.keep_last else n // size for n in rows)]
        if not self.iterations_per_epoch:
            raise SigmaDataError(
                f"data: no block holds a whole batch of {self.batch_size}, and smaller ones are dropped. "
                "Choose a smaller batch_size, or last_batch = 'keep'."
            )
        self._orders, self._blocks = Ahead(self._drawn, self._beside), Ahead(self._load, self._beside)
        self._pass_over()

    # -- counting ------------------------------------------------------------------------------------------------------
    def batches(self, block: int) -> int:
        """Return the number of minibatches in a block."""
        return self._before[block + 1] - self._before[block]

    @property
    def iterations_per_epoch(self) -> int:
        """Return the number of iterations that use every row once."""
        return self._before[-1]

    @property
    def iteration_in_epoch(self) -> int:
        """Return the number of iterations of this epoch that are done."""
        return self._before[self.cursor.block] + self.cursor.row // self.batch_size

    # -- handing out ---------------------------------------------------------------------------------------------------
    def next(self, most: int) -> Batches:
        """Return at most so many minibatches of equal size, from the cursor on; the cursor stays."""
        epoch, block, row = self.cursor.epoch, self.cursor.block, self.cursor.row
        after = self._after(self.cursor)
        left = self.dataset.rows(block) - row
        size = min(self.batch_size, left)
        n = max(1, min(most, left // size))
        many = self.dataset.rows(after.block) >= MANY  # else a thread is not worth it
        order = self._orders.of((epoch, block), (after.epoch, after.block) if many else None)
        resident = self._blocks.of(block, after.block if after.block != block else None)
        return Batches(resident, order[row : row + n * size].reshape(n, size))

    def advance(self, batches: Batches, done: int) -> None:
        """Move the cursor past the first ``done`` minibatches."""
        row = self.cursor.row + done * batches.rows.shape[1]
        left = self.dataset.rows(self.cursor.block) - row
        if left >= self.batch_size or (left and self.keep_last):
            self.cursor = Cursor(self.cursor.epoch, self.cursor.block, row)
        else:
            self.cursor = self._after(self.cursor)

    def rewind(self) -> None:
        """Go back to the start."""
        self.cursor = Cursor()
        self._pass_over()

    def _pass_over(self) -> None:
        """Go on to the next block where this one is smaller than a batch, and such are dropped."""
        if not self.batches(self.cursor.block):
            self.cursor = self._after(self.cursor)

    def _after(self, at: Cursor) -> Cursor:
        """Return where the next block begins; one smaller than a batch, where such are dropped, is passed over."""
        last = at.block + 1 == self.dataset.blocks
        after = Cursor(at.epoch + 1, 0) if last else Cursor(at.epoch, at.block + 1)
        return after if self.batches(after.block) else self._after(after)

    def _drawn(self, at: tuple[int, int]) -> np.ndarray:
        order = self.order.order(self.seed, *at, self.dataset.rows(at[1]))
        return np.ascontiguousarray(order, np.int32)

    def _load(self, block: int) -> Mapping[str, Any]:
        with placed(self.dataset, block):
            prepared = self.prepare(self.dataset.block(block))
        return {name: self.place(values) for name, values in prepared.items()}

    def close(self) -> None:
        """Stop reading ahead."""
        if self._reader is not None:
            self._reader.shutdown(wait=True, cancel_futures=True)
            self._reader = self._orders.following = self._blocks.following = None

    def _beside(self) -> Executor:
        if self._reader is None:
            self._reader = ThreadPoolExecutor(2, thread_name_prefix="sigma-data")
        return self._reader
