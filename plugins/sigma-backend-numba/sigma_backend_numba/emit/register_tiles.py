"""Write matrix products without BLAS: tiles that stay in registers while they accumulate.

A tile is some rows and some vectors of columns.  Every sum is taken in the order of the inner axis, block by block,
whatever the tile and however a product is cut.  Large products pack the operands into panels, so that a tile reads
contiguous memory.  (K. Goto and R. van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34, 2008.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from math import gcd

from attrs import frozen

from sigma_backend_numba.compiler.processor import registers
from sigma_backend_numba.compiler.tile_sizes import AT_ONCE, DEPTH, NEAR, REGISTERS
from sigma_backend_numba.emit.task import indent
from sigma_backend_numba.scalars import literal
from sigma_kernel.graph import BYTES

Parts = list[tuple[int, int]]  # first columns and widths of the vectors of a tile
Sum = tuple[int, int, int, str]  # row, first column, width and name of a vector of sums
LINE, SETS, WAYS = 64, 64, 4  # bytes of a line of the first cache, its sets, and half of the lines of one
FEW = 4  # panels for which packing a row of tiles takes longer than it saves
APART = 4  # steps between two prefetches
FAR = 4  # times as large as the operands: a result that is written row by row although it stays in the cache


@frozen
class Shape:
    """The sides of a tile: rows, and vectors of columns."""

    rows: int
    vectors: int

    def cycles(self) -> float:
        """Return about how long one step of the inner axis takes: multiplications, loads, and their latency."""
        each = AT_ONCE * 8 // registers()
        busy = max(self.rows * self.vectors * each / 2, (self.rows + self.vectors * each) / 2, 4)
        return busy + 0.05 * (self.rows + self.vectors * each)


def shape(rows: int, vectors: int) -> Shape:
    """Return the best sides of tiles for a product of this many rows and vectors of columns."""
    return _best_shape(rows, vectors, registers())


@cache
def _best_shape(rows: int, vectors: int, bits: int) -> Shape:
    """Return the best sides for registers of some width: the same layers occur often in a network."""
    each, room = AT_ONCE * 8 // bits, REGISTERS[bits] - 1
    every = (Shape(d, v) for v in range(1, 5) for d in range(1, (room - v * each) // (v * each) + 1) if d <= 16)
    return min(every, key=lambda one: (_total_cycles(one, rows, vectors), -one.rows))


def _total_cycles(one: Shape, rows: int, vectors: int) -> float:
    """Return about how long all tiles take."""
    down, across = divmod(rows, one.rows), divmod(vectors, one.vectors)
    kinds = [(one.rows, down[0]), (down[1], 1)], [(one.vectors, across[0]), (across[1], 1)]
    return sum(m * n * Shape(d, v).cycles() for d, m in kinds[0] if d for v, n in kinds[1] if v)


@frozen
class Ahead:
    """The prefetches of a tile, from ``start`` on: some places at each of so many steps, then the last ones again."""

    pointer: str
    start: str
    places: range
    apart: int
    steps: str

    @property
    def first_lines(self) -> list[str]:
        """Return the lines before all steps."""
        return [f"{self.pointer} = {self.start}"]

    def fetches(self, alone: bool) -> list[str]:
        """Return the lines of one step.  ``alone``: there are no more steps than these."""
        apart = str(self.apart) if alone else f"sel(e < {self.steps} - 1, {self.apart}, 0)"
        fetches = [f"fetch(at({self.pointer}, {place}))" for place in self.places]
        return [*fetches, f"{self.pointer} = at({self.pointer}, {apart})"]


@frozen
class AheadOfRows:
    """The prefetches of a tile from the rows of a block: the places of one step, which depend on its number ``e``."""

    places: Sequence[str]
    steps: str
    first_lines: Sequence[str] = ()

    def fetches(self, alone: bool) -> list[str]:
        """Return the lines of one step."""
        return [f"if e < {self.steps}:", *indent([f"fetch(at(left, {place}))" for place in self.places])]


Aheads = list[Ahead | AheadOfRows]


@frozen(eq=False, slots=False)
class Tiles:
    """The text of ``to = scale * left @ right``, or of ``to += scale * left @ right``.

    The elements of ``left`` are ``down`` and ``along`` apart; rows of ``right`` (columns if transposed, ``turned``) are
    ``leading`` apart, those of the result ``apart``.  A product that is ``packed`` reads panels only.  Of a
    ``resident`` block of samples, ``left`` is the rows with the numbers in ``among``, or their transpose.  ``number``
    writes the inner side and what follows from it.
    """

    dtype: str
    rows: int
    columns: int
    inner: int
    down: int
    along: int
    leading: int
    turned: bool
    apart: int
    scale: str
    added: bool
    packed: bool
    resident: bool = False
    number: Callable[[int], str] = str

    @cached_property
    def lanes(self) -> int:
        """Return the elements of a vector."""
        return AT_ONCE // BYTES[self.dtype]

    @cached_property
    def shape(self) -> Shape:
        """Return the sides of a tile; pieces of the product begin at multiples of them."""
        return shape(self.rows, max(self.columns // self.lanes, 1))

    @property
    def wide(self) -> int:
        """Return the columns of a panel."""
        return self.shape.vectors * self.lanes

    @cached_property
    def deep(self) -> int:
        """Return the length of a block of the inner axis."""
        blocks = -(-self.inner // DEPTH[registers()])
        return self.inner if blocks <= 1 else -(-self.inner // blocks // 16) * 16

    @property
    def by_rows(self) -> bool:
        """Return whether each row of tiles passes all panels, so that the result is written row by row.

        That is better if the result is the largest matrix by far, or the largest and too large for a core's own cache.
        """
        less = FAR if self.rows * self.columns * BYTES[self.dtype] <= NEAR else 1
        return self.packed and min(self.rows, self.columns) > less * self.inner

    @property
    def panels(self) -> bool:
        """Return whether columns are packed."""
        return self.packed or self.turned

    @property
    def room(self) -> int:
        """Return the number of scratch elements."""
        if not self.panels:
            return 0
        return max(self.deep, 1) * (
            self.wide * (-(-self.span // self.wide) if self.by_rows else 1) + 2 * self.shape.rows
        )

    @property
    def span(self) -> int:
        """Return the columns that are packed at a time."""
        return min(self.columns, max(NEAR // BYTES[self.dtype] // max(self.deep, 1) // self.wide, 1) * self.wide)

    @property
    def is_packed_once(self) -> bool:
        """Return whether all panels of a product are packed at once, for all of its rows."""
        return self.by_rows and self.deep == self.inner and self.span == self.columns

    @property
    def turns(self) -> bool:
        """Return whether a row of tiles packs its strided rows.

        It does so for many panels, and where too few sets of the cache would hold the elements.
        """
        apart = self.along * BYTES[self.dtype]
        sets = SETS // gcd(apart // LINE, SETS) if apart % LINE == 0 else SETS
        few = self.columns <= FEW * self.wide and self.deep <= sets * WAYS
        return self.by_rows and self.down == 1 and not few

    @cached_property
    def prefetch(self) -> TilePrefetch:
        """Return what tiles fetch into the cache while they compute."""
        return TilePrefetch(self)

    # -- loops ---------------------------------------------------------------------------------------------------------
    def lines(self, rows: str, columns: str, ready: bool = False) -> list[str]:
        """Return the product of the given rows and columns: all of them, or a piece.  ``ready``: panels are packed."""
        lines = self._pass(rows, columns, ready)
        if self.deep == self.inner:
            return ["k0, length = 0, " + self.number(self.inner), *lines]
        head = [f"for k0 in range(0, {self.inner}, {self.deep}):", f"    length = min({self.deep}, {self.inner} - k0)"]
        return [*head, *indent(lines)]

    def _pass(self, rows: str, columns: str, ready: bool) -> list[str]:
        """Return the lines for one block of the inner axis."""
        if not self.by_rows:
            return self._loop_over_panels("0", columns, lambda p: self._panel(rows, columns, p))
        if ready:
            return self._row_by_row(rows, "0", columns)
        inside = [*self.pack("j0", "j1"), *self._row_by_row(rows, "j0", "j1")]
        head = [f"for j0 in range(0, {columns}, {self.span}):", f"    j1 = min(j0 + {self.span}, {columns})"]
        return [*head, *indent(inside)]

    def pack(self, first: str, last: str) -> list[str]:
        """Return lines that pack all panels of some columns."""
        where = f"at(room, (j - {first}) * length)" if first != "0" else "at(room, j * length)"
        lines = ["k0, length = 0, " + self.number(self.inner)] if self.is_packed_once else []
        return [*lines, *self._loop_over_panels(first, last, lambda p: [f"panel = {where}", *self._pack(p)])]

    def _loop_over_panels(self, first: str, last: str, inside: Callable[[Parts], list[str]]) -> list[str]:
        """Return loops over the panels of some columns; ``inside`` writes the body for one of a kind."""
        wide, rest, lines = self.wide, self.columns % self.wide, []
        count, start = (last, "") if first == "0" else (f"{last} - {first}", f"{first} + ")
        end = f"{start}({count}) // {wide} * {wide}"
        if self.columns >= wide:
            lines += [f"for j in range({first}, {end}, {wide}):", *indent(inside(vectors(wide, self.lanes)))]
        if rest:
            lines += [f"for j in range({end}, {last}, {rest}):", *indent(inside(self._edge(rest)))]
        return lines

    def _edge(self, columns: int) -> Parts:
        """Return the vectors of the last panel; parts that are added must not overlap."""
        tail = columns % self.lanes
        split = disjoint if self.added or self.deep < self.inner else covering
        parts = [(columns - tail + place, width) for place, width in split(tail)] if tail else []
        return [*vectors(columns - tail, self.lanes), *parts]

    def _panel(self, rows: str, columns: str, parts: Parts) -> list[str]:
        """Return all rows of some columns from j on."""
        lines = ["panel = at(room, 0)", *self._pack(parts)] if self.panels else []
        ahead = [self.prefetch.columns(), *self.prefetch.rows(rows, "0")] if self.packed else []
        if self.packed:
            lines.append(f"next = at(right, {self.prefetch.next_panel(columns)})")
        return lines + self._loop_over_rows(rows, lambda d: self._tile(d, parts, "i", ahead))

    def _row_by_row(self, rows: str, first: str, last: str) -> list[str]:
        """Return each row of tiles, over all panels."""
        ahead = self.prefetch.rows(rows, first)

        def write_tiles(d: int) -> list[str]:
            turn = self._turn(d) if self.turns else []
            where = "at(room, j * length)" if first == "0" else f"at(room, (j - {first}) * length)"
            tiles = self._loop_over_panels(first, last, lambda p: [f"panel = {where}", *self._tile(d, p, "i", ahead)])
            return [*turn, *tiles]

        return self._loop_over_rows(rows, write_tiles)

    def _loop_over_rows(self, rows: str, inside: Callable[[int], list[str]]) -> list[str]:
        """Return loops over the rows of tiles."""
        deep, rest = self.shape.rows, self.rows % self.shape.rows
        end, lines = f"({rows}) // {deep} * {deep}", []
        if self.rows >= deep:
            lines += [f"for i in range(0, {end}, {deep}):", *indent(inside(deep))]
        if rest:
            lines += [f"for i in range({end}, {rows}, {rest}):", *indent(inside(rest))]
        return lines

    # -- packing -------------------------------------------------------------------------------------------------------
    def _pack(self, parts: Parts) -> list[str]:
        """Return lines that pack columns from j on."""
        if self.turned:
            width = max(place + width for place, width in parts)
            start = f"start = at(right, j * {self.leading} + k0)"
            return [start, *write_transpose(self.dtype, ("panel", self.wide), ("start", self.leading), "length", width)]
        lines = [f"start = at(right, k0 * {self.leading} + j)", "for q in range(length):"]
        for place, width in parts:
            value = wide(width, "start", f"q * {self.leading} + {place}")
            lines.append(f"    put(at(panel, q * {self.wide} + {place}), {value})")
        return lines

    def _turn(self, d: int) -> list[str]:
        """Return lines that pack the rows of one row of tiles, from i on."""
        start = f"laid = at(room, {self.room - self.deep * self.shape.rows})"
        row = "i8(among[k0 + q])" if self.resident else "(k0 + q)"
        parts = [(place, wide(width, "left", f"i + {place} + {row} * {self.along}")) for place, width in disjoint(d)]
        each = [f"    put(at(laid, q * {d} + {place}), {value})" for place, value in parts]
        return [start, "for q in range(length):", *each]

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def _tile(self, d: int, parts: Parts, row: str, ahead: Aheads) -> list[str]:
        """Return the lines of one tile: some rows from ``row`` on, some columns from j on."""
        part = fitting(d, len(parts))
        if part < d:
            return [f"for s in range({row}, {row} + {d}, {part}):", *indent(self._write_part(part, d, parts, "s", []))]
        return self._write_part(d, d, parts, row, ahead if d == self.shape.rows else [])

    def _write_part(self, d: int, of: int, parts: Parts, row: str, ahead: Aheads) -> list[str]:
        """Return a tile of a few of the rows that are packed together."""
        sums = [(r, place, width, f"s{r}_{place}_{width}") for r in range(d) for place, width in parts]
        start, read = self._reads(d, of, row)
        if not self.panels:
            start.append(f"y = at(right, k0 * {self.leading} + j)")
        start += [f"{name} = {broadcast(width, literal(0, self.dtype))}" for _, _, width, name in sums]
        return [*start, *self._steps(parts, sums, read, ahead), *self._ends(sums, row)]

    def _reads(self, d: int, of: int, row: str) -> tuple[list[str], Callable[[str], list[str]]]:
        """Return the lines before a tile, and those that read a number of each of its rows at one step."""
        if self.turns:
            return [f"x = at(laid, {row} - i)"], lambda q: [f"l{r} = x[{r} + ({q}) * {of}]" for r in range(d)]
        if self.resident and self.down == 1:
            start = f"x = at(left, i8(among[k0 + {{}}]) * {self.along} + {row})"
            return [], lambda q: [start.format(q), *(f"l{r} = x[{r}]" for r in range(d))]
        if self.resident:
            places = [f"p{r} = at(left, i8(among[{row} + {r}]) * {self.down} + k0)" for r in range(d)]
            return places, lambda q: [f"l{r} = p{r}[{q}]" for r in range(d)]
        near, far = self.down, self.along
        start = f"x = at(left, {row} * {near} + k0 * {far})"
        return [start], lambda q: [f"l{r} = x[{r * near} + ({q}) * {far}]" for r in range(d)]

    def _steps(self, parts: Parts, sums: list[Sum], read: Callable[[str], list[str]], ahead: Aheads) -> list[str]:
        """Return the loop over the inner axis; the next reads and packed rows are prefetched meanwhile."""
        source, apart = ("panel", self.wide) if self.panels else ("y", self.leading)

        def step(q: str) -> list[str]:
            body = read(q)
            body += [f"b{p}_{w} = {wide(w, source, f'({q}) * {apart} + {p}')}" for p, w in parts]
            return body + [f"{name} += {broadcast(w, f'l{r}')} * b{p}_{w}" for r, p, w, name in sums]

        if not ahead:
            return ["for q in range(length):", *indent(step("q"))]
        steps = ahead[0].steps if len(ahead) == 1 else f"max({', '.join(prefetch.steps for prefetch in ahead)})"
        fetches = [line for prefetch in ahead for line in prefetch.fetches(len(ahead) == 1)]
        count = f"min({steps}, length // {APART})"
        lines = [
            *(line for prefetch in ahead for line in prefetch.first_lines),
            f"for e in range({count}):",
            *indent(fetches),
        ]
        lines += indent([line for k in range(APART) for line in step(f"e * {APART} + {k}")])
        return [*lines, f"for q in range({count} * {APART}, length):", *indent(step("q"))]

    def _ends(self, sums: list[Sum], row: str) -> list[str]:
        """Return lines that write a tile to the result, or add it."""
        lines = []
        if self.scale != literal(1, self.dtype):
            lines = [f"{name} = {name} * {broadcast(width, self.scale)}" for _, _, width, name in sums]

        def write_stores(added: bool) -> list[str]:
            places = [(f"({row} + {r}) * {self.apart} + j + {place}", width, name) for r, place, width, name in sums]
            return [f"put(at(to, {p}), {wide(w, 'to', p) + ' + ' if added else ''}{name})" for p, w, name in places]

        if self.deep == self.inner or self.added:
            return [*lines, *write_stores(self.added)]
        return [*lines, "if k0 > 0:", *indent(write_stores(True)), "else:", *indent(write_stores(False))]


@frozen(eq=False, slots=False)
class TilePrefetch:
    """The prefetches of a product's tiles: a share of the next panel, and of the next rows."""

    tiles: Tiles

    def next_panel(self, columns: str) -> str:
        """Return where the columns begin that are packed after those from j on."""
        tiles = self.tiles
        row, column = (tiles.leading, 1) if not tiles.turned else (1, tiles.leading)
        beside = f"k0 * {row} + (j + {tiles.wide}) * {column}"
        if tiles.deep == tiles.inner:
            return beside
        return f"sel(j + {tiles.wide} < {columns}, {beside}, (k0 + {tiles.deep}) * {row})"

    @cached_property
    def shares(self) -> tuple[int, int, int]:
        """Return how tiles share the lines of memory to pack next: adjacent lines, groups, and rows.

        A tile prefetches some lines of some rows, few at a time, because only few can be on their way at once.
        """
        tiles = self.tiles
        high, across = (tiles.wide, tiles.deep) if tiles.turned else (tiles.deep, tiles.wide)
        lines, steps = -(-across // tiles.lanes), max(tiles.deep // APART, 1)
        down = max(tiles.rows // tiles.shape.rows, 1)
        for beside in range(1, lines + 1):
            groups = -(-lines // beside)
            rows = -(-high // max(down // groups, 1))
            if groups <= down and rows <= steps:
                return beside, groups, rows
        return lines, 1, steps

    def columns(self) -> Ahead:
        """Return how much of the next panel this tile packs."""
        tiles, (beside, groups, share) = self.tiles, self.shares
        tile = f"(i // {tiles.shape.rows})"
        down = tiles.number(share * tiles.leading)
        place = f"{tile} // {groups} * {down} + {tile} % {groups} * {beside * tiles.lanes}"
        places = range(0, beside * tiles.lanes, tiles.lanes)
        return Ahead("come", f"at(next, {place})", places, tiles.leading, tiles.number(share))

    def rows(self, count: str, first: str) -> Aheads:
        """Return the share of a tile in the rows that follow those from i on, if they are transposed or of a block.

        If all rows pass one panel after the other, tiles of the first do so: later ones read a core's own cache.
        """
        tiles = self.tiles
        if tiles.rows <= tiles.shape.rows or not tiles.deep:
            return []
        if tiles.down != 1:
            return self._samples(count, first) if tiles.resident else []
        share = -(-tiles.deep // -(-tiles.span // tiles.wide)) if tiles.by_rows else tiles.deep
        each = min(-(-share // max(tiles.deep // APART, 1)), APART)
        steps, column = tiles.number(-(-share // each)), f"i + {2 * tiles.shape.rows - 1}"
        row = f"k0 + (j - {first}) // {tiles.wide} * {tiles.number(share)}" if tiles.by_rows else "k0"
        if not tiles.by_rows:
            steps = f"sel(j == 0, {steps}, 0)"
        if tiles.resident:
            rows = [f"i8(among[min({row} + e * {each} + {k}, {tiles.inner - 1})])" for k in range(each)]
            return [AheadOfRows([f"{index} * {tiles.along} + {column}" for index in rows], steps)]
        places = range(0, each * tiles.along, tiles.along)
        return [Ahead("below", f"at(left, ({row}) * {tiles.along} + {column})", places, each * tiles.along, steps)]

    def _samples(self, count: str, first: str) -> Aheads:
        """Return the rows of the next tile: the processor cannot predict the next rows of a block."""
        tiles = self.tiles
        rows = [f"i8(among[min(i + {tiles.shape.rows + r}, {count} - 1)])" for r in range(tiles.shape.rows)]
        places = [f"{row} * {tiles.down} + k0 + e * {tiles.lanes}" for row in rows]
        return [AheadOfRows(places, f"sel(j == {first}, {-(-tiles.deep // tiles.lanes)}, 0)")]


def write_transpose(dtype: str, to: tuple[str, int], start: tuple[str, int], inner: str, width: int) -> list[str]:
    """Return lines that copy the transpose of a matrix of ``width`` rows, in squares; rows are some elements apart."""
    side, (panel, wide), (source, leading) = registers() // 8 // BYTES[dtype], to, start
    whole, lines = width // side * side, []
    each = f"{panel}[cc * {wide} + rr] = {source}[rr * {leading} + cc]"
    if whole:
        places = f"at({panel}, cc * {wide} + rr), {wide}, at({source}, rr * {leading} + cc), {leading}"
        lines += [f"for cc in range(0, {inner} // {side} * {side}, {side}):"]
        lines += [f"    for rr in range(0, {whole}, {side}):", f"        turned{side}({places})"]
        lines += [f"for cc in range({inner} // {side} * {side}, {inner}):"]
        lines += [f"    for rr in range({whole}):", f"        {each}"]
    if width > whole:
        lines += [f"for cc in range({inner}):", f"    for rr in range({whole}, {width}):", f"        {each}"]
    return lines


def fitting(rows: int, vectors: int) -> int:
    """Return the rows of a tile, or a divisor of them if a tile with this many vectors would not fit in registers."""
    each = AT_ONCE * 8 // registers()
    room = REGISTERS[registers()] - 1
    divisors = (d for d in range(rows, 0, -1) if rows % d == 0)
    return next((d for d in divisors if (d + 1) * vectors * each <= room), 1)


def vectors(columns: int, lanes: int) -> Parts:
    """Split columns into whole vectors."""
    return [(place, lanes) for place in range(0, columns, lanes)]


def disjoint(columns: int) -> Parts:
    """Split columns into starts and widths of vectors that do not overlap: powers of two, and three."""
    width = 3 if columns == 3 else 1 << (columns.bit_length() - 1)
    rest = [(width + place, part) for place, part in disjoint(columns - width)] if columns > width else []
    return [(0, width), *rest]


def covering(columns: int) -> Parts:
    """Split columns into one or two parts, which overlap if there would be three otherwise."""
    width = 1 << (columns.bit_length() - 1)
    spans = disjoint(columns)
    return spans if len(spans) <= 2 else [(0, width), (columns - width, width)]


def wide(width: int, pointer: str, place: str) -> str:
    """Return an expression that loads a vector."""
    return f"wide{width}(at({pointer}, {place}))"


def broadcast(width: int, value: str) -> str:
    """Return an expression that broadcasts a number to a vector."""
    return f"spread{width}({value})"
