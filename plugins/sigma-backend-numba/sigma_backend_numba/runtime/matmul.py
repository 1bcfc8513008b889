"""Large matrix products: pack the operands into panels, then accumulate tiles in registers.

Some columns of the second operand are packed panel by panel, each as wide as a tile, so that a tile reads contiguous
memory; so are the rows of a transposed first operand.  (K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix
Multiplication, ACM TOMS 34, 2008.)  The order in which a number is summed depends on the inner axis alone, so that
products may be cut anywhere.
"""

from __future__ import annotations

from typing import Any

from sigma_backend_numba.compiler.language import at, compact, driver, fetch, i8, lanes, put, sel, spread, wide, zeros
from sigma_backend_numba.compiler.tile_sizes import DEEP, GROUP, INNER, ROWS


@compact
def product(
    left: Any, down: Any, along: Any, right: Any, under: Any, beside: Any, to: Any, apart: Any, room: Any, rows: Any,
    columns: Any, inner: Any, scale: Any, added: Any,
) -> None:  # fmt: skip
    """Write ``scale * left @ right`` to the result, or add it.

    Strides between neighbours are ``down`` and ``along`` in the first operand, ``under`` and ``beside`` in the second,
    and ``apart`` between rows of the result.  At least six rows are required, counting those before this piece.
    """
    many = sel(down == 1, i8(ROWS), rows)
    for begin in range(0, inner, INNER):
        for first in range(0, rows, many):
            part(
                at(left, first * down + begin * along), down, along, at(right, begin * under), under, beside,
                at(to, first * apart), apart, room, min(many, rows - first), columns, min(INNER, inner - begin), scale,
                added or begin > 0,
            )  # fmt: skip


@driver
def part(
    left: Any, down: Any, along: Any, right: Any, under: Any, beside: Any, to: Any, apart: Any, room: Any, rows: Any,
    columns: Any, inner: Any, scale: Any, added: Any,
) -> None:  # fmt: skip
    """Compute the product for one packed block of the inner axis."""
    span = lanes(to) * GROUP
    edge = at(room, inner * span)
    laid = at(edge, DEEP * lanes(to))
    if down == 1:
        turn(left, along, laid, rows, inner)
    for begin in range(0, columns, span):
        width, ahead, share = min(span, columns - begin), i8(0), i8(0)
        lay(at(right, begin * beside), under, beside, room, width, inner)
        if beside == 1 and begin + span < columns:
            share = inner * DEEP * lanes(to) // (rows * width) + 1
        for j in range(0, width, lanes(to)):
            panel, count = at(room, j * inner), min(lanes(to), width - j)
            for i in range(0, rows, DEEP):
                come(at(right, begin + span), under, ahead, min(ahead + share, inner), span)
                ahead += share
                row = min(i, rows - DEEP)  # the last tile overlaps the one before it
                for r in range(DEEP):  # prefetch the result, which may lie across two cache lines
                    fetch(at(to, (row + r) * apart + begin + j))
                    fetch(at(to, (row + r) * apart + begin + j + lanes(to) - 1))
                where = sel(down == 1, at(laid, i * inner), at(left, row * down))
                tile(where, sel(down == 1, i8(1), down), sel(down == 1, i8(DEEP), i8(1)), panel, inner, scale, edge)
                for r in range(i - row, DEEP):
                    keep(at(edge, r * lanes(to)), at(to, (row + r) * apart + begin + j), count, added)


@driver
def come(right: Any, under: Any, first: Any, last: Any, width: Any) -> None:
    """Prefetch rows of the columns that are packed next."""
    for q in range(first, last):
        for k in range(0, width, lanes(right)):
            fetch(at(right, q * under + k))


@driver
def turn(left: Any, along: Any, laid: Any, rows: Any, inner: Any) -> None:
    """Pack rows of a transposed operand, tile by tile."""
    for i in range(0, rows, DEEP):
        for q in range(inner):
            for r in range(DEEP):
                laid[i * inner + q * DEEP + r] = left[min(i, rows - DEEP) + r + q * along]


@driver
def lay(right: Any, under: Any, beside: Any, room: Any, width: Any, inner: Any) -> None:
    """Pack columns, panel by panel."""
    whole = width // lanes(room) * lanes(room)
    if beside == 1:
        for q in range(inner):
            for j in range(0, whole, lanes(room)):
                put(at(room, j * inner + q * lanes(room)), wide(at(right, q * under + j)))
            for k in range(width - whole):
                room[whole * inner + q * lanes(room) + k] = right[q * under + whole + k]
    else:
        for j in range(0, width, lanes(room)):
            for q in range(inner):
                for k in range(min(lanes(room), width - j)):
                    room[j * inner + q * lanes(room) + k] = right[(j + k) * beside + q]


@driver
def tile(left: Any, near: Any, far: Any, panel: Any, inner: Any, scale: Any, to: Any) -> None:
    """Accumulate one tile in registers; strides of the first operand are ``near`` between rows, ``far`` along a row."""
    nothing = zeros(to)
    p, q, r, s, t, u = nothing, nothing, nothing, nothing, nothing, nothing
    for k in range(inner):
        row, x = wide(at(panel, k * lanes(to))), at(left, k * far)
        p += spread(x[0]) * row
        q += spread(x[near]) * row
        r += spread(x[2 * near]) * row
        s += spread(x[3 * near]) * row
        t += spread(x[4 * near]) * row
        u += spread(x[5 * near]) * row
    by = spread(scale)
    put(to, p * by)
    put(at(to, lanes(to)), q * by)
    put(at(to, 2 * lanes(to)), r * by)
    put(at(to, 3 * lanes(to)), s * by)
    put(at(to, 4 * lanes(to)), t * by)
    put(at(to, 5 * lanes(to)), u * by)


@driver
def keep(values: Any, to: Any, count: Any, added: Any) -> None:
    """Write a row of a tile to the result, or add it."""
    if count < lanes(to):
        for k in range(count):
            to[k] = sel(added, to[k] + values[k], values[k])
    elif added:
        put(to, wide(to) + wide(values))
    else:
        put(to, wide(values))
