"""Write the tasks of matrix products and of the elementwise work that follows them."""

from __future__ import annotations

from functools import cache
from math import log10, prod

from attrs import define, field, frozen

from sigma_backend_numba.compiler import tile_sizes
from sigma_backend_numba.compiler.machine_code import processor
from sigma_backend_numba.emit import costs
from sigma_backend_numba.emit.loop_nest import Nest
from sigma_backend_numba.emit.loops import epilogue, home, stored
from sigma_backend_numba.emit.register_tiles import Tiles, depth, small
from sigma_backend_numba.emit.task import Task, indented, size
from sigma_backend_numba.lower.canonical import LEAVES, WORK, matrix
from sigma_backend_numba.lower.layout import laid, source
from sigma_backend_numba.plan.fusion import Space
from sigma_backend_numba.scalars import SHORT, literal
from sigma_kernel.graph import BYTES, Node

BLOCK = 96  # rows of a product that are updated while they are in the cache
ROWS = 24  # floating-point operations in a piece of our own product, approximately, or a multiple: whole tiles
PAGE = 4096  # bytes
LARGE = 1 << 19  # bytes of a result that is evicted from the cache before it is read again


@frozen
class Operand:
    """A matrix as BLAS reads it: start, whether it is transposed, leading dimension, batch strides."""

    pointer: str
    offset: int
    turned: bool
    leading: int
    batch: tuple[int, ...]

    def at(self, index: str, row: str = "", column: str = "") -> str:
        """Return the text of a pointer to a row or column of one matrix of the batch."""
        terms = [str(self.offset)] if self.offset else []
        terms += [index] if index else []
        if row:
            terms.append(row if self.turned else f"{row} * {self.leading}")
        if column:
            terms.append(f"{column} * {self.leading}" if self.turned else column)
        return f"at({self.pointer}, {' + '.join(terms)})" if terms else self.pointer


def matrix_operand(task: Task, node: Node, rank: int) -> Operand:
    """Return an operand of a product of any rank as BLAS reads it."""
    found = laid(node)
    read = matrix(node.shape, found.strides)
    if read is None:
        raise AssertionError(f"{node!r} is no matrix for BLAS: a copy is missing")
    lead = rank - len(node.shape)
    batch = (0,) * lead + tuple(
        0 if side == 1 else s for side, s in zip(node.shape[:-2], found.strides[:-2], strict=True)
    )
    return Operand(*task.part(source(node), found.offset), *read, batch)


@define(eq=False)
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
        self.outs = [node for node in stored(self.task) if node is not self.core]
        self.after = [node for node in self.task.group.space.maps if node is not self.core]

    @property
    def sides(self) -> tuple[int, int, int]:
        """Return the numbers of rows and columns, and the inner side."""
        return (*self.core.shape[-2:], self.core.inputs[0].shape[-1])  # type: ignore[return-value]  # two and one

    def write(self) -> None:
        """Write the task."""
        if len(self.core.shape) > 2 or 0 in self.core.shape:
            self._batched()
            return
        rate = self._linear()
        if rate is not None:
            self._accumulated(rate)
        else:
            self._plain()

    def gemm(self, m: str, n: str, a: str, b: str, c: str, alpha: str = "", added: bool = False) -> list[str]:
        """Return the call of BLAS, or of our own product if that is faster."""
        kind, (_, columns, inner) = SHORT[self.core.dtype], self.sides
        scale = alpha or literal(1, self.core.dtype)
        if self._small:
            return self._tiles(m, n, a, b, c, scale, added)
        if self._own:
            return [self._panels(m, n, a, b, c, scale, added)]
        return [
            f"{'sgemm' if kind == 'f4' else 'dgemm'}({self.a.turned}, {self.b.turned}, {m}, {n}, {inner}, {scale}, "
            f"{a}, {self.a.leading}, {b}, {self.b.leading}, {literal(added, self.core.dtype)}, {c}, {columns})"
        ]

    @property
    def _small(self) -> bool:
        return small(*self.sides, self.b.turned)

    @property
    def _own(self) -> bool:
        """Return whether the product is computed without BLAS."""
        apart = self.b.leading * BYTES[self.core.dtype] if self.b.turned else 0
        return self._small or (len(self.core.shape) == 2 and faster(*self.sides[:2], apart))

    @property
    def _strides(self) -> tuple[int, int]:
        """Return the strides of the first operand between rows and along a row."""
        return (1, self.a.leading) if self.a.turned else (self.a.leading, 1)

    def _tiles(self, m: str, n: str, a: str, b: str, c: str, scale: str, added: bool) -> list[str]:
        tiles = Tiles(self.core.dtype, *self.sides, *self._strides, self.b.leading, self.b.turned, scale, added)
        lines = [f"left = {a}", f"right = {b}", f"to = {c}"]
        if tiles.room:
            lines.append(f"room = {self.task.room(tiles.room, self.core.dtype)}")
        return [*lines, *tiles.lines(m, n)]

    def _panels(self, m: str, n: str, a: str, b: str, c: str, scale: str, added: bool) -> str:
        (down, along), (_, columns, inner) = self._strides, self.sides
        under, beside = (1, self.b.leading) if self.b.turned else (self.b.leading, 1)
        room = self.task.room(room_of(self.core.dtype, *self.sides, down), self.core.dtype)
        left, right = f"{a}, {down}, {along}", f"{b}, {under}, {beside}"
        return f"product({left}, {right}, {c}, {columns}, {room}, {m}, {n}, {inner}, {scale}, {added})"

    def share(self, by_rows: bool) -> None:
        """Cut the product by rows or columns; a piece goes from ``e0`` to ``e1``."""
        rows, columns, inner = self.sides
        work, side, unit = 2.0 * rows * columns * inner, rows if by_rows else columns, 1
        if self._own:  # each piece packs its own columns: no work is done twice
            deep = depth(rows) if self._small else tile_sizes.DEEP
            unit = ROWS // deep * deep if by_rows else tile_sizes.AT_ONCE // BYTES[self.core.dtype]
            self.task.share(costs.product(work), -(-side // unit))
        else:
            self.task.cut(_pieces(work), costs.product(work), side, 32)
        self.task.lines += [f"e0 = lo * {unit}", f"e1 = min(hi * {unit}, {side})"]

    # -- two matrices --------------------------------------------------------------------------------------------------
    def _plain(self) -> None:
        rows, columns, _ = self.sides
        updates = any(node in self.task.schedule.updates for node in self.outs)
        by_rows = self.task.group.space.row is not None or updates or rows > columns
        self.share(by_rows)
        place = home(self.task, self.core)
        large = bool(self.outs) and rows * columns * BYTES[self.core.dtype] > LARGE
        blocked = by_rows and rows > BLOCK and (place is None or (large and place is not self.core))
        if place is None or blocked:
            pointer = self.task.room((BLOCK if blocked else rows) * columns, self.core.dtype)
            self._tile(pointer, by_rows, blocked, local=True)
        else:
            self._tile(self.task.storage(place), by_rows, False, local=False)

    def _tile(self, pointer: str, by_rows: bool, blocked: bool, local: bool) -> None:
        """Write the product and its epilogue for a range of rows (block by block if useful) or columns."""
        rows, columns, _ = self.sides
        lines: list[str] = []
        if by_rows:
            to = pointer if local else f"at({pointer}, r0 * {columns})"
            lines += self.gemm("r1 - r0", str(columns), self.a.at("", row="r0"), self.b.at(""), to)
            lines += epilogue(self.task, self.core, pointer, f"-r0 * {columns}" if local else "", {0: ("r0", "r1")})
            head = [f"for r0 in range(e0, e1, {BLOCK}):", f"    r1 = min(r0 + {BLOCK}, e1)"]
            self.task.lines += [*head, *indented(lines)] if blocked else ["r0 = e0", "r1 = e1", *lines]
        else:
            to = f"at({pointer}, e0)"
            self.task.lines += self.gemm(str(rows), "e1 - e0", self.a.at(""), self.b.at("", column="e0"), to)
            self.task.lines += epilogue(self.task, self.core, pointer, "", {1: ("e0", "e1")})

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

    def _accumulated(self, rate: Node) -> None:
        rows, columns, _ = self.sides
        by_rows = rows > columns
        self.share(by_rows)
        nest = Nest(self.task, Space(()), [], {})
        alpha = f"-{nest.read(rate, (None,) * len(rate.shape), 0)}"
        self.task.lines += nest.lines()
        to = self.task.storage(self.outs[0])
        if by_rows:
            places = (self.a.at("", row="e0"), self.b.at(""), f"at({to}, e0 * {columns})")
            self.task.lines += self.gemm("e1 - e0", str(columns), *places, alpha, added=True)
        else:
            places = (self.a.at(""), self.b.at("", column="e0"), f"at({to}, e0)")
            self.task.lines += self.gemm(str(rows), "e1 - e0", *places, alpha, added=True)

    # -- batches of matrices -------------------------------------------------------------------------------------------
    def _batched(self) -> None:
        rows, columns, inner = self.sides
        batch = self.core.shape[:-2]
        place = home(self.task, self.core)
        pointer = self.task.storage(place) if place is not None else self.task.room(size(self.core), self.core.dtype)
        shared = bool(batch) and batch[0] > 1 and place is not None and self.task.group.space.row != 0
        self.task.share(costs.product(2.0 * size(self.core) * inner), batch[0] if shared else 1)
        lines, depth = [], 0
        for k, side in enumerate(batch):
            ends = "lo, hi" if k == 0 and shared else f"{side}"
            lines.append("    " * depth + f"for b{k} in range({ends}):")
            depth += 1
        places = []
        for strides in (
            self.a.batch,
            self.b.batch,
            tuple(prod(batch[k + 1 :]) * rows * columns for k in range(len(batch))),
        ):
            places.append(" + ".join(f"b{k} * {stride}" for k, stride in enumerate(strides) if stride))
        to = f"at({pointer}, {places[2]})" if places[2] else pointer
        call = self.gemm(str(rows), str(columns), self.a.at(places[0]), self.b.at(places[1]), to)
        self.task.lines += [*lines, *indented(call, depth)]
        self.task.lines += epilogue(self.task, self.core, pointer, "", {0: ("lo", "hi")} if shared else {})


def _pieces(work: float) -> int:
    """Return the number of products that BLAS gets: each packs an operand again, so twice as many for tenfold work."""
    return 2 ** (1 + int(log10(work / (2 * WORK)))) if work >= 2 * WORK else 1


def faster(rows: int, columns: int, turned: int) -> bool:
    """Return whether BLAS is slower at large products here; ``turned``: bytes between rows of a transposed operand.

    Columns of a transposed operand whose rows are pages apart conflict in the cache.
    """
    if turned:
        return rows >= 96 and columns >= 64 and turned % PAGE > 0 and narrow()
    return rows >= 24 and columns >= 64 and narrow()


@cache
def narrow() -> bool:
    """Return whether tiles fit the registers of AVX2 rather than AVX-512."""
    features = processor()[1].split(",")
    return "+avx2" in features and "+fma" in features and "+avx512f" not in features


def room_of(dtype: str, rows: int, columns: int, inner: int, down: int) -> int:
    """Return the number of scratch elements that a large product needs."""
    deep = min(inner, tile_sizes.INNER)
    left = deep * (min(rows, tile_sizes.ROWS) + tile_sizes.DEEP) if down == 1 else 0
    return (deep * tile_sizes.GROUP + tile_sizes.DEEP) * tile_sizes.AT_ONCE // BYTES[dtype] + left
