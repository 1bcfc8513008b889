"""Small matrix products, in registers: BLAS packs its operands first, which takes a third of such a product or most.

A tile of a few rows and 64 bytes of columns stays in registers while it is summed up, each number in the order of the
inner axis, whatever the tile.  Columns that are left over come as one or two parts, which may overlap.
"""

from __future__ import annotations

from attrs import frozen

from sigma_backend_numba.expressions import literal
from sigma_backend_numba.task import indented
from sigma_kernel.graph.plan import BYTES

WIDE = 64  # bytes of a tile's row
DEPTHS = (4, 6, 5, 3)  # rows of a tile: the first of these that divides all rows, or the first
SMALL, TURNED, FEW = 600_000, 300_000, 60_000  # floating-point operations: up to here BLAS takes longer


def small(rows: int, columns: int, inner: int, turned: bool) -> bool:
    """Say whether BLAS takes longer; what lies transposed is turned first, for many rows or few."""
    return 2 * rows * columns * inner <= (SMALL if not turned else TURNED if rows >= 16 else FEW)


@frozen
class Tiles:
    """The text of ``to = scale * left @ right``, or of what adds that to what is there.

    Neighbours of ``left`` lie ``down`` and ``along`` apart, rows of ``right`` lie ``leading`` apart.
    """

    dtype: str
    rows: int
    columns: int
    inner: int
    down: int
    along: int
    leading: int
    scale: str
    added: bool

    def lines(self, count: str, whole: bool) -> list[str]:
        """Return the product for ``count`` rows; ``whole`` says that these are all of them."""
        deep = next((d for d in DEPTHS if self.rows % d == 0), DEPTHS[0]) if whole else DEPTHS[0]
        lines = self._rows(f"0, ({count}) // {deep} * {deep}, {deep}", deep)
        if self.rows % deep == 0:
            return lines
        rest = self.rows % deep if whole else 1
        return [*lines, *self._rows(f"({count}) // {deep} * {deep}, {count}, {rest}", rest)]

    def _rows(self, ends: str, deep: int) -> list[str]:
        wide = WIDE // BYTES[self.dtype]
        rest = self.columns % wide
        inside = []
        if self.columns >= wide:
            inside += [f"for j in range(0, {self.columns - rest}, {wide}):", *indented(self._tile(deep, [(0, wide)]))]
        if rest:
            parts = powers(rest) if self.added else covering(rest)
            inside += [f"j = i8({self.columns - rest})", *self._tile(deep, parts)]
        return [f"for i in range({ends}):", *indented(inside)]

    def _tile(self, deep: int, parts: list[tuple[int, int]]) -> list[str]:
        """Return so many rows, and columns from j on: parts say where they begin and how many they are."""
        sums = [(r, place, width, f"s{r}_{place}_{width}") for r in range(deep) for place, width in parts]
        start = [f"{name} = {_spread(width, literal(0, self.dtype))}" for _, _, width, name in sums]
        body = [f"e{r} = left[(i + {r}) * {self.down} + q * {self.along}]" for r in range(deep)]
        for place, width in parts:
            body.append(f"b{place}_{width} = {_wide(width, 'right', f'q * {self.leading} + j + {place}')}")
        body += [f"{name} += {_spread(width, f'e{r}')} * b{place}_{width}" for r, place, width, name in sums]
        ends = [self._kept(width, f"(i + {r}) * {self.columns} + j + {place}", name) for r, place, width, name in sums]
        return [*start, f"for q in range({self.inner}):", *indented(body), *ends]

    def _kept(self, width: int, place: str, name: str) -> str:
        """Return the line that writes the numbers of one sum, or adds them to what is there."""
        value = f"{name} * {_spread(width, self.scale)}" if self.scale != literal(1, self.dtype) else name
        value = f"{_wide(width, 'to', place)} + {value}" if self.added else value
        return f"put(at(to, {place}), {value})"


def powers(columns: int) -> list[tuple[int, int]]:
    """Return columns as beginnings and widths, these powers of two."""
    width = 1 << (columns.bit_length() - 1)
    rest = [(width + place, part) for place, part in powers(columns - width)] if columns > width else []
    return [(0, width), *rest]


def covering(columns: int) -> list[tuple[int, int]]:
    """Return the same as one or two parts, which may overlap."""
    width = 1 << (columns.bit_length() - 1)
    return [(0, width)] if width == columns else [(0, width), (columns - width, width)]


def turned(pointer: str, to: str, rows: int, columns: int, leading: int) -> list[str]:
    """Return lines that lay out a matrix whose transpose lies at a pointer, row by row."""
    inside = f"{to}[q * {columns} + j] = {pointer}[j * {leading} + q]"
    return [f"for q in range({rows}):", f"    for j in range({columns}):", "        " + inside]


def _wide(width: int, pointer: str, place: str) -> str:
    return f"wide{width}(at({pointer}, {place}))"


def _spread(width: int, value: str) -> str:
    return f"spread{width}({value})"
