"""Random numbers in graphs, and on the host for initial values and the order of data: one seed, one model everywhere.

All come from :mod:`sigma_kernel.graph.philox`.  Uniform numbers are made of the upper 24 bits of a word in float32 (and
narrower types), and of the upper 27 and 26 bits of two words in float64.  Normal ones are made of two words each: G. E.
P. Box, M. E. Muller, A note on the generation of random normal deviates, Ann. Math. Stat. 29 (1958) 610-611.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count
from math import pi, prod

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.graph import ops
from sigma_kernel.graph.functions import split, squeeze
from sigma_kernel.graph.namespace import WORD
from sigma_kernel.graph.node import Node, constant
from sigma_kernel.graph.philox import fill, host_blocks, scratch_bytes, words

INITIAL, ORDER = WORD, WORD - 1  # scan numbers of initial values and of data orders, which no scan reaches
AHEAD = 1 << 12  # rows whose order is drawn at once, for several epochs where there are fewer


@define
class Streams:
    """Number the named draws of a run.  ``numbers`` is saved with it, so that a name keeps its number."""

    numbers: dict[str, int] = field(factory=dict)

    def number(self, name: str) -> int:
        """Return the number of a draw, a new one for a new name."""
        return self.numbers.setdefault(name, max(self.numbers.values(), default=-1) + 1)


@define(eq=False, repr=False)
class Key:
    """Draw random nodes for one layer: its n-th draw is the stream ``name`` (n = 0) or ``name.n``.

    The nodes are the inputs of ``random_bits``: key ``(2,)``, and iteration, row and scan, all uint32 scalars.
    """

    key: Node
    iteration: Node
    row: Node
    scan: Node
    streams: Streams
    name: str = ""
    _draws: Iterator[int] = field(factory=count)

    def named(self, name: str) -> Key:
        """Return the key of another layer; one that this layer owns has the name ``layer.owned``."""
        return evolve(self, name=f"{self.name}.{name}" if self.name else name, draws=count())

    def at(self, scan: Node) -> Key:
        """Return this key inside the body of a scan, given the number of the iteration there."""
        return evolve(self, scan=scan)

    def bits(self, shape: Sequence[int]) -> Node:
        """Return 32 random bits an element, uint32; axis 0 is the batch, of which this may be a shard."""
        return ops.random_bits(*self._place, shape=tuple(shape), stream=self._stream())

    def uniform(
        self, shape: Sequence[int], low: Node | float = 0.0, high: Node | float = 1.0, dtype: str = "float32"
    ) -> Node:
        """Return uniform numbers of ``[low, high)``; only rounding can give ``high`` itself."""
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
        """Return booleans that are true with this probability, to 24 bits."""
        return ops.greater(probability, self.uniform(shape))

    def dropout(self, x: Node, rate: Node | float) -> Node:
        """Return x with elements set to 0 at this rate and the others divided by ``1 - rate``."""
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
    """Draw on the host, with NumPy and in float64, whatever the backend: the numbers of one parameter's initial values.

    Each further draw goes on where the last one ended.
    """

    seed: int
    stream: int
    _draws: Iterator[int] = field(factory=count, init=False)

    def bits(self, shape: Sequence[int]) -> np.ndarray:
        """Return 32 random bits an element, uint32."""
        return _bits(self.seed, self.stream, next(self._draws), INITIAL, shape)

    def uniform(self, shape: Sequence[int], low: float = 0.0, high: float = 1.0) -> np.ndarray:
        """Return uniform numbers of ``[low, high)``; only rounding can give ``high`` itself."""
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
        """Return normal numbers at most ``bound`` deviations from the mean; others are drawn again."""
        values = self.normal(shape)
        while (outside := np.abs(values) > bound).any():
            values[outside] = self.normal((int(outside.sum()),))
        return values * deviation + mean


def permutation(seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
    """Return the order of rows in an epoch, int64: sorted by 64 random bits each."""
    if 0 < rows <= AHEAD:
        ahead = AHEAD // rows
        return np.array(_orders(seed, stream, epoch // ahead, ahead, rows)[epoch % ahead])
    return _sorted(_joined(_bits(seed, stream, epoch, ORDER, (rows, 2))))


@lru_cache(maxsize=64)
def _orders(seed: int, stream: int, group: int, ahead: int, rows: int) -> np.ndarray:
    """Return the orders of ``ahead`` epochs: few rows cost hardly more than one row."""
    blocks = (rows + 1) // 2
    epochs = np.arange(group * ahead, (group + 1) * ahead).repeat(blocks)
    counter = (np.tile(np.arange(blocks), ahead), stream, epochs, ORDER)
    drawn = host_blocks(counter, words(seed), np.empty(64 * len(epochs), np.uint8))
    return np.argsort(_joined(drawn.reshape(ahead, -1, 2)[:, :rows]), kind="stable")


def _joined(pairs: np.ndarray) -> np.ndarray:
    """Return pairs of words as numbers of 64 bits, the upper word first."""
    upper, lower = pairs[..., 0].astype(np.uint64), pairs[..., 1]
    return np.asarray(upper << np.uint64(32) | lower)


def _sorted(keys: np.ndarray) -> np.ndarray:
    """Return the stable order of uint64 keys: sorting numbers, their places packed below, beats sorting places."""
    low = np.uint64(len(keys).bit_length())
    packed = keys >> low << low | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    order = (packed & (np.uint64(1) << low) - np.uint64(1)).view(np.int64)
    packed >>= low
    same = packed[1:] == packed[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))  # their lower bits decide
    order[tied] = order[tied][np.argsort(keys[order[tied]], kind="stable")]
    return order


def _bits(seed: int, stream: int, iteration: int, scan: int, shape: Sequence[int]) -> np.ndarray:
    bits = np.empty(prod(shape), np.uint32)
    fill(bits, np.empty(scratch_bytes(bits.size), np.uint8), words(seed), 0, (stream, iteration, scan))
    return bits.reshape(tuple(shape))


def _upper(bits: Node, dropped: int, dtype: str) -> Node:
    """Return words as floating-point numbers, without their lowest bits: what is left is exact."""
    return ops.cast(bits - ops.mod(bits, 1 << dropped), dtype=dtype)


def _pair(bits: Node) -> tuple[Node, Node]:
    """Return the two words of each value."""
    first, second = (squeeze(half, -1) for half in split(bits, 2))
    return first, second
