"""Write matrix products without BLAS, in registers: small ones, and large ones at which BLAS is slower.

A tile of a few rows and 64 bytes of columns stays in registers while it accumulates; every sum is taken in the order
of the inner axis, whatever the tile.  The remaining columns are one or two narrower tiles, which may overlap.
"""

from __future__ import annotations

from attrs import frozen

from sigma_backend_numba.compiler.tile_sizes import AT_ONCE
from sigma_backend_numba.emit.task import indented
from sigma_backend_numba.scalars import literal
from sigma_kernel.graph import BYTES

DEPTHS = (4, 6, 5, 3)  # rows of a small product's tile: the first that divides the number of rows, else the first
MANY = 96  # rows of a block; a larger product must use tiles that divide it
SMALL, TURNED, FEW = 600_000, 300_000, 60_000  # floating-point operations up to which BLAS is slower


def small(rows: int, columns: int, inner: int, turned: bool) -> bool:
    """Return whether BLAS is slower for a product; a transposed second operand is packed first."""
    return 2 * rows * columns * inner <= (SMALL if not turned else TURNED if rows >= 16 else FEW)


def depth(rows: int) -> int:
    """Return the rows of a tile; if a product is cut, pieces begin at multiples of it."""
    return next((d for d in DEPTHS if rows % d == 0), DEPTHS[0]) if rows < MANY else DEPTHS[0]


@frozen
class Tiles:
    """The text of ``to = scale * left @ right``, or of ``to += scale * left @ right``.

    The elements of ``left`` are ``down`` and ``along`` apart; rows of ``right`` (columns if transposed, ``turned``) are
    ``leading`` apart.  Packing needs a ``room`` of ``inner`` times ``wide`` elements.
    """

    dtype: str
    rows: int
    columns: int
    inner: int
    down: int
    along: int
    leading: int
    turned: bool
    scale: str
    added: bool

    @property
    def wide(self) -> int:
        """Return the columns of a tile."""
        return AT_ONCE // BYTES[self.dtype]

    @property
    def room(self) -> int:
        """Return the scratch elements for packed columns."""
        return self.inner * self.wide if self.turned else 0

    def lines(self, rows: str, columns: str) -> list[str]:
        """Return the product of the given rows and columns: all of them, or a piece."""
        wide, rest = self.wide, self.columns % self.wide
        lines = []
        if self.columns >= wide:
            lines += [f"for j in range(0, ({columns}) // {wide} * {wide}, {wide}):"]
            lines += indented(self._panel(rows, [(0, wide)]))
        if rest:
            lines += [f"for j in range(({columns}) // {wide} * {wide}, {columns}, {rest}):"]
            lines += indented(self._panel(rows, powers(rest) if self.added else covering(rest)))
        return lines

    def _panel(self, rows: str, parts: list[tuple[int, int]]) -> list[str]:
        """Return all rows of some columns from j on; ``parts`` are their starts and widths."""
        deep = depth(self.rows)
        rest = self.rows % deep
        lines = self._pack(parts) if self.turned else []
        lines += [f"for i in range(0, ({rows}) // {deep} * {deep}, {deep}):", *indented(self._tile(deep, parts))]
        if rest:
            ends = f"({rows}) // {deep} * {deep}, {rows}, {rest}"
            lines += [f"for i in range({ends}):", *indented(self._tile(rest, parts))]
        return lines

    def _pack(self, parts: list[tuple[int, int]]) -> list[str]:
        """Return lines that pack columns."""
        width = max(place + width for place, width in parts)
        each = f"room[q * {self.wide} + k] = right[(j + k) * {self.leading} + q]"
        return [f"for q in range({self.inner}):", f"    for k in range({width}):", "        " + each]

    def _tile(self, deep: int, parts: list[tuple[int, int]]) -> list[str]:
        """Return the lines of one tile: some rows from i on, some columns."""
        sums = [(r, place, width, f"s{r}_{place}_{width}") for r in range(deep) for place, width in parts]
        start = [f"{name} = {spread(width, literal(0, self.dtype))}" for _, _, width, name in sums]
        body = [f"l{r} = left[(i + {r}) * {self.down} + q * {self.along}]" for r in range(deep)]
        for place, width in parts:
            at = f"q * {self.wide} + {place}" if self.turned else f"q * {self.leading} + j + {place}"
            body.append(f"b{place}_{width} = {wide(width, 'room' if self.turned else 'right', at)}")
        body += [f"{name} += {spread(width, f'l{r}')} * b{place}_{width}" for r, place, width, name in sums]
        if self.scale != literal(1, self.dtype):
            ends = [f"{name} = {name} * {spread(width, self.scale)}" for _, _, width, name in sums]
        else:
            ends = []
        for r, place, width, name in sums:
            ends.append(kept(width, f"(i + {r}) * {self.columns} + j + {place}", name, self.added))
        return [*start, f"for q in range({self.inner}):", *indented(body), *ends]


def kept(width: int, place: str, value: str, added: bool) -> str:
    """Return the line that writes values to the result, or adds them."""
    return f"put(at(to, {place}), {wide(width, 'to', place) + ' + ' if added else ''}{value})"


def powers(columns: int) -> list[tuple[int, int]]:
    """Split columns into starts and widths that are powers of two."""
    width = 1 << (columns.bit_length() - 1)
    rest = [(width + place, part) for place, part in powers(columns - width)] if columns > width else []
    return [(0, width), *rest]


def covering(columns: int) -> list[tuple[int, int]]:
    """Split columns into one or two parts, which may overlap."""
    width = 1 << (columns.bit_length() - 1)
    return [(0, width)] if width == columns else [(0, width), (columns - width, width)]


def wide(width: int, pointer: str, place: str) -> str:
    """Return an expression that loads a vector."""
    return f"wide{width}(at({pointer}, {place}))"


def spread(width: int, value: str) -> str:
    """Return an expression that broadcasts a number to a vector."""
    return f"spread{width}({value})"
