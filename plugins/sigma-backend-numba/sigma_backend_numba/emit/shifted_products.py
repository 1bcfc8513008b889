"""Write matrix products in which one operand is read at a distance, in tiles that stay in registers.

``Shifts`` has positions in the lanes of vectors, and is a convolution.  ``KernelSlopes`` sums over positions, with
filters in the lanes, and is the gradient of a convolution's kernel; ``Dots`` is that for a few filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod

from attrs import frozen

from sigma_backend_numba.compiler.processor import registers
from sigma_backend_numba.compiler.tile_sizes import REGISTERS
from sigma_backend_numba.emit.planes import wrap_in_loops
from sigma_backend_numba.emit.register_tiles import Parts, broadcast, disjoint, wide
from sigma_backend_numba.emit.task import indent
from sigma_backend_numba.scalars import literal
from sigma_kernel.graph import BYTES


def widest(dtype: str) -> int:
    """Return the elements of a vector register."""
    return registers() // 8 // BYTES[dtype]


def lanes(dtype: str, count: int) -> int:
    """Return the elements of a vector, for this many elements or more."""
    return min(widest(dtype), 1 << max(count - 1, 0).bit_length())


def shape(rows: int, vectors: int) -> tuple[int, int]:
    """Return the rows and vectors of the tile that takes the fewest cycles."""
    most = REGISTERS[registers()]
    every = ((deep, across) for deep in range(1, min(rows, 8) + 1) for across in range(1, min(vectors, 6) + 1))
    fit = (tile for tile in every if tile[0] * tile[1] + tile[1] + 1 <= most)
    return min(fit, key=lambda tile: cycles(tile, rows, vectors))


def cycles(tile: tuple[int, int], rows: int, vectors: int) -> tuple[float, float]:
    """Return the cycles of all tiles of a result, and those of their loads; the last tiles may have fewer vectors."""
    deep, (whole, rest) = tile[0], divmod(vectors, tile[1])
    total, loaded = 0.0, 0.0
    for count, across in ((whole, tile[1]), (1, rest)):
        loads = (deep + 2 * across) / 2  # two in each cycle; a vector at any distance crosses two cache lines
        tiles = -(-rows // deep) * count if across else 0
        total, loaded = total + tiles * (max(deep * across / 2, loads, 4) + 1), loaded + tiles * loads
    return total, loaded


def add_product(total: str, x: str, y: str, paired: bool) -> str:
    """Return the line that adds a product to a sum, or both products of words."""
    return f"{total} = dotted({total}, {x}, {y})" if paired else f"{total} += {x} * {y}"


@frozen
class Shifts:
    """``to[i, j] = sum of left[i * down + c * along + near[t]] * right[c * plane + far[t] + j]`` over c and t.

    There are ``channels`` of c.  The result has ``positions`` and rows that are ``apart``, which is no less.  If
    ``paired``, elements are words of two numbers of bfloat16, and their product is the sum of both products.
    """

    dtype: str
    rows: int
    positions: int
    channels: int
    down: int
    along: int
    plane: int
    paired: bool = False

    @property
    def lanes(self) -> int:
        """Return the elements of a vector."""
        return widest(self.dtype) if self.paired else lanes(self.dtype, self.positions)

    @property
    def tile(self) -> tuple[int, int]:
        """Return the rows and the vectors of a tile."""
        return shape(self.rows, self.vectors)

    @property
    def row_length(self) -> int:
        """Return the elements of a row of the result: whole vectors."""
        return self.vectors * self.lanes

    @property
    def vectors(self) -> int:
        """Return the vectors of a row of the result."""
        return -(-self.positions // self.lanes)

    @property
    def cycles(self) -> float:
        """Return the estimated cycles of one element of the sum, for the whole result."""
        return cycles(self.tile, self.rows, self.vectors)[0]

    @property
    def excess(self) -> int:
        """Return how many elements after the last position are read."""
        return self.row_length - self.positions

    def lines(self, left: str, right: str, to: str, near: str, far: str, taps: str) -> list[str]:
        """Return loops over tiles; ``near`` is text of t, ``far`` a pointer, and ``taps`` the number of t."""
        (deep, across), step = self.tile, self.lanes
        whole = self.vectors // across * across
        lines, last = [], self.rows - deep  # the last tile overlaps the one before it
        for begin, end, wider in ((0, whole, across), (whole, self.vectors, self.vectors - whole)):
            tile = [f"i = min(m, {last})", *self._sums(deep, wider, left, right, near, far, taps)]
            tile += [
                f"put(at({to}, (i + {r}) * {self.row_length} + j + {u * step}), s{r}_{u})"
                for r, u in product(range(deep), range(wider))
            ]
            loops = [f"for j in range({begin * step}, {end * step}, {wider * step}):"]
            loops += [f"    for m in range(0, {self.rows}, {deep}):", *indent(tile, 2)]
            lines += loops if begin < end else []
        return lines

    def _sums(self, deep: int, across: int, left: str, right: str, near: str, far: str, taps: str) -> list[str]:
        """Return the loops that add up one tile."""
        step = self.lanes
        parts = list(product(range(deep), range(across)))
        lines = [f"s{r}_{u} = {broadcast(step, literal(0, self.dtype))}" for r, u in parts]
        body = [
            f"there = at({right}, c * {self.plane} + {far}[t] + j)",
            f"here = at({left}, i * {self.down} + c * {self.along} + {near})",
        ]
        body += [f"e{u} = {wide(step, 'there', str(u * step))}" for u in range(across)]
        for r in range(deep):
            body += [f"l{r} = {broadcast(step, f'here[{r * self.down}]')}"]
            body += [add_product(f"s{r}_{u}", f"l{r}", f"e{u}", self.paired) for u in range(across)]
        return [*lines, f"for c in range({self.channels}):", f"    for t in range({taps}):", *indent(body, 2)]


@frozen
class PositionRows:
    """Positions of windows: rows of ``width``, in loops with a number of rounds, and a distance along the plane."""

    width: int
    loops: Sequence[tuple[int, int]]

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return prod(count for count, _ in self.loops)

    def write_loops(self, there: str, here: str, leading: int, inside: list[str]) -> list[str]:
        """Return loops with pointers ``there``, into the plane, and ``here``, at rows that are ``leading`` apart."""
        number, far = "0", []
        for k, (count, step) in enumerate(self.loops):
            number = f"({number} * {count} + o{k})"
            far.append(f"o{k} * {step}")
        lines = [
            f"there = at({there}, {' + '.join(far) or '0'})",
            f"here = at({here}, {number} * {leading})",
        ]
        return wrap_in_loops([(f"o{k}", count) for k, (count, _) in enumerate(self.loops)], [*lines, *inside])


def rows(result: Sequence[int], steps: Sequence[int]) -> PositionRows:
    """Return the positions along the axes of a result; those of rows without a gap between them are one row."""
    loops, width = list(zip(result, steps, strict=True)), 1
    while loops and loops[-1][1] == width:
        width *= loops.pop()[0]
    return PositionRows(width, loops)


@frozen
class KernelSlopes:
    """``to[c, t, f] += sum of right[c * plane + distances[t] + j] * left[j, f]`` over all positions j.

    Rows of the result have all ``filters``; those of one channel are ``taps`` rows apart.  ``left`` is stored in
    successive blocks of filters, so that rows of a block are contiguous (:meth:`write_blocks`).

    If ``paired``, numbers of ``right`` are of bfloat16.  Those of two positions in a row are multiplied by a word of
    ``left`` at a time; the last one of an odd row by a word that is half zero.
    """

    dtype: str
    filters: int
    positions: PositionRows
    channels: int
    plane: int
    taps: int
    distances: Sequence[int]
    paired: bool = False

    @property
    def row_steps(self) -> int:
        """Return the terms of a sum over one row of positions."""
        return -(-self.positions.width // 2) if self.paired else self.positions.width

    @property
    def steps(self) -> int:
        """Return the terms of a sum over all positions."""
        return self.row_steps * self.positions.rows

    @property
    def wide(self) -> int:
        """Return the filters that ``left`` has: whole vectors, if they are words."""
        return -(-self.filters // widest(self.dtype)) * widest(self.dtype) if self.paired else self.filters

    @property
    def blocks_size(self) -> int:
        """Return the elements of ``left``."""
        return self.steps * self.wide

    @property
    def blocks(self) -> list[tuple[int, int, Parts]]:
        """Return ranges of filters, which are cut into blocks of one or two vectors: their starts and widths."""
        both = 2 * widest(self.dtype)
        whole = self.wide // both * both
        blocks = [(0, whole, [(0, both // 2), (both // 2, both // 2)])] if whole else []
        rest = disjoint(self.wide - whole) if whole < self.wide else []
        for pair in (rest[k : k + 2] for k in range(0, len(rest), 2)):
            parts = [(start - pair[0][0], width) for start, width in pair]
            blocks.append((whole + pair[0][0], whole + sum(pair[-1]), parts))
        return blocks

    def write_blocks(self, to: str, start: str) -> list[str]:
        """Return loops that write the transpose of a matrix, which has a row for each filter, to blocks."""
        lines, count = list[str](), self.steps
        for begin, end, parts in self.blocks:
            places = f"at({to}, f * {count})", f"at({start}, f * {count})"
            lines.append(f"for f in range({begin}, {end}, {sum(parts[-1])}):")
            lines += indent(transpose_in_squares(*places, sum(parts[-1]), count, self.dtype))
        return lines

    def lines(self, left: str, right: str, to: str) -> list[str]:
        """Return loops over tiles: a block of filters, and as many channels and taps as the registers hold."""
        lines = list[str]()
        for begin, end, parts in self.blocks:
            lines.append(f"for f in range({begin}, {end}, {sum(parts[-1])}):")
            lines += indent(self._tiles(parts, left, right, to))
        return lines

    def _tiles(self, parts: Parts, left: str, right: str, to: str) -> list[str]:
        across, count = len(parts), len(self.distances)
        most = min(24, REGISTERS[registers()] - 2 - across) // across
        pieces, lines = -(-count // most), list[str]()
        for first, last in pairwise(k * count // pieces for k in range(pieces + 1)):
            for start, stop, deep in _split_evenly(self.channels, max(most // (last - first), 1)):
                sums = list(product(range(deep), range(first, last), parts))
                lines += [f"for c in range({start}, {stop}, {deep}):"]
                lines += indent(self._tile(sums, parts, left, right, to))
        return lines

    def _tile(
        self, sums: Sequence[tuple[int, int, tuple[int, int]]], parts: Parts, left: str, right: str, to: str
    ) -> list[str]:
        leading, start, ends = sum(parts[-1]), list[str](), list[str]()
        for k, t, (place, width) in sums:
            name, at = f"s{k}_{t}_{place}_{width}", f"((c + {k}) * {self.taps} + {t}) * {self.filters} + f + {place}"
            start.append(f"{name} = {broadcast(width, literal(0, self.dtype))}")
            ends.append(self._end(name, to, at, place, width))

        def step(near: str) -> list[str]:
            body = [f"row = at(here, j * {leading})"]
            body += [f"e{place}_{width} = {wide(width, 'row', str(place))}" for place, width in parts]
            for k, t, (place, width) in sums:
                factor = broadcast(width, near.format(k * self.plane + self.distances[t]))
                body.append(add_product(f"s{k}_{t}_{place}_{width}", factor, f"e{place}_{width}", self.paired))
            return body

        count, inside = self.row_steps, list[str]()
        if self.paired:
            whole = self.positions.width // 2
            inside += [f"for j in range({whole}):", *indent(step("neighbours(at(there, 2 * j + {0}))"))]
            inside += [f"for j in range({whole}, {count}):", *indent(step("single(at(there, 2 * j + {0}))"))]
        else:
            inside += [f"for j in range({count}):", *indent(step("there[j + {0}]"))]
        pointers = f"at({right}, c * {self.plane})", f"at({left}, f * {self.steps})"
        return [*start, *self.positions.write_loops(*pointers, count * leading, inside), *ends]

    def _end(self, name: str, to: str, at: str, place: int, width: int) -> str:
        """Return the line that adds a sum to the result; the last vector may have fewer filters than lanes."""
        if self.wide == self.filters:
            return f"put(at({to}, {at}), {wide(width, to, at)} + {name})"
        here, count = f"at({to}, {at})", f"{self.filters} - f - {place}"
        return f"stored({here}, some({here}, {count}) + {name}, {count})"


def _split_evenly(count: int, most: int) -> list[tuple[int, int, int]]:
    """Split channels evenly into tiles: ranges of channels, and how many of them a tile has."""
    deep, larger = divmod(count, -(-count // most))
    split = larger * (deep + 1)
    return [part for part in ((0, split, deep + 1), (split, count, deep)) if part[0] < part[1]]


@frozen
class Dots:
    """``to[t] += sum of right[distances[t] + j] * left[j]`` over all positions j, which are in the lanes of vectors."""

    dtype: str
    positions: PositionRows
    distances: Sequence[int]

    @property
    def lanes(self) -> int:
        """Return the elements of the widest vector."""
        return widest(self.dtype)

    def lines(self, left: str, right: str, to: str, room: str) -> list[str]:
        """Return loops, a few elements of the result at a time; ``room`` is for as many numbers as a vector has."""
        return [
            line
            for first in range(0, len(self.distances), 4)
            for line in self._write_sums(range(first, min(first + 4, len(self.distances))), left, right, to, room)
        ]

    def _write_sums(self, taps: Sequence[int], left: str, right: str, to: str, room: str) -> list[str]:
        """Return loops for some elements: a row is many wide vectors, and then narrower ones."""
        whole = self.positions.width // self.lanes * self.lanes
        parts = [(0, whole, self.lanes)] if whole else []
        rest = disjoint(self.positions.width - whole) if whole < self.positions.width else []
        parts += [(whole + start, whole + start + width, width) for start, width in rest]
        sums = [(t, width, f"s{t}_{width}") for t in taps for *_, width in parts]
        lines, inside, ends = [f"{name} = {broadcast(w, literal(0, self.dtype))}" for _, w, name in sums], [], []
        for begin, end, width in parts:
            body = [f"e{width} = {wide(width, 'here', 'j')}"]
            body += [f"s{t}_{width} += e{width} * {wide(width, 'there', f'j + {self.distances[t]}')}" for t in taps]
            inside += [f"for j in range({begin}, {end}, {width}):", *indent(body)]
        for t, width, name in sums:
            ends += [f"put({room}, {name})", f"for j in range({width}):", f"    {to}[{t}] += {room}[j]"]
        return [*lines, *self.positions.write_loops(right, left, self.positions.width, inside), *ends]


def transpose_in_squares(to: str, start: str, rows: int, columns: int, dtype: str) -> list[str]:
    """Return loops that transpose a matrix, in squares of which the last ones overlap those before."""
    side = min(widest(dtype), *(1 << (count.bit_length() - 1) for count in (rows, columns)))
    lines = [f"i, j = min(m, {rows - side}), min(o, {columns - side})"]
    lines += [f"turned{side}(at({to}, j * {rows} + i), {rows}, at({start}, i * {columns} + j), {columns})"]
    return [f"for m in range(0, {rows}, {side}):", f"    for o in range(0, {columns}, {side}):", *indent(lines, 2)]
