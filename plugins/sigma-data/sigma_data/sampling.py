"""Samples of rows for quantiles, the same however the rows are divided into batches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

MOST = 1 << 20  # rows in a sample
ELEMENTS = 1 << 24  # numbers in a sample of rows of many features
FEWEST = 1 << 14  # rows in a sample, however many features they have


def mix(numbers: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each number, distinct for distinct ones.

    SplitMix64: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014, figure 17.
    """
    bits = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def sample_rows(blocks: Iterable[np.ndarray], most: int | None = None) -> np.ndarray:
    """Return the rows of all blocks; of more than ``most``, those whose numbers have the smallest hashes.

    By default, ``most`` is MOST, or less for rows of many features: ELEMENTS numbers in all, but at least FEWEST rows.
    These are a random sample, so that the share of rows below a quantile of the sample differs from that quantile's by
    less than sqrt(7.3 / most) with a probability of 1 - 10^-6: 0.3 % for a million rows.

    Massart, The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality, Annals of Probability 18 (3), 1990.
    """
    held, numbers = list[np.ndarray](), np.zeros(0, np.int64)  # of rows before the last ones
    rows = 0
    for block in blocks:
        limit = most or max(FEWEST, min(MOST, ELEMENTS // max(1, block[:1].size)))
        held.append(block)
        rows += len(block)
        if sum(map(len, held)) > 2 * limit:
            sample, numbers = _smallest(np.concatenate(held), numbers, rows, limit)
            held = [sample]
    if not rows:
        return np.zeros(0)
    joined = np.concatenate(held)
    return joined if rows <= limit else _smallest(joined, numbers, rows, limit)[0]


def _smallest(values: np.ndarray, numbers: np.ndarray, rows: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of the rows whose numbers have the smallest hashes, and these numbers.

    ``numbers`` has those of the first values; others are of the last of all ``rows``.
    """
    numbers = np.concatenate([numbers, np.arange(rows - (len(values) - len(numbers)), rows)])
    if len(values) <= most:
        return values, numbers
    chosen = np.argpartition(mix(numbers), most - 1)[:most]
    return values[chosen], numbers[chosen]
