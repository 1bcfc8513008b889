"""The lots of an epoch: the rows that are resident at once, of one block or of several open ones.

A data set with one open block has a lot for each block, in their order.  Of others, blocks are taken in an order that
the iterator draws for each epoch, one after the other; this sequence of rows is cut into lots of equal size, a multiple
of the batch size, so that only the last one may end with a smaller minibatch.  Lots have the same sizes in each epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from math import prod

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Dataset
from sigma_kernel.errors import SigmaDataError

ORDER_OF_BLOCKS = 0xFFFF_FFFD  # in place of the number of a block, for iterators

Order = Callable[[int, int, int], np.ndarray]  # of rows, by epoch, block and their number
Part = tuple[int, slice]


@frozen
class Lots:
    """The lots of a data set, of about ``open_blocks`` of its blocks each."""

    dataset: Dataset
    batch_size: int
    _starts: list[int] = field(init=False)  # of the lots; last, the number of all rows
    differ: bool = field(init=False)  # whether a lot has other rows in every epoch

    @_starts.default
    def _find_starts(self) -> list[int]:
        counts = [self.dataset.rows(block) for block in range(self.dataset.blocks)]
        if self.dataset.open_blocks == 1:
            return [0, *accumulate(counts)]
        most = self.dataset.open_blocks * max(counts)
        size, total = max(1, most // self.batch_size) * self.batch_size, sum(counts)
        return [*range(0, total, size), total]

    @differ.default
    def _find_differ(self) -> bool:
        return self.dataset.open_blocks > 1 and self.count > 1

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

    def parts(self, lot: int, epoch: int, order: Order) -> list[Part]:
        """Return the blocks of a lot, in order, and which of their rows it has."""
        if self.dataset.open_blocks == 1:
            return [(lot, slice(0, self.dataset.rows(lot)))]
        blocks = range(self.dataset.blocks)
        taken = order(epoch, ORDER_OF_BLOCKS, len(blocks)).tolist() if self.differ else [*blocks]
        first, last = self._starts[lot], self._starts[lot + 1]
        return [*_cut(taken, [self.dataset.rows(block) for block in taken], first, last)]

    def read(self, parts: list[Part], read: Callable[[int], Mapping[str, np.ndarray]]) -> Mapping[str, np.ndarray]:
        """Return the rows of a lot; ``read`` returns those of a block."""
        if self.dataset.open_blocks == 1:
            return read(parts[0][0])
        blocks = [{name: values[rows] for name, values in read(block).items()} for block, rows in parts]
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}

    def numbers(self, parts: list[Part]) -> np.ndarray:
        """Return the numbers of the rows of a lot in their split."""
        return np.concatenate([self.dataset.numbers(block)[rows] for block, rows in parts])

    def locate(self, error: SigmaDataError, lot: int, epoch: int) -> SigmaDataError:
        """Return an error about the rows of a lot, with its place."""
        if self.count == 1:
            return error
        where = f"block {lot}" if self.dataset.open_blocks == 1 else f"rows drawn together, lot {lot} of epoch {epoch}"
        return SigmaDataError(f"{where}: {error}")


def _cut(blocks: list[int], counts: list[int], first: int, last: int) -> Iterator[Part]:
    """Yield the parts of blocks, one after the other, that make up these rows of them all."""
    begin = 0
    for block, count in zip(blocks, counts, strict=True):
        start, stop = max(first - begin, 0), min(last - begin, count)
        if start < stop:
            yield block, slice(start, stop)
        begin += count
