"""Convolutions of numbers that are rounded to bfloat16, in the tile registers of AMX.

Planes are packed into pairs of channels, so that the tile of an element of the windows is read where it lies: 16 pairs
of channels, of 16 positions.  A sum is taken over 32 channels, element by element, and then over the next channels.
"""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import LanguageWord, address, as_f4, as_i4, at, compact, f4, i8, sel
from sigma_backend_numba.runtime.tile_product import PAIR, TILE, keep, lay_two

some, pairs = LanguageWord("some"), LanguageWord("pairs")
tiles_ready, tiles_done, tiles_cleared = map(LanguageWord, ("tiles_ready", "tiles_done", "tiles_cleared"))
rows_multiplied, tiles_kept = LanguageWord("rows_multiplied"), LanguageWord("tiles_kept")


@compact
def tile_shifts(
    left: Any, apart: Any, down: Any, near: Any, right: Any, plane: Any, far: Any, taps: Any, to: Any, length: Any,
    room: Any, rows: Any, channels: Any,
) -> None:  # fmt: skip
    """Write ``to[i, j] = sum of left[near[t], i, c] * right[c, far[t] + j]`` over c and t.

    The matrices of ``left`` are ``apart`` and their rows ``down``; planes of ``right`` are ``plane`` apart.  The result
    has rows of ``length`` numbers.  Of the memory after each plane, ``room`` has as much as tiles may read.
    """
    words, deep, high = as_i4(address(room)), (channels + 31) // 32, (rows + 31) // 32
    kept, spare = at(words, 16), at(words, 16 + 2 * PAIR)
    packed = at(spare, TILE)
    planes = at(packed, deep * taps * high * PAIR)
    for c in range(0, 32 * deep, 2):
        even, odd = sel(c < channels, c * plane, i8(0)), sel(c + 1 < channels, (c + 1) * plane, i8(0))
        for k in range(0, plane, 16):
            most, also = sel(c < channels, plane - k, i8(0)), sel(c + 1 < channels, plane - k, i8(0))
            pairs(at(planes, c // 2 * plane + k), some(at(right, even + k), most), some(at(right, odd + k), also))
    for i in range(high):
        for q in range(deep):
            for t in range(taps):
                start = at(left, near[t] * apart + 32 * i * down + 32 * q)
                tile = at(packed, ((i * deep + q) * taps + t) * PAIR)
                lay_two(tile, spare, start, down, i8(1), rows - 32 * i, channels - 32 * q, False)
    tiles_ready(words)
    for j in range(0, length, 32):
        for i in range(high):
            tiles_cleared()
            for q in range(deep):
                for t in range(taps):
                    tile = at(packed, ((i * deep + q) * taps + t) * PAIR)
                    other = at(planes, 16 * q * plane + far[t] + j)
                    rows_multiplied(tile, at(tile, TILE), other, at(other, 16), plane)
            tiles_kept(kept)
            place = at(to, 32 * i * length + j)
            keep(as_f4(address(kept)), place, length, min(i8(32), rows - 32 * i), length - j, f4(1.0), False)
    tiles_done()
