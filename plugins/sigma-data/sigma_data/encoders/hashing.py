"""Encode categories of any number by a hash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from sigma_data.encoders.columns import read_categories
from sigma_data.sampling import mix
from sigma_kernel import Encoder
from sigma_kernel.settings import ge

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that its powers are all different from 0
LETTERS = mix(np.arange(256))
PIECE = 1 << 22  # bytes that are hashed at once


def hash_words(words: Any) -> np.ndarray:
    """Return a 64-bit hash of each word of an Arrow array of strings: the same in all processes and on all machines.

    A hash mixes the number of bytes and the polynomial of their mixed values in BASE, modulo 2^64: Carter and Wegman,
    Universal Classes of Hash Functions, Journal of Computer and System Sciences 18 (2), 1979.
    """
    words = pc.cast(pc.fill_null(words, ""), pa.large_binary())
    _, offsets, data = words.buffers()
    ends = np.frombuffer(offsets, np.int64)[words.offset : words.offset + len(words) + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    cuts = np.searchsorted(ends, np.arange(ends[0], ends[-1], PIECE)) if len(words) else np.zeros(0, np.int64)
    rows = np.unique([0, *cuts.tolist(), len(words)])
    hashes = [_hash_piece(ends[begin : end + 1], letters) for begin, end in pairwise(rows)]
    return np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)


def _hash_piece(ends: np.ndarray, letters: np.ndarray) -> np.ndarray:
    """Return the hashes of words that lie one after the other in ``letters``, between two ends each."""
    lengths = np.diff(ends)
    place = np.arange(ends[0], ends[-1]) - np.repeat(ends[:-1], lengths)
    powers = np.cumprod(np.full(int(lengths.max(initial=0)), BASE))
    terms = LETTERS[letters[ends[0] : ends[-1]]] * powers[place]
    sums = np.cumsum(terms) if len(terms) else terms
    before = np.concatenate([np.zeros(1, np.uint64), sums])
    totals = before[ends[1:] - ends[0]] - before[ends[:-1] - ends[0]]
    return mix(totals ^ mix(lengths))


@frozen
class HashingEncoder(Encoder):
    """Encode a category of any column as 1 or -1 at one of ``size`` places, both by its hash; a missing one as zeros.

    Nothing is learned, so that there are no unseen categories.  Several categories share a place.

    Weinberger, Dasgupta, Langford, Smola and Attenberg, Feature Hashing for Large Scale Multitask Learning, ICML 2009.

    Args:
        size: Number of places.
        signed: Whether half of the categories are -1 instead of 1.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("category", "identifier", "text", "boolean", "number", "date", "constant")
    size: int = field(default=32, validator=ge(1))
    signed: bool = True
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return nothing."""
        return {}

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the vectors, of shape (rows, size)."""
        codes = pc.dictionary_encode(pc.cast(read_categories(column), pa.string()))
        hashes = hash_words(codes.dictionary)
        rows = np.flatnonzero(pc.is_valid(codes.indices).to_numpy(zero_copy_only=False))
        hashes = hashes[codes.indices.drop_null().to_numpy()]
        vectors = np.zeros((len(column), self.size))
        signs = 1.0 - 2.0 * (hashes >> np.uint64(63)) if self.signed else 1.0
        vectors[rows, (hashes & np.uint64(0xFFFFFFFF)) % np.uint64(self.size)] = signs
        return vectors

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the column with the number of each place."""
        return tuple(f"{column} hash {place}" for place in range(self.size))
