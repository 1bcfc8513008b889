"""The lots of an epoch: the rows that are resident at once, of one block or of several open ones.

A data set with one open block has a lot for each block, in their order.  Of others, blocks are taken in an order that
the iterator draws for each epoch, one after the other; this sequence of rows is cut into lots of equal size, a multiple
of the batch size, so that only the last one may end with a smaller minibatch.  Lots have the same sizes in each epoch.

With lanes, the blocks are dealt once, by the seed: their rows are cut into one part for each lane, with as many rows as
a shard of each minibatch has together.  A block at the border of two lanes is read for both.  Each lane has its own
sequence of its blocks in an epoch, and its own part of every lot, which holds one lane after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaDataError

ORDER_OF_BLOCKS = 0xFFFF_FFFD  # in place of the number of a block, for iterators
DEAL = 0xFFFF_FFFC  # likewise, for the order in which blocks are dealt to lanes

Order = Callable[[int, int, int], np.ndarray]  # of rows, by epoch, block and their number
Part = tuple[int, slice]


@frozen
class Lots:
    """The lots of a data set, of about ``open_blocks`` of its blocks each, and at least one for each lane."""

    dataset: Dataset
    batch_size: int
    lanes: int = 1
    _whole: bool = field(init=False)  # whether a lot is a block
    _starts: list[int] = field(init=False)  # of the lots; last, the number of all rows
    differ: bool = field(init=False)  # whether a lot has other rows in every epoch

    @_whole.default
    def _find_whole(self) -> bool:
        return self.dataset.open_blocks == self.lanes == 1

    @_starts.default
    def _find_starts(self) -> list[int]:
        counts = [self.dataset.rows(block) for block in range(self.dataset.blocks)]
        if self._whole:
            return [0, *accumulate(counts)]
        most = max(self.dataset.open_blocks, self.lanes) * max(counts)
        size, total = max(1, most // self.batch_size) * self.batch_size, sum(counts)
        return [*range(0, total, size), total]

    @differ.default
    def _find_differ(self) -> bool:
        return not self._whole and self.count > 1

    @property
    def count(self) -> int:
        """Return the number of lots."""
        return len(self._starts) - 1

    @property
    def sizes(self) -> list[int]:
        """Return the number of rows of each lot."""
        return [end - start for start, end in zip(self._starts, self._starts[1:], strict=False)]

    def count_ahead(self, most: int) -> int:
        """Return how many lots may be read before they are needed: so many, or as their bytes allow."""
        if self.dataset.bytes_ahead is None:
            return most
        row = sum(prod(spec.shape) * np.dtype(spec.dtype).itemsize for spec in self.dataset.sections.values())
        return min(most, self.dataset.bytes_ahead // max(1, row * max(self.sizes)))

    # -- lanes ---------------------------------------------------------------------------------------------------------
    def divide(self, rows: int) -> np.ndarray:
        """Return how many of the first rows of a lot or an epoch each lane has: of each minibatch, those of a shard."""
        batches, rest = divmod(rows, self.batch_size)
        return np.asarray(batches * self._cut_batch(self.batch_size) + self._cut_batch(rest))

    def _cut_batch(self, rows: int) -> np.ndarray:
        return np.asarray(rows // self.lanes + (np.arange(self.lanes) < rows % self.lanes))

    def firsts(self, lot: int) -> list[int]:
        """Return the first row of each lane in a lot; last, the number of its rows."""
        return [0, *np.cumsum(self.divide(self.sizes[lot])).tolist()]

    def arrange(self, lot: int, orders: Sequence[np.ndarray]) -> np.ndarray:
        """Return the rows of a lot, minibatch by minibatch, given the order of the rows of each lane."""
        if self.lanes == 1:
            return orders[0]
        whole, sizes = self.sizes[lot] // self.batch_size, self._cut_batch(self.batch_size)
        rows = [first + order for first, order in zip(self.firsts(lot), orders, strict=False)]
        shares = [own[: whole * n].reshape(whole, n) for own, n in zip(rows, sizes, strict=True)]
        rest = [own[whole * n :] for own, n in zip(rows, sizes, strict=True)]
        return np.concatenate([np.concatenate(shares, axis=1).reshape(-1), *rest])

    # -- rows ----------------------------------------------------------------------------------------------------------
    def parts(self, lot: int, epoch: int, order: Order, lane: int = 0) -> list[Part]:
        """Return the blocks of a lane of a lot, in order, and which of their rows it has."""
        if self._whole:
            return [(lot, slice(0, self.dataset.rows(lot)))]
        parts = self._deal(lane, order)
        if self.differ:
            places = np.argsort(order(epoch, ORDER_OF_BLOCKS, self.dataset.blocks)).tolist()
            parts.sort(key=lambda part: places[part[0]])
        first, last = (int(self.divide(start)[lane]) for start in self._starts[lot : lot + 2])
        return [*_cut(parts, first, last)]

    def _deal(self, lane: int, order: Order) -> list[Part]:
        """Return the rows of a lane, which are the same in every epoch, by their blocks."""
        dealt = [*range(self.dataset.blocks)] if self.lanes == 1 else order(0, DEAL, self.dataset.blocks).tolist()
        ends = np.cumsum(self.divide(self._starts[-1]))
        blocks = ((block, slice(0, self.dataset.rows(block))) for block in dealt)
        return [*_cut(blocks, int(ends[lane - 1]) if lane else 0, int(ends[lane]))]

    def read(self, parts: list[Part], read: Callable[[int], Mapping[str, np.ndarray]]) -> Mapping[str, np.ndarray]:
        """Return the rows of parts; ``read`` returns those of a block."""
        if self._whole:
            return read(parts[0][0])
        blocks = [{name: values[rows] for name, values in read(block).items()} for block, rows in parts]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def numbers(self, parts: list[Part]) -> np.ndarray:
        """Return the numbers of the rows of parts in their split."""
        return np.concatenate([self.dataset.numbers(block)[rows] for block, rows in parts])

    def locate(self, error: SigmaDataError, lot: int, epoch: int) -> SigmaDataError:
        """Return an error about the rows of a lot, with its place."""
        if self.count == 1:
            return error
        where = f"block {lot}" if self._whole else f"rows drawn together, lot {lot} of epoch {epoch}"
        return SigmaDataError(f"{where}: {error}")


def _cut(parts: Iterable[Part], first: int, last: int) -> Iterator[Part]:
    """Yield what makes up these rows of all parts, one after the other."""
    begin = 0
    for block, rows in parts:
        start, stop = max(first - begin, 0), min(last - begin, rows.stop - rows.start)
        if start < stop:
            yield block, slice(rows.start + start, rows.start + stop)
        begin += rows.stop - rows.start
