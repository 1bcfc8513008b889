"""Write the tasks of matrix products and of the elementwise work that follows them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import log10, prod

from attrs import define, field, frozen

from sigma_backend_numba.compiler import tile_sizes
from sigma_backend_numba.compiler.processor import AMX, DOTS, mixed_form
from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.loop_nest import Nest
from sigma_backend_numba.emit.loops import epilogue, home, stored_members
from sigma_backend_numba.emit.register_tiles import Tiles
from sigma_backend_numba.emit.task import Task, indent, size
from sigma_backend_numba.lower.canonical import DATA, LEAVES, WORK, matrix
from sigma_backend_numba.lower.layout import require_layout, source
from sigma_backend_numba.lower.product_table import BLAS, PANELS, Route, select_route
from sigma_backend_numba.plan.groups import Space
from sigma_backend_numba.scalars import COSTLY, SHORT, literal
from sigma_kernel.graph import BYTES, Node

BLOCK = 96  # rows of a product that are updated while they are in the cache
ROWS = 24  # rows of a piece of our own product, approximately, or a multiple: whole tiles
EACH = 96  # rows or columns of a piece of a product of panels, approximately
TOGETHER = 256  # rows of a batch of matrices to compute before the work that follows them
MIXED = "mixed"  # how a product is computed: its operands are rounded to bfloat16
TILE = 32  # rows and columns that are multiplied at a time in bfloat16
FASTER = {AMX: 3, DOTS: 1.5}  # times as fast as in float32, approximately, packing included
LARGE = 1 << 19  # bytes of a result that is evicted from the cache before it is read again


@frozen
class Operand:
    """A matrix as BLAS reads it: start, whether it is transposed, leading dimension, batch strides.

    One that is ``resident`` is the block of all samples, of which the task takes the rows of the minibatch.
    """

    pointer: str
    offset: int
    turned: bool
    leading: int
    batch: tuple[int, ...]
    resident: bool = False

    def pointer_to(self, index: str, row: str = "", column: str = "") -> str:
        """Return the text of a pointer to a row or column of one matrix of the batch."""
        terms = [str(self.offset)] if self.offset else []
        terms += [index] if index else []
        if row and (self.turned or not self.resident):
            terms.append(row if self.turned else f"{row} * {self.leading}")
        if column:
            terms.append(f"{column} * {self.leading}" if self.turned else column)
        return f"at({self.pointer}, {' + '.join(terms)})" if terms else self.pointer


def matrix_operand(task: Task, node: Node, rank: int) -> Operand:
    """Return an operand of a product of any rank as BLAS reads it."""
    placement = require_layout(node)
    read = matrix(node.shape, placement.strides)
    if read is None:
        raise AssertionError(f"{node!r} is no matrix for BLAS: a copy is missing")
    lead = rank - len(node.shape)
    batch = (0,) * lead + tuple(
        0 if side == 1 else s for side, s in zip(node.shape[:-2], placement.strides[:-2], strict=True)
    )
    place = task.schedule.form.places.get(source(node))
    resident = place is not None and task.schedule.form.frame.kinds[place] == DATA
    return Operand(*task.part(source(node), placement.offset), *read, batch, resident)


@define(eq=False, slots=False)
class MatrixProduct:
    """A matrix product and the elementwise work that follows it."""

    task: Task
    core: Node
    a: Operand = field(init=False)
    b: Operand = field(init=False)
    outs: list[Node] = field(init=False)
    after: list[Node] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Derive the layout of the operands and the epilogue."""
        rank = len(self.core.shape)
        self.a, self.b = (matrix_operand(self.task, x, rank) for x in self.core.inputs)
        self.outs = [node for node in stored_members(self.task) if node is not self.core]
        self.after = [node for node in self.task.group.space.maps if node is not self.core]

    @cached_property
    def sides(self) -> tuple[int, int, int]:
        """Return the numbers of rows and columns of one product, and the inner side."""
        rows = self._step * self._rows_per_place if self._is_joint else self.core.shape[-2]
        return rows, self.core.shape[-1], self.core.inputs[0].shape[-1]

    def write(self) -> None:
        """Write the task."""
        if len(self.core.shape) > 2 or 0 in self.core.shape:
            self._write_batch()
            return
        rate = self._linear()
        if rate is not None:
            self._write_update(rate)
        else:
            self._write_single()

    def gemm(
        self, m: str, n: str, a: str, b: str, c: str, alpha: str = "", added: bool = False, ready: bool = False,
        row: str = "",
    ) -> list[str]:  # fmt: skip
        """Return the call of BLAS, or our own product, from a row on; ``ready``: its panels are packed already."""
        kind, (_, columns, inner) = SHORT[self.core.dtype], self.sides
        scale = alpha or literal(1, self.core.dtype)
        if 0 in self.core.shape:
            return ["pass"]
        if self._algorithm == MIXED:
            return [self._write_mixed(m, n, a, b, c, scale, added)]
        if self._algorithm != BLAS:
            tiles = self._tiles(scale, added)
            lines = [*self._row_selection(row), f"left = {a}", f"right = {b}", f"to = {c}"]
            return [*lines, *self._scratch, *tiles.lines(m, n, ready)]
        length = self._write_inner(inner)
        return [
            f"{'sgemm' if kind == 'f4' else 'dgemm'}({self.a.turned}, {self.b.turned}, {m}, {n}, {length}, {scale}, "
            f"{a}, {self.a.leading}, {b}, {self.b.leading}, {literal(added, self.core.dtype)}, {c}, {columns})"
        ]

    def _write_rows(self, rows: int) -> str:
        """Return a number of rows: an argument if they are those of the batch, and BLAS loops over them."""
        return self.task.number(rows) if self._algorithm == BLAS and not self.a.turned else str(rows)

    def _write_inner(self, inner: int) -> str:
        """Return the inner side, or what follows from it: an argument if it is that of the batch, as in a gradient."""
        return self.task.number(inner) if self.a.turned else str(inner)

    @cached_property
    def _route(self) -> Route:
        rows = prod(self.core.shape[:-1]) if self._rows_of_one and self._has_equal_blocks else self.core.shape[-2]
        return select_route(rows, self.core.shape[-1], self.core.inputs[0].shape[-1], self.b.turned)

    @property
    def _algorithm(self) -> str:
        """Return how the product is computed; matrices of a batch are packed only if they are rows of one."""
        if self.core.op == MIXED:
            return MIXED
        if self.a.resident:  # BLAS cannot read it, whatever the table has for the current strides
            return PANELS if self._route.way == BLAS else self._route.way
        alone = len(self.core.shape) > 2 and not (self._rows_of_one and self._has_equal_blocks)
        return BLAS if alone and self._route.way == PANELS else self._route.way

    @cached_property
    def _scratch(self) -> list[str]:
        """Return the line that names the room for panels, if there is any."""
        tiles = self._tiles("", False)
        return [f"room = {self.task.room(tiles.room, self.core.dtype)}"] if tiles.room else []

    def _tiles(self, scale: str, added: bool) -> Tiles:
        down, along = (1, self.a.leading) if self.a.turned else (self.a.leading, 1)
        right, packed = (self.b.leading, self.b.turned), self._algorithm == PANELS
        sides, resident = self.sides, self.a.resident
        number = self._write_inner
        return Tiles(self.core.dtype, *sides, down, along, *right, sides[1], scale, added, packed, resident, number)

    def _row_selection(self, row: str) -> list[str]:
        """Return the line that names the rows taken from the block, from a row on, if the operand is one."""
        if not self.a.resident:
            return []
        rows = self.task.argument("rows", 0, "int32")
        return [f"among = at({rows}, {row})" if row and not self.a.turned else f"among = {rows}"]

    def _write_mixed(self, m: str, n: str, a: str, b: str, c: str, scale: str, added: bool) -> str:
        (_, columns, inner), elements = self.sides, room_of_mixed(*self.sides)
        steps = [(1, x.leading) if x.turned else (x.leading, 1) for x in (self.a, self.b)]
        left, right = (f"{x}, {under}, {along}" for x, (under, along) in zip((a, b), steps, strict=True))
        room = self.task.room(elements, self.core.dtype)
        ends = f"{room}, {m}, {n}, {inner}, {scale}, {added})"
        if mixed_form() == AMX:
            return f"tile_product({left}, {right}, {c}, {columns}, {ends}"
        return f"dot_product({left}, {right}, {c}, {columns}, {span_of_dots(columns, inner)}, {ends}"

    @property
    def _is_tiled(self) -> bool:
        """Return whether the product is computed in tiles of float32."""
        return self._algorithm not in (BLAS, MIXED)

    def share(self, by_rows: bool) -> None:
        """Cut the product by rows or columns; a piece goes from ``e0`` to ``e1``."""
        rows, columns, inner = self.sides
        work, side, unit = 2.0 * rows * columns * inner, rows if by_rows else columns, 1
        cost = self._cost(work)
        if self._algorithm == MIXED:
            unit, faster = TILE, FASTER[mixed_form()]
            self.task.cut(_pieces(work / faster), self._cost(work / faster), -(-side // unit))
        elif self._is_tiled:
            tiles = self._tiles("", False)
            deep = tiles.shape.rows
            unit = max(ROWS // deep, 1) * deep if by_rows else tiles.wide
            most = min(self._route.pieces, int(cost // costs.PIECE))
            if self._algorithm == PANELS:  # each piece packs or reads all of an operand
                most = min(most, 1 << (max(side // EACH, 2).bit_length() - 1))
            self.task.cut(most, cost, -(-side // unit))
        else:
            self.task.cut(min(self._route.pieces, int(work // WORK)), cost, side, 32)
        end = self._write_rows(side) if by_rows else str(side)
        self.task.lines += [f"e0 = lo * {unit}", f"e1 = min(hi * {unit}, {end})"]

    def _cost(self, work: float) -> float:
        """Return the cost of the product, and of exponentials and the like that follow it."""
        costly = any(node.op in COSTLY for node in self.after)
        return costs.product(work) + (costs.loop(size(self.core), costly) if costly else 0.0)

    # -- two matrices --------------------------------------------------------------------------------------------------
    def _write_single(self) -> None:
        rows, columns, _ = self.sides
        updates = any(node in self.task.schedule.updates for node in self.outs)
        large = rows * columns * BYTES[self.core.dtype] > LARGE
        kept = updates and (large or not self._is_tiled)  # blocks of rows that are updated in the cache
        by_rows = self.task.group.space.row is not None or kept or rows > columns
        self.share(by_rows)
        place = home(self.task, self.core)
        blocked = by_rows and rows > BLOCK and large and bool(self.outs) and place is not self.core
        if place is None or blocked:
            pointer = self.task.room((self._block if blocked else rows) * columns, self.core.dtype)
            self._tile(pointer, by_rows, blocked, local=True)
        else:
            self._tile(self.task.storage(place), by_rows, False, local=False)

    def _tile(self, pointer: str, by_rows: bool, blocked: bool, local: bool) -> None:
        """Write the product and its epilogue for a range of rows (block by block if useful) or columns."""
        rows, columns, _ = self.sides
        lines: list[str] = []
        if by_rows:
            to = pointer if local else f"at({pointer}, r0 * {columns})"
            ready = blocked and self._is_tiled and self._tiles("", False).is_packed_once
            if ready:
                tiles = self._tiles("", False)
                self.task.lines += [f"right = {self.b.pointer_to('')}", *self._scratch, *tiles.pack("0", str(columns))]
            places = (self.a.pointer_to("", row="r0"), self.b.pointer_to(""), to)
            lines += self.gemm("r1 - r0", str(columns), *places, ready=ready, row="r0")
            lines += epilogue(self.task, self.core, pointer, f"-r0 * {columns}" if local else "", {0: ("r0", "r1")})
            block = self._block
            head = [f"for r0 in range(e0, e1, {block}):", f"    r1 = min(r0 + {block}, e1)"]
            self.task.lines += [*head, *indent(lines)] if blocked else ["r0 = e0", "r1 = e1", *lines]
        else:
            to = f"at({pointer}, e0)"
            self.task.lines += self.gemm(
                self._write_rows(rows), "e1 - e0", self.a.pointer_to(""), self.b.pointer_to("", column="e0"), to
            )
            self.task.lines += epilogue(self.task, self.core, pointer, "", {1: ("e0", "e1")})

    @property
    def _block(self) -> int:
        """Return the rows that are updated while they are in the cache: whole tiles."""
        deep = TILE if self._algorithm == MIXED else self._tiles("", False).shape.rows
        high = max(BLOCK, LARGE // (self.core.shape[1] * BYTES[self.core.dtype]))
        return max(high // deep, 1) * deep

    # -- p - rate * (a @ b), over p ------------------------------------------------------------------------------------
    def _linear(self) -> Node | None:
        """Return the rate of an update ``p - rate * (a @ b)`` if the epilogue is nothing else."""
        if len(self.after) != 2 or len(self.outs) != 1 or self.core in self.task.schedule.stored:
            return None
        out, updates = self.outs[0], self.task.schedule.updates
        scaled = next(node for node in self.after if node is not out)
        if out not in updates or out.op != "sub" or scaled.op != "mul" or out.inputs[1] is not scaled:
            return None
        if self.task.schedule.form.places.get(out.inputs[0]) != updates[out] or out.shape != self.core.shape:
            return None
        for rate, other in (scaled.inputs, scaled.inputs[::-1]):
            free = source(rate) in self.task.schedule.grouping.free or source(rate).op in LEAVES
            if other is self.core and free and size(rate) == 1:
                return rate
        return None

    def _write_update(self, rate: Node) -> None:
        rows, columns, _ = self.sides
        by_rows = rows > columns or (self._is_tiled and self._tiles("", True).by_rows)
        self.share(by_rows)
        nest = Nest(self.task, Space(()), [], {})
        alpha = f"-{nest.values.read(rate, (None,) * len(rate.shape), 0)}"
        self.task.lines += nest.lines()
        to = self.task.storage(self.outs[0])
        if by_rows:
            places = (self.a.pointer_to("", row="e0"), self.b.pointer_to(""), f"at({to}, e0 * {columns})")
            self.task.lines += self.gemm("e1 - e0", str(columns), *places, alpha, added=True, row="e0")
        else:
            places = (self.a.pointer_to(""), self.b.pointer_to("", column="e0"), f"at({to}, e0)")
            self.task.lines += self.gemm(str(rows), "e1 - e0", *places, alpha, added=True)

    # -- batches of matrices -------------------------------------------------------------------------------------------
    def _write_batch(self) -> None:
        """Write the products of a batch, some matrices along its first axis at a time with the work that follows."""
        (axis, side), step, place = self._outer, self._step, home(self.task, self.core)
        each = size(self.core) // side
        pointer = self.task.storage(place) if place is not None else self.task.room(step * each, self.core.dtype)
        start = f"r0 * {each}"
        self.task.share(self._cost(2.0 * size(self.core) * self.sides[2]), -(-side // step))
        to = f"at({pointer}, {start})" if place is not None else pointer
        lines = self._as_one(axis, to) if self._is_joint else self._one_by_one(axis, to)
        ranges = {axis: ("r0", "r1")} if self._cut else {}
        lines += epilogue(self.task, self.core, pointer, "" if place is not None else f"-{start}", ranges)
        self.task.lines += [f"for r0 in range(lo * {step}, min(hi * {step}, {side}), {step}):"]
        self.task.lines += indent([f"r1 = min(r0 + {step}, {side})", *lines])

    @cached_property
    def _outer(self) -> tuple[int, int]:
        """Return the axis along which a batch is cut, and its side."""
        return next(((k, side) for k, side in enumerate(self.core.shape[:-2]) if side > 1), (0, 1))

    @property
    def _cut(self) -> bool:
        return self._outer[1] > 1 and self.task.group.space.row != 0

    @property
    def _rows_per_place(self) -> int:
        """Return the rows of all matrices at one place of the axis that is cut."""
        return prod(self.core.shape[self._outer[0] + 1 : -1])

    @cached_property
    def _step(self) -> int:
        """Return how many places of the axis are computed at a time, equally many if that costs little."""
        side = self._outer[1]
        most = max(1, min(side, TOGETHER // max(self._rows_per_place, 1))) if self._cut else side
        even = next(count for count in range(most, 0, -1) if side % count == 0)
        return even if 2 * even > most else most

    @property
    def _has_equal_blocks(self) -> bool:
        return self._outer[1] % self._step == 0

    @cached_property
    def _rows_of_one(self) -> bool:
        """Return whether the matrices of a batch are the rows of one, multiplied by a single matrix."""
        if any(self.b.batch) or self.a.turned or 0 in self.core.shape or len(self.core.shape) < 3:
            return False
        axis = self._outer[0]
        sides, strides = self.core.shape[axis:-1], (*self.a.batch[axis:], self.a.leading)
        return all(strides[k] == strides[k + 1] * sides[k + 1] for k in range(len(sides) - 1))

    @property
    def _is_joint(self) -> bool:
        """Return whether the matrices of a block are multiplied as one; our own products need equal blocks."""
        return self._rows_of_one and (self._has_equal_blocks or not self._is_tiled)

    def _as_one(self, axis: int, to: str) -> list[str]:
        """Return the product of all rows of a block."""
        left = self.a.pointer_to(f"r0 * {self.a.batch[axis]}")
        return self.gemm(
            f"(r1 - r0) * {self._rows_per_place}", str(self.core.shape[-1]), left, self.b.pointer_to(""), to
        )

    def _one_by_one(self, axis: int, to: str) -> list[str]:
        """Return the products of the matrices of a block."""
        rows, columns, _ = self.sides
        batch = self.core.shape[:-2]
        ends = ["r0, r1" if k == axis else str(side) for k, side in enumerate(batch)]
        lines = ["    " * k + f"for b{k} in range({each}):" for k, each in enumerate(ends)]
        steps = [prod(batch[k + 1 :]) * rows * columns for k in range(len(batch))]
        places = [_place([f"b{k}" for k in range(len(batch))], strides) for strides in (self.a.batch, self.b.batch)]
        own = _place([f"(b{k} - r0)" if k == axis else f"b{k}" for k in range(len(batch))], steps)
        target = f"at({to}, {own})" if own else to
        call = self.gemm(str(rows), str(columns), self.a.pointer_to(places[0]), self.b.pointer_to(places[1]), target)
        return [*lines, *indent(call, len(batch))]


def _place(names: list[str], strides: Sequence[int]) -> str:
    """Return the text of an index into a batch."""
    return " + ".join(f"{name} * {stride}" for name, stride in zip(names, strides, strict=True) if stride)


def _pieces(work: float) -> int:
    """Return the number of products in bfloat16: each packs an operand again, so twice as many for tenfold work."""
    return 2 ** (1 + int(log10(work / (2 * WORK)))) if work >= 2 * WORK else 1


def room_of_mixed(rows: int, columns: int, inner: int) -> int:
    """Return the number of scratch elements that a product of bfloat16 needs."""
    deep = -(-inner // TILE)
    if mixed_form() == AMX:
        tiles = tile_sizes.MIXED_COLUMNS // TILE + min(-(-rows // TILE), tile_sizes.MIXED_ROWS // TILE)
        return 16 + 5 * 256 + tiles * deep * 512
    high = min(-(-rows // tile_sizes.DOT_DEEP) * tile_sizes.DOT_DEEP, tile_sizes.DOT_ROWS)
    return 16 + 256 + (span_of_dots(columns, inner) + high) * deep * 16


def span_of_dots(columns: int, inner: int) -> int:
    """Return the columns that a product by dot products packs at a time."""
    most = max(tile_sizes.DOT_PANEL // max(inner, 1) // TILE, 1) * TILE
    return min(most, -(-columns // TILE) * TILE)
