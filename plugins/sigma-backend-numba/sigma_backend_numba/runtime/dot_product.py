"""Products of float32 matrices that are rounded to bfloat16, by dot products of pairs in vector registers (AVX-512).

Both operands are packed into blocks, in which the pairs of 12 rows or of 32 columns are contiguous.  A sum is taken in
the order of the inner axis, whatever the block, so that products may be cut anywhere.
"""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import LanguageWord, address, as_f4, as_i4, at, compact, fetch, i8, sel
from sigma_backend_numba.compiler.tile_sizes import DOT_AHEAD, DOT_DEEP, DOT_FEW, DOT_ROWS

some, put, turned16 = map(LanguageWord, ("some", "put", "turned16"))
joined_pairs, joined_halves = map(LanguageWord, ("joined_pairs", "joined_halves"))
dots, few_dots = map(LanguageWord, ("dots", "few_dots"))


@compact
def dot_product(
    left: Any, down: Any, along: Any, right: Any, under: Any, beside: Any, to: Any, apart: Any, span: Any, room: Any,
    rows: Any, columns: Any, inner: Any, scale: Any, added: Any,
) -> None:  # fmt: skip
    """Write ``scale * left @ right`` to the result, or add it.

    Strides between neighbours are ``down`` and ``along`` in the first operand, ``under`` and ``beside`` in the second,
    and ``apart`` between rows of the result.  ``span`` columns are packed at a time.
    """
    pairs = (inner + 1) // 2
    line = (pairs + 15) // 16 * 16  # words of a row or a column
    spare = as_i4(address(room))
    panel = at(spare, 256)
    packed = at(panel, line * span)
    for first in range(0, rows, DOT_ROWS):
        high = min(i8(DOT_ROWS), rows - first)
        if along == 1:
            pack_rows(packed, line, spare, at(left, first * down), down, high, inner)
        else:
            pack_columns(packed, line, at(left, first * down), along, high, inner)
        for begin in range(0, columns, span):
            width = min(span, columns - begin)
            if beside == 1:
                pack_panel(panel, 32 * line, at(right, begin * beside), under, width, inner)
            else:
                turn_panel(panel, 32 * line, spare, at(right, begin * beside), beside, width, inner)
            for i in range(0, high, DOT_DEEP):
                for j in range(0, width, 32):
                    place = at(to, (first + i) * apart + begin + j)
                    block(
                        at(packed, i * line),
                        at(panel, j * line),
                        pairs,
                        place,
                        apart,
                        high - i,
                        width - j,
                        scale,
                        added,
                    )


@compact
def block(
    left: Any, right: Any, pairs: Any, to: Any, apart: Any, rows: Any, columns: Any, scale: Any, added: Any
) -> None:
    """Write at most 12 rows and 32 columns of the result, or add them."""
    if rows > 2 * DOT_FEW:
        dots(left, right, pairs, to, apart, rows, columns, scale, added)
    else:
        for i in range(0, rows, DOT_FEW):
            few_dots(at(left, i), right, pairs, at(to, i * apart), apart, rows - i, columns, scale, added)


@compact
def pack_rows(packed: Any, each: Any, spare: Any, left: Any, down: Any, rows: Any, inner: Any) -> None:
    """Pack rows with contiguous elements; the last block repeats its last row."""
    for i in range(0, rows, DOT_DEEP):
        for k in range(0, inner, 32):
            for r in range(DOT_DEEP):
                start = at(left, min(i + r, rows - 1) * down + k)
                more = at(start, sel(inner - k > 16, i8(16), i8(0)))
                put(at(spare, r * 16), joined_halves(some(start, inner - k), some(more, inner - k - 16)))
            turned16(as_f4(address(at(packed, i * each + k // 2 * DOT_DEEP))), DOT_DEEP, as_f4(address(spare)), 16)


@compact
def pack_columns(packed: Any, each: Any, left: Any, along: Any, rows: Any, inner: Any) -> None:
    """Pack rows with strided elements."""
    for i in range(0, rows, DOT_DEEP):
        count = min(i8(DOT_DEEP), rows - i)
        for k in range(0, inner, 2):
            start = at(left, k * along + i)
            below, also = at(start, sel(k + 1 < inner, along, i8(0))), sel(k + 1 < inner, count, i8(0))
            put(at(packed, i * each + k // 2 * DOT_DEEP), joined_pairs(some(start, count), some(below, also)))


@compact
def pack_panel(panel: Any, each: Any, right: Any, under: Any, columns: Any, inner: Any) -> None:
    """Pack columns with strided elements in blocks of 32, and prefetch those of later rows."""
    for k in range(0, inner, 2):
        start = at(right, k * under)
        below = at(start, sel(k + 1 < inner, under, i8(0)))
        come = at(start, sel(k + DOT_AHEAD + 1 < inner, DOT_AHEAD * under, i8(0)))
        also_come = at(come, under)
        for j in range(0, columns, 16):
            count = columns - j
            fetch(at(come, j))
            fetch(at(also_come, j))
            also = sel(k + 1 < inner, count, i8(0))
            to = at(panel, j // 32 * each + k * 16 + j % 32)
            put(to, joined_pairs(some(at(start, j), count), some(at(below, j), also)))


@compact
def turn_panel(panel: Any, each: Any, spare: Any, right: Any, beside: Any, columns: Any, inner: Any) -> None:
    """Pack columns with contiguous elements in blocks of 32."""
    for j in range(0, columns, 16):
        for k in range(0, inner, 32):
            for c in range(16):
                start = at(right, min(j + c, columns - 1) * beside + k)
                more = at(start, sel(inner - k > 16, i8(16), i8(0)))
                put(at(spare, c * 16), joined_halves(some(start, inner - k), some(more, inner - k - 16)))
            turned16(as_f4(address(at(panel, j // 32 * each + k * 16 + j % 32))), 32, as_f4(address(spare)), 16)
