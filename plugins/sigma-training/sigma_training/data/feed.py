"""Cut minibatches from a data set, and prefetch the next block.

A burst runs on one block, resident on the device.  Minibatches are cut from the block's rows in an order that depends
on the seed, the epoch and the block alone; the rows left at the end of a block are a smaller batch, or are dropped.
The next block is read while a burst runs, and varied by augmentations, if there are any.  Of a data set with several
open blocks, a block here is a lot of rows drawn from them: see :mod:`sigma_training.data.lots`.  Of one with lanes,
each lane of a lot is a block of its own, which is read when it is first used: a worker reads those of its shards.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator as Walk, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cached_property, partial
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.arrays import read_only
from sigma_kernel.contracts import Backend, Batches, Dataset, Iterator, Lane
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, expect, introduce_errors
from sigma_kernel.graph.random import permutation
from sigma_kernel.network.tracing import Shapes
from sigma_training.data.augmenting import Augmenter
from sigma_training.data.dataset import Host, read
from sigma_training.data.iterators import Shuffled
from sigma_training.data.lots import DEAL, ORDER_OF_BLOCKS, Lots

MANY = 2048  # rows from which on the next order is prefetched
AHEAD = 2  # blocks that are prefetched at most


@frozen
class Cursor:
    """The position of training in its data: epoch, block in it, and first row not yet used."""

    epoch: int = 0
    block: int = 0
    row: int = 0


K = TypeVar("K")
V = TypeVar("V")


@define(eq=False)
class Prefetch(Generic[K, V]):
    """The value for the current key, with those for the next keys computed in the background."""

    make: Callable[[K], V]
    executor: Executor
    _current: tuple[K, V] | None = None
    _following: dict[K, Future[V]] = field(factory=dict)

    def get(self, key: K, *following: K) -> V:
        """Return the value for a key, and start prefetching those of the ``following`` keys."""
        if self._current is None or self._current[0] != key:
            ahead = self._following.pop(key, None)
            self._following = {k: future for k, future in self._following.items() if k in following}
            self._current = key, self.make(key) if ahead is None else ahead.result()
        for k in following:
            self._following[k] = self._following.get(k) or self.executor.submit(self.make, k)
        return self._current[1]

    def holds(self, *keys: K) -> bool:
        """Return whether the value of one of these keys is here, or is being prefetched."""
        return any(key in self._following or (self._current or (None,))[0] == key for key in keys)


@frozen(eq=False, slots=False)
class LateBlock(Mapping[str, Any]):
    """A block that is read when it is first used."""

    load: Callable[[], Mapping[str, Any]]

    @cached_property
    def _block(self) -> Mapping[str, Any]:
        return self.load()

    def __getitem__(self, name: str) -> Any:
        return self._block[name]

    def __iter__(self) -> Walk[str]:
        return iter(self._block)

    def __len__(self) -> int:
        return len(self._block)


def placing(backend: Backend, dataset: Dataset) -> dict[str, Any]:
    """Return what a feed has of a backend: several blocks are copied to it, as they may be read into one array."""
    return {"place": backend.share if dataset.blocks == 1 else backend.to_device, "draw": backend.permutation}


def check_rows_kept(trainer: str, shapes: Shapes, iterator: Iterator, lanes: int) -> None:
    """Refuse what changes the order of rows if a layer carries their state to the next batch."""
    for address, state in shapes.state.items():
        if state.per_row and lanes > 1:
            raise SigmaConfigError(
                f"{trainer}.data: {address.rpartition('.')[0]} carries the state of each row to the same row of the "
                "next batch, and lanes change the order of the rows. Leave out lanes, or carried."
            )
        if state.per_row and not iterator.keeps_order:
            layer = address.rpartition(".")[0]
            raise SigmaConfigError(
                f"{trainer}.iterator: {layer} carries the state of each row to the same row of the next batch, and "
                f"{type(iterator).__name__} changes the order of the rows. Choose 'sequential', or leave out carried."
            )


@define(eq=False, repr=False)
class Feed:
    """Cut minibatches from a dataset: ``prepare`` preprocesses and checks a block, ``place`` puts it on the device.

    ``augmenter`` varies a block before that, anew in each epoch.  ``draw`` returns the order that
    :func:`sigma_kernel.graph.permutation` does; other iterators than the default have their own.

    Batches have ``lanes`` with more than one, which is the number of shards that they are cut into.

    A feed holds no position: its user keeps a :class:`Cursor`, starting with :meth:`start`.
    """

    dataset: Dataset
    batch_size: int
    seed: int
    prepare: Callable[[Mapping[str, np.ndarray]], Host]
    place: Callable[[np.ndarray], Any]
    iterator: Iterator = field(factory=Shuffled)
    keep_last: bool = True
    draw: Callable[[int, int, int, int], np.ndarray] = permutation
    augmenter: Augmenter | None = None
    lanes: int = 1
    _lots: Lots = field(init=False)
    _counts: list[int] = field(init=False)  # rows of each lot
    _ahead: int = field(init=False)  # blocks that are prefetched at most
    _before: list[int] = field(init=False)  # iterations of an epoch before each lot; last, all of them
    _orders: Prefetch[tuple[int, int], np.ndarray] = field(init=False)  # by epoch and block
    _blocks: Prefetch[tuple[int, int], Mapping[str, Any]] = field(init=False)  # likewise; epoch 0 if they stay
    _lanes: dict[int, Prefetch[tuple[int, int], Mapping[str, Any]]] = field(init=False)  # likewise, of each lane
    _reader: ThreadPoolExecutor = field(init=False)
    _drawn_by: dict[tuple[int, int], np.ndarray] = field(factory=dict, init=False)  # of a section, by block and lane

    def __attrs_post_init__(self) -> None:
        """Refuse data without a whole batch; raise SigmaDataError."""
        if len(self.dataset) == 0:
            raise SigmaDataError("data: there are no rows. Check the path, the split and the filters.")
        if self.batch_size > len(self.dataset):
            raise SigmaDataError(
                f"data: a batch of {self.batch_size} is larger than the data, {len(self.dataset)} rows. "
                "Choose a smaller batch_size."
            )
        size, self._lots = self.batch_size, Lots(self.dataset, self.batch_size, self.lanes)
        self._counts, self._ahead = self._lots.sizes, self._lots.count_ahead(AHEAD)
        self._before = [0, *accumulate(-(-n // size) if self.keep_last else n // size for n in self._counts)]
        if not self.iterations_per_epoch:
            raise SigmaDataError(
                f"data: no block holds a whole batch of {self.batch_size}, and smaller ones are dropped. "
                "Choose a smaller batch_size, or last_batch = 'keep'."
            )
        self._open()

    def _open(self) -> None:
        """Start without prefetched values; the executor starts its threads when they are needed."""
        self._reader = ThreadPoolExecutor(2, thread_name_prefix="sigma-feed")
        self._orders, self._blocks = Prefetch(self._draw_order, self._reader), Prefetch(self._load, self._reader)
        self._lanes = {}

    def clamp(self, at: Cursor) -> Cursor:
        """Return a cursor; if it is not in these data, as it was for others, the start of its epoch."""
        there = at.block < len(self._counts) and at.row < self._counts[at.block]
        return at if there else self.start(at.epoch)

    # -- counting ------------------------------------------------------------------------------------------------------
    def batches(self, block: int) -> int:
        """Return the number of minibatches in a block."""
        return self._before[block + 1] - self._before[block]

    @property
    def iterations_per_epoch(self) -> int:
        """Return the number of iterations that use every row once."""
        return self._before[-1]

    def iteration_in_epoch(self, at: Cursor) -> int:
        """Return the number of iterations of the epoch before a cursor."""
        return self._before[at.block] + at.row // self.batch_size

    def seek(self, iterations: int) -> Cursor:
        """Return the cursor after so many iterations of the first epoch, which has more."""
        block = bisect_right(self._before, iterations) - 1
        return Cursor(0, block, (iterations - self._before[block]) * self.batch_size)

    @property
    def sizes(self) -> list[int]:
        """Return the sizes of minibatches, the greatest first."""
        counts, size = {*self._counts}, self.batch_size
        left = {n % size for n in counts if n % size} if self.keep_last else set()
        return sorted({size for n in counts if n >= size} | left, reverse=True)

    # -- handing out ---------------------------------------------------------------------------------------------------
    def start(self, epoch: int = 0) -> Cursor:
        """Return the cursor of the first minibatch of an epoch; a block without one is skipped."""
        return Cursor(epoch) if self.batches(0) else self._next_block(Cursor(epoch))

    def next_batches(self, at: Cursor, most: int) -> Batches:
        """Return up to ``most`` minibatches of equal size from one block, starting at a cursor.

        Of data with lanes, those that were not used in the block before are released.
        """
        after = self._next_block(at)
        left = self._counts[at.block] - at.row
        size = min(self.batch_size, left)
        n = max(1, min(most, left // size))
        # For fewer rows, a thread is not worth it.  Two orders: nobody waits if a short burst ends first.
        worth = self.augmenter or self._counts[after.block] >= MANY
        coming = (after, self._next_block(after)) if worth else ()
        order = self._orders.get((at.epoch, at.block), *((cursor.epoch, cursor.block) for cursor in coming))
        ahead = dict.fromkeys(
            [self._place(cursor) for cursor in (coming if self.augmenter else (after,))][: self._ahead]
        )
        here, rows = self._place(at), order[at.row : at.row + n * size].reshape(n, size)
        following = [place for place in ahead if place != here]
        if self.lanes == 1:
            return Batches(self._blocks.get(here, *following), rows)
        return Batches(LateBlock(partial(self._blocks.get, here)), rows, self._list_lanes(here, following))

    def _list_lanes(self, here: tuple[int, int], following: Sequence[tuple[int, int]]) -> list[Lane]:
        """Return the lanes of a lot, none of which is read yet, and forget those that were not used before."""
        used = {lane: blocks for lane, blocks in self._lanes.items() if blocks.holds(here)}
        self._lanes = {
            lane: used.get(lane) or Prefetch(partial(self._load_lane, lane), self._reader) for lane in range(self.lanes)
        }
        firsts = self._lots.firsts(here[1])
        return [Lane(firsts[n], LateBlock(partial(held.get, here, *following))) for n, held in self._lanes.items()]

    def advance(self, at: Cursor, batches: Batches, done: int) -> Cursor:
        """Return the cursor after the first ``done`` of the minibatches that begin at a cursor."""
        row = at.row + done * batches.rows.shape[1]
        left = self._counts[at.block] - row
        more = left >= self.batch_size or (left and self.keep_last)
        return Cursor(at.epoch, at.block, row) if more else self._next_block(at)

    def _next_block(self, at: Cursor) -> Cursor:
        """Return the cursor of the next block that has a minibatch."""
        last = at.block + 1 == len(self._counts)
        after = Cursor(at.epoch + 1, 0) if last else Cursor(at.epoch, at.block + 1)
        return after if self.batches(after.block) else self._next_block(after)

    def _draw_order(self, at: tuple[int, int]) -> np.ndarray:
        epoch, lot = at
        counts = np.diff(self._lots.firsts(lot)).tolist()
        orders = [self._order(epoch, lot * self.lanes + lane, rows) for lane, rows in enumerate(counts)]
        return read_only(self._lots.arrange(lot, orders))

    def _order(self, epoch: int, block: int, rows: int) -> np.ndarray:
        if not rows:
            return np.zeros(0, np.int32)
        is_lot = block not in (ORDER_OF_BLOCKS, DEAL)
        if type(self.iterator) is Shuffled:  # a subclass may have another order
            draw = self.draw if is_lot else permutation  # a device need not be asked for a few
            return read_only(np.ascontiguousarray(draw(self.seed, block, epoch, rows), np.int32))
        with introduce_errors("iterator", self.iterator):
            drawn = bool(self.iterator.section) and is_lot
            what = "indices() must return a permutation of range({}), each row once"
            picked = self._draw_rows(epoch, block) if drawn else self.iterator.indices(self.seed, epoch, block, rows)
            order = np.asarray(picked)
            right = order.dtype.kind in "iu" and order.shape == (rows,) and order.min() >= 0 and order.max() < rows
            right = right and (drawn or np.bincount(order.astype(np.int64), minlength=rows).all())
            expect(bool(right), ("draw() must return {} numbers of rows" if drawn else what).format(rows), order)
            kept = not self.iterator.keeps_order or (order[1:] > order[:-1]).all()
            expect(bool(kept), f"indices() must return range({rows}), as keeps_order declares", order)
        return read_only(np.ascontiguousarray(order, np.int32))

    def _draw_rows(self, epoch: int, block: int) -> np.ndarray:
        """Return the rows that the iterator draws by a section, in a lane of a lot."""
        name, at = self.iterator.section, divmod(block, self.lanes)
        if name not in self.dataset.sections or self.dataset.drawn_anew:
            why = "rows are read anew for every epoch" if name in self.dataset.sections else "there is none"
            raise SigmaDataError(f"iterator: rows are drawn by section {name!r}, and {why}. Choose 'minibatch'.")
        if self._lots.differ:
            return self.iterator.draw(self.seed, epoch, block, self._read_section(name, epoch, *at))
        if at not in self._drawn_by:
            self._drawn_by[at] = np.array(self._read_section(name, epoch, *at))
        return self.iterator.draw(self.seed, epoch, block, self._drawn_by[at])

    def _read_section(self, name: str, epoch: int, lot: int, lane: int) -> np.ndarray:
        """Return the values of a section of a lane of a lot, before preprocessing."""
        parts = self._lots.parts(lot, epoch, self._order, lane)
        return self._lots.read(parts, lambda block: {name: read(self.dataset, block)[name]})[name]

    def numbers(self, at: Cursor) -> np.ndarray:
        """Return the numbers of the rows of the block at a cursor in their split."""
        parts = [self._lots.parts(at.block, at.epoch, self._order, lane) for lane in range(self.lanes)]
        return self._lots.numbers([*chain.from_iterable(parts)])

    def _place(self, at: Cursor) -> tuple[int, int]:
        anew = self.dataset.drawn_anew or self.augmenter or self._lots.differ
        return at.epoch if anew else 0, at.block

    def _load(self, at: tuple[int, int]) -> Mapping[str, Any]:
        prepared = [self._prepare(at, lane) for lane in range(self.lanes)]
        lanes = [rows for rows in prepared if rows is not None]
        joined = {name: np.concatenate([rows[name] for rows in lanes]) for name in lanes[0]} if lanes[1:] else lanes[0]
        return {name: self.place(values) for name, values in joined.items()}

    def _load_lane(self, lane: int, at: tuple[int, int]) -> Mapping[str, Any]:
        return {name: self.place(values) for name, values in (self._prepare(at, lane) or {}).items()}

    def _prepare(self, at: tuple[int, int], lane: int) -> Host | None:
        """Return the rows of a lane of a lot, varied and prepared; None for one without rows."""
        epoch, lot = at
        parts = self._lots.parts(lot, epoch, self._order, lane)
        if not parts:
            return None
        try:
            rows = self._lots.read(parts, partial(read, self.dataset))
            if self.augmenter:
                rows = self.augmenter.apply(rows, epoch, self._lots.numbers(parts))
            return self.prepare(rows)
        except SigmaDataError as error:
            raise self._lots.locate(error, lot, epoch) from error

    def close(self) -> None:
        """Stop prefetching, and release the resident block; the next use reads it again."""
        self._reader.shutdown(wait=True, cancel_futures=True)
        self._open()
