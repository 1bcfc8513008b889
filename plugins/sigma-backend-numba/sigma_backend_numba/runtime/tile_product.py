"""Products of float32 matrices that are rounded to bfloat16, in the tile registers of AMX.

Both operands are packed into tiles, the second 32 columns at a time.  A sum is taken in the order of the inner axis,
whatever the tile, so that products may be cut anywhere.
"""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import (
    LanguageWord,
    address,
    as_f4,
    as_i4,
    at,
    compact,
    driver,
    i8,
    sel,
    spread,
    wide,
)
from sigma_backend_numba.compiler.tile_sizes import MIXED_COLUMNS, MIXED_ROWS

some, stored, pairs, halves, turned16 = map(LanguageWord, ("some", "stored", "pairs", "halves", "turned16"))
tiles_ready, tiles_done, tiles_cleared = map(LanguageWord, ("tiles_ready", "tiles_done", "tiles_cleared"))
tiles_multiplied, tiles_kept = map(LanguageWord, ("tiles_multiplied", "tiles_kept"))
TILE, PAIR = 256, 512  # words of a tile, and of two


@compact
def tile_product(
    left: Any, down: Any, along: Any, right: Any, under: Any, beside: Any, to: Any, apart: Any, room: Any, rows: Any,
    columns: Any, inner: Any, scale: Any, added: Any,
) -> None:  # fmt: skip
    """Write ``scale * left @ right`` to the result, or add it.

    Strides between neighbours are ``down`` and ``along`` in the first operand, ``under`` and ``beside`` in the second,
    and ``apart`` between rows of the result.
    """
    words, deep = as_i4(address(room)), (inner + 31) // 32
    kept, spare = at(words, 16), at(words, 16 + 2 * PAIR)
    panel = at(spare, TILE)
    packed = at(panel, deep * PAIR * (MIXED_COLUMNS // 32))
    tiles_ready(words)
    for first in range(0, rows, MIXED_ROWS):
        high = min(i8(MIXED_ROWS), rows - first)
        for i in range(0, high, 32):
            for q in range(deep):
                start, tile = at(left, (first + i) * down + q * 32 * along), at(packed, (i // 32 * deep + q) * PAIR)
                lay_two(tile, spare, start, down, along, high - i, inner - q * 32, False)
        for begin in range(0, columns, MIXED_COLUMNS):
            width = min(i8(MIXED_COLUMNS), columns - begin)
            pieces = (width + 31) // 32
            for n in range(deep * pieces):  # in the order in which the numbers lie
                q, j = sel(beside == 1, n // pieces, n % deep), 32 * sel(beside == 1, n % pieces, n // deep)
                start = at(right, (begin + j) * beside + q * 32 * under)
                tile = at(panel, (j // 32 * deep + q) * PAIR)
                lay_two(tile, spare, start, beside, under, width - j, inner - q * 32, True)
            for j in range(0, width, 32):
                for i in range(0, high, 32):
                    tiles_cleared()
                    for q in range(deep):
                        tile, other = at(packed, (i // 32 * deep + q) * PAIR), at(panel, (j // 32 * deep + q) * PAIR)
                        tiles_multiplied(tile, at(tile, TILE), other, at(other, TILE))
                    tiles_kept(kept)
                    place = at(to, (first + i) * apart + begin + j)
                    keep(as_f4(address(kept)), place, apart, min(i8(32), high - i), width - j, scale, added)
    tiles_done()


@driver
def lay_two(tile: Any, spare: Any, start: Any, step: Any, along: Any, count: Any, inner: Any, paired: Any) -> None:
    """Pack the rows of two tiles."""
    lay(tile, spare, start, step, along, count, inner, paired)
    more = at(start, sel(count > 16, 16 * step, i8(0)))
    lay(at(tile, TILE), spare, more, step, along, count - 16, inner, paired)


@compact
def lay(tile: Any, spare: Any, start: Any, step: Any, along: Any, count: Any, inner: Any, paired: Any) -> None:
    """Pack 16 rows, ``step`` apart, of 32 numbers of the inner axis, ``along`` apart; what is outside becomes 0.

    A row of the tile holds those of one row in pairs, or if ``paired`` a pair of each row.
    """
    if along == 1:
        to = sel(paired, address(spare), address(tile))
        for r in range(16):
            row, most = at(start, sel(r < count, r * step, i8(0))), sel(r < count, inner, i8(0))
            halves(at(as_i4(to), r * 16), some(row, most), some(at(row, sel(most > 16, i8(16), i8(0))), most - 16))
    else:
        to = sel(paired, address(tile), address(spare))
        for w in range(16):
            even, odd = sel(2 * w < inner, 2 * w * along, i8(0)), sel(2 * w + 1 < inner, (2 * w + 1) * along, i8(0))
            x = some(at(start, even), sel(2 * w < inner, count, i8(0)))
            pairs(at(as_i4(to), w * 16), x, some(at(start, odd), sel(2 * w + 1 < inner, count, i8(0))))
    if to == address(spare):
        turned16(as_f4(address(tile)), 16, as_f4(address(spare)), 16)


@compact
def keep(sums: Any, to: Any, apart: Any, rows: Any, columns: Any, scale: Any, added: Any) -> None:
    """Write four tiles of sums to the result, or add them."""
    by = spread(scale)
    for r in range(rows):
        for k in range(2):
            place = at(to, r * apart + sel(columns > 16 * k, 16 * k, i8(0)))
            tile = wide(at(sums, (r // 16 * 2 + k) * 256 + r % 16 * 16)) * by
            if added:
                stored(place, some(place, columns - 16 * k) + tile, columns - 16 * k)
            else:
                stored(place, tile, columns - 16 * k)
