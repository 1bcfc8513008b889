"""Pack numbers that are rounded to bfloat16 in pairs, for dot products in vector registers (AVX-512)."""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import LanguageWord, at, compact, i8, put, sel, wide

some, stored = LanguageWord("some"), LanguageWord("stored")
joined_pairs, joined_halves = LanguageWord("joined_pairs"), LanguageWord("joined_halves")


@compact
def pair_rows(to: Any, start: Any, rows: Any, length: Any) -> None:
    """Write a row of words for each two rows of ``length`` numbers; an odd last one is paired with zeros."""
    for r in range(0, rows, 2):
        words, first = at(to, r // 2 * length), at(start, r * length)
        below = sel(r + 1 < rows, length, i8(0))
        second, whole = at(first, below), below // 16 * 16
        for k in range(0, whole, 16):
            put(at(words, k), joined_pairs(wide(at(first, k)), wide(at(second, k))))
        for k in range(whole, length, 16):
            pairs = joined_pairs(some(at(first, k), length - k), some(at(second, k), below - k))
            stored(at(words, k), pairs, length - k)


@compact
def pair_neighbours(to: Any, start: Any, apart: Any, rows: Any, length: Any) -> None:
    """Write a row of words for each row of ``length`` numbers: one for two neighbours, the last perhaps with a zero.

    The rows of numbers are ``apart``.
    """
    count, whole = (length + 1) // 2, length // 32 * 32
    for r in range(rows):
        words, row = at(to, r * count), at(start, r * apart)
        for k in range(0, whole, 32):
            put(at(words, k // 2), joined_halves(wide(at(row, k)), wide(at(row, k + 16))))
        for k in range(whole, length, 32):
            more = at(row, sel(length - k > 16, k + 16, k))
            pairs = joined_halves(some(at(row, k), length - k), some(more, length - k - 16))
            stored(at(words, k // 2), pairs, count - k // 2)
