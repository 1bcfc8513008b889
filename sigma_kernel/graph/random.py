"""Random numbers in graphs, and on the host for initial values and the order of data; the same on every backend.

All are functions of the bits of :mod:`sigma_kernel.graph.philox`. A uniform number uses the upper 24 bits of a word in
float32 and narrower types, and the upper 27 and 26 bits of two words in float64. A normal number uses two words: G. E.
P. Box, M. E. Muller, A note on the generation of random normal deviates, Ann. Math. Stat. 29 (1958) 610-611.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from math import pi, prod

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.graph import ops
from sigma_kernel.graph.namespace import WORD
from sigma_kernel.graph.node import Node, constant
from sigma_kernel.graph.philox import BLOCKS, fill, host_blocks, scratch_bytes, words
from sigma_kernel.graph.reprs import brief

INITIAL, ORDER = WORD, WORD - 1  # scan numbers reserved for initial values and data orders
AUGMENTED, DRAWS = 1 << 31, 1 << 16  # the first reserved for augmentations, and draws of each
AHEAD = 1 << 12  # rows whose order is drawn at once: of several epochs if the data set is smaller


@define
class Streams:
    """Number the named draws of a run. ``numbers`` is saved with the run, so that a name keeps its number."""

    numbers: dict[str, int] = field(factory=dict)

    __repr__ = brief

    def restore(self, numbers: Mapping[str, int]) -> None:
        """Give names the numbers that they had in a saved run, whose parts may have been prepared in another order."""
        self.numbers.update(numbers)

    def number(self, name: str) -> int:
        """Return the number of a draw; a new name gets a new number."""
        return self.numbers.setdefault(name, max(self.numbers.values(), default=-1) + 1)


@define(eq=False, repr=False)
class Key:
    """Draw random nodes for one layer; its n-th draw uses the stream ``name`` (n = 0) or ``name.n``.

    The nodes are the operands of ``random_bits``: key ``(2,)``, and the scalars iteration, row and scan, all uint32.
    """

    key: Node
    iteration: Node
    row: Node
    scan: Node
    streams: Streams
    name: str = ""
    _draws: Iterator[int] = field(factory=count)

    def for_layer(self, name: str) -> Key:
        """Return the key of another layer; a layer owned by this one is named ``layer.owned``."""
        return evolve(self, name=f"{self.name}.{name}" if self.name else name, draws=count())

    def for_scan(self, scan: Node) -> Key:
        """Return this key for the body of a scan, given the number of the step."""
        return evolve(self, scan=scan)

    def bits(self, shape: Sequence[int]) -> Node:
        """Return 32 random bits per element, uint32; axis 0 is the batch, or a shard of it."""
        return ops.random_bits(*self._place, shape=tuple(shape), stream=self._stream())

    def uniform(
        self, shape: Sequence[int], low: Node | float = 0.0, high: Node | float = 1.0, dtype: str = "float32"
    ) -> Node:
        """Return uniform numbers in ``[low, high)``; rounding may produce ``high``."""
        if dtype == "float64":
            first, second = _pair(self.bits((*shape, 2)))
            unit = _upper(first, 5, dtype) * 2.0**-32 + _upper(second, 6, dtype) * 2.0**-59
        else:
            unit = ops.cast(_upper(self.bits(shape), 8, "float32") * 2.0**-32, dtype=dtype)
        return unit * (high - low) + low

    def normal(
        self, shape: Sequence[int], mean: Node | float = 0.0, deviation: Node | float = 1.0, dtype: str = "float32"
    ) -> Node:
        """Return normal numbers, at most 5.8 deviations from the mean in float32 and 6.8 in float64."""
        first, second = _pair(self.bits((*shape, 2)))
        if dtype == "float64":
            radial, angle = ((ops.cast(x, dtype=dtype) + 0.5) * 2.0**-32 for x in (first, second))
        else:
            radial, angle = 1.0 - _upper(first, 8, "float32") * 2.0**-32, _upper(second, 8, "float32") * 2.0**-32
        standard = ops.sqrt(-2.0 * ops.log(radial)) * ops.cos(2.0 * pi * angle)
        return ops.cast(standard, dtype=dtype) * deviation + mean

    def bernoulli(self, probability: Node | float, shape: Sequence[int]) -> Node:
        """Return booleans that are true with this probability, with 24 bits of precision."""
        return ops.greater(probability, self.uniform(shape))

    def dropout(self, x: Node, rate: Node | float) -> Node:
        """Return x with elements set to 0 with probability ``rate``, and the others divided by ``1 - rate``."""
        at = rate if isinstance(rate, Node) else constant(rate, x.dtype)
        return ops.dropout(x, at, *self._place, stream=self._stream())

    @property
    def _place(self) -> tuple[Node, Node, Node, Node]:
        return self.key, self.iteration, self.row, self.scan

    def _stream(self) -> int:
        number = next(self._draws)
        return self.streams.number(f"{self.name}.{number}" if number else self.name)


@define(eq=False, repr=False)
class Draw:
    """Draw the initial values of one parameter on the host, in float64, independently of the backend.

    Each draw has new numbers.
    """

    seed: int
    stream: int
    _draws: Iterator[int] = field(factory=count, init=False)

    def bits(self, shape: Sequence[int]) -> np.ndarray:
        """Return 32 random bits per element, uint32."""
        return _bits(self.seed, self.stream, next(self._draws), INITIAL, shape)

    def uniform(self, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Return uniform numbers in ``[low, high)``; rounding may produce ``high``."""
        first, second = np.moveaxis(self.bits((*shape, 2)), -1, 0)
        unit = (first >> 5) * 2.0**-27 + (second >> 6) * 2.0**-53
        return np.asarray(unit * (high - low) + low)

    def normal(self, shape: Sequence[int], mean: float = 0.0, deviation: float = 1.0) -> np.ndarray:
        """Return normal numbers."""
        radial, angle = (np.moveaxis(self.bits((*shape, 2)), -1, 0) + 0.5) * 2.0**-32
        return np.asarray(np.sqrt(-2.0 * np.log(radial)) * np.cos(2.0 * pi * angle) * deviation + mean)

    def truncated_normal(
        self, shape: Sequence[int], mean: float = 0.0, deviation: float = 1.0, bound: float = 2.0
    ) -> np.ndarray:
        """Return normal numbers within ``bound`` deviations of the mean; others are redrawn."""
        values = self.normal(shape)
        while (outside := np.abs(values) > bound).any():
            values[outside] = self.normal((int(outside.sum()),))
        return values * deviation + mean


@define(eq=False, repr=False)
class RowDraws:
    """Draw numbers for each of some numbered rows on the host, in float64.

    They are a function of the seed, the stream, the epoch, the number of the row, and of how many draws came before,
    whatever the other rows are. ``rows`` are the numbers of the rows, and axis 0 of all results.
    """

    seed: int
    stream: int
    epoch: int
    rows: np.ndarray
    _draws: Iterator[int] = field(factory=count, init=False)

    def bits(self, shape: Sequence[int] = ()) -> np.ndarray:
        """Return 32 random bits per element of each row, uint32, of shape ``(rows, *shape)``."""
        width, scan = prod(shape), AUGMENTED + self.stream * DRAWS + next(self._draws)
        blocks = (width + 3) // 4
        bits, some = np.empty((len(self.rows), width), np.uint32), max(1, BLOCKS // max(1, blocks))
        rows, block = np.asarray(self.rows, np.uint64) & np.uint64(WORD), np.arange(blocks, dtype=np.uint64)
        scratch = np.empty(64 * blocks * min(some, len(rows)), np.uint8)
        for first in range(0, len(rows), some):
            part = rows[first : first + some]
            counter = (np.tile(block, len(part)), part.repeat(blocks), self.epoch & WORD, scan)
            drawn = host_blocks(counter, words(self.seed), scratch[: 64 * blocks * len(part)])
            bits[first : first + some] = drawn.reshape(len(part), 4 * blocks)[:, :width]
        return bits.reshape(len(rows), *shape)

    def uniform(self, shape: Sequence[int] = (), low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Return uniform numbers in ``[low, high)``; rounding may produce ``high``."""
        first, second = np.moveaxis(self.bits((*shape, 2)), -1, 0)
        return np.asarray(((first >> 5) * 2.0**-27 + (second >> 6) * 2.0**-53) * (high - low) + low)

    def integers(self, low: int, high: int, shape: Sequence[int] = ()) -> np.ndarray:
        """Return whole numbers of ``low`` to ``high`` inclusive, int64."""
        return np.asarray(low + np.minimum(self.uniform(shape) * (high - low + 1), high - low).astype(np.int64))

    def normal(self, shape: Sequence[int] = (), mean: float = 0.0, deviation: float = 1.0) -> np.ndarray:
        """Return normal numbers, at most 6.8 deviations from the mean."""
        size = prod(shape)
        first, second = np.moveaxis((self.bits(((size + 1) // 2, 2)) + 0.5) * 2.0**-32, -1, 0)
        radius, angle = np.sqrt(-2.0 * np.log(first)), 2.0 * pi * second
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)[:, :size]
        return np.asarray(both.reshape(len(self.rows), *shape) * deviation + mean)


def permutation(seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
    """Return the order of rows in an epoch, int64: the rows sorted by 64 random bits each."""
    if 0 < rows <= AHEAD:
        ahead = AHEAD // rows
        return np.array(_orders(seed, stream, epoch // ahead, ahead, rows)[epoch % ahead])
    return _stable_order(_bits(seed, stream, epoch, ORDER, (rows, 2)))


@lru_cache(maxsize=64)
def _orders(seed: int, stream: int, group: int, ahead: int, rows: int) -> np.ndarray:
    """Return the orders of ``ahead`` epochs at once; for few rows, that costs hardly more than one."""
    blocks = (rows + 1) // 2
    epochs = np.arange(group * ahead, (group + 1) * ahead).repeat(blocks)
    counter = (np.tile(np.arange(blocks), ahead), stream, epochs, ORDER)
    drawn = host_blocks(counter, words(seed), np.empty(64 * len(epochs), np.uint8))
    return np.argsort(_join_words(drawn.reshape(ahead, -1, 2)[:, :rows]), kind="stable")


def _join_words(pairs: np.ndarray) -> np.ndarray:
    """Join pairs of words, the upper one first, to uint64."""
    return np.asarray(pairs[..., 0].astype(np.uint64) << np.uint64(32) | pairs[..., 1])


def _stable_order(pairs: np.ndarray) -> np.ndarray:
    """Return the stable order of pairs of words, the upper one first.

    NumPy sorts up to 16 bits by radix; for 64 bits it may use compressing stores of AVX-512, which are slow on Zen 4.
    """
    upper = pairs[:, 0] >> np.uint32(8)
    order = np.argsort(upper.astype(np.uint8), kind="stable")
    order = order.take(np.argsort((upper >> np.uint32(8)).astype(np.uint16).take(order), kind="stable"))
    same = np.diff(upper.take(order)) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))  # equal in 24 bits: compare all
    order[tied] = order[tied][np.argsort(_join_words(pairs[order[tied]]), kind="stable")]
    return order


def _bits(seed: int, stream: int, iteration: int, scan: int, shape: Sequence[int]) -> np.ndarray:
    bits = np.empty(prod(shape), np.uint32)
    fill(bits, np.empty(scratch_bytes(bits.size), np.uint8), words(seed), 0, (stream, iteration, scan))
    return bits.reshape(tuple(shape))


def _upper(bits: Node, dropped: int, dtype: str) -> Node:
    """Return words as floats without their lowest bits, so that the conversion is exact."""
    return ops.cast(bits - ops.mod(bits, 1 << dropped), dtype=dtype)


def _pair(bits: Node) -> tuple[Node, Node]:
    """Return the two words of each value."""
    shape = bits.shape[:-1]
    first, second = (ops.reshape(half, shape=shape) for half in ops.pieces(bits, (1, 1), len(shape)))
    return first, second
