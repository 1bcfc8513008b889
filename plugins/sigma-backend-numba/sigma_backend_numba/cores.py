"""The tasks around loops, matrix products and folds."""

from __future__ import annotations

from collections.abc import Mapping
from math import log10, prod

from attrs import define, field, frozen

from sigma_backend_numba.addresses import Address
from sigma_backend_numba.expressions import COSTLY, SHORT, literal
from sigma_backend_numba.form import LEAVES, WORK, matrix
from sigma_backend_numba.groups import Space
from sigma_backend_numba.layout import laid, source
from sigma_backend_numba.maps import identity
from sigma_backend_numba.nest import Fold, Nest, starting
from sigma_backend_numba.schedule import own_strides
from sigma_backend_numba.task import Task, indented, size
from sigma_backend_numba.tiles import Tiles, small, turned
from sigma_kernel.graph.node import Node
from sigma_kernel.graph.plan import BYTES

GRAIN = 30_000  # elements: a smaller loop is done before a second thread has heard of it
BLOCK = 128  # rows of a product that are updated while they are in the cache
LARGE = 1 << 19  # bytes: a result that leaves the cache before it is read again


def pieces(work: float) -> int:
    """Return into how many pieces a product is cut: each packs an operand again, so twice as many need tenfold work."""
    return 2 ** (1 + int(log10(work / (2 * WORK)))) if work >= 2 * WORK else 1


def stored(task: Task) -> list[Node]:
    """Return the members that others read, or that are delivered."""
    return [node for node in task.group.space.maps if node in task.schedule.stored]


def loop(task: Task) -> None:
    """Write a group of elementwise nodes and reductions of rows."""
    space = task.group.space
    costly = any(node.op in COSTLY for node in space.maps)
    extent = space.sides[0] if space.sides and space.row != 0 else 1
    task.share(prod(space.sides) * (4 if costly else 1), GRAIN, extent)
    ranges = {0: ("lo", "hi")} if space.sides and space.row != 0 else {}
    late = frozenset(task.schedule.updates)
    task.lines += Nest(task, space, stored(task), ranges, late=late).lines()


def home(task: Task, core: Node) -> Node | None:
    """Return the value whose storage a product may use until it is written itself."""
    if core in task.schedule.stored:
        return core
    fit = (
        node
        for node in stored(task)
        if (node.shape, node.dtype) == (core.shape, core.dtype) and node not in task.schedule.updates
    )
    return next(fit, None)


def epilogue(
    task: Task, core: Node, pointer: str, offset: str, ranges: Mapping[int, tuple[str, str]]
) -> list[str]:  # fmt: skip
    """Return what follows a product, element by element, over ranges of its axes."""
    space, outs = task.group.space, [node for node in stored(task) if node is not core]
    if not outs:
        return []
    _, steps = own_strides(core, space.maps[core], space.sides)
    kept = [k for k, side in enumerate(core.shape) if side != 1]
    around = {kept.index(axis): ends for axis, ends in ranges.items() if axis in kept}
    late = frozenset({*task.schedule.updates, *outs})
    return Nest(task, space, outs, around, {core: Address(pointer, offset, steps)}, late).lines()


def fold(task: Task) -> None:
    """Write a reduction of axes that are not the last: it adds up in memory, then what follows is computed."""
    group, core = task.group, task.group.core
    if core is None or group.head is None:
        raise AssertionError("a fold has a core and a head")
    space, head, value = group.space, group.head, core.inputs[0]
    m = tuple(None if core.shape[k] == 1 else axis for k, axis in enumerate(identity(value.shape)))
    _, steps = own_strides(core, m, head.sides)
    target = task.storage(core)
    kept = [axis for axis in m if axis is not None]
    ranges = {kept[0]: ("lo", "hi")} if kept else {}
    task.share(prod(head.sides), GRAIN, space.sides[0] if kept else 1, 16 if len(space.sides) == 1 else 1)
    width = prod(space.sides[1:])
    task.lines += [f"for q in range(lo * {width}, hi * {width}):", f"    {target}[q] = {starting(core)}"]
    outs = [node for node in head.maps if node in task.schedule.stored]
    task.lines += Nest(task, head, outs, ranges, fold=Fold(core, value, Address(target, "", steps))).lines()
    outs = [node for node in stored(task) if node is not core]
    if outs:
        over = {core: Address(target, "", own_strides(core, space.maps[core], space.sides)[1])}
        around = {0: ("lo", "hi")} if kept else {}
        task.lines += Nest(task, space, outs, around, over, frozenset(task.schedule.updates)).lines()


@frozen
class Operand:
    """A matrix as BLAS reads it: where it begins, whether it lies transposed, its leading dimension, batch strides."""

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
    """Return how BLAS reads an operand of a product of some rank."""
    found = laid(node)
    read = matrix(node.shape, found.strides)
    if read is None:
        raise AssertionError(f"{node!r} is no matrix for BLAS: a copy is missing")
    lead = rank - len(node.shape)
    batch = (0,) * lead + tuple(
        0 if side == 1 else s for side, s in zip(node.shape[:-2], found.strides[:-2], strict=True)
    )
    return Operand(task.storage(source(node)), found.offset, *read, batch)


@define(eq=False)
class Product:
    """A matrix product with what follows it, element by element."""

    task: Task
    core: Node
    a: Operand = field(init=False)
    b: Operand = field(init=False)
    outs: list[Node] = field(init=False)
    after: list[Node] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Look at the operands and at what follows."""
        rank = len(self.core.shape)
        self.a, self.b = (matrix_operand(self.task, x, rank) for x in self.core.inputs)
        self.outs = [node for node in stored(self.task) if node is not self.core]
        self.after = [node for node in self.task.group.space.maps if node is not self.core]

    @property
    def sides(self) -> tuple[int, int, int]:
        """Return rows, columns and what is summed over."""
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

    def gemm(self, m: str, n: str, a: str, b: str, c: str, alpha: str = "", beta: str = "0") -> list[str]:
        """Return the call of BLAS, or our own product where that is small."""
        kind, (_, columns, inner) = SHORT[self.core.dtype], self.sides
        scale = alpha or literal(1, self.core.dtype)
        if self._small():
            return self._tiles(m, a, b, c, scale, beta == "1")
        return [
            f"{'sgemm' if kind == 'f4' else 'dgemm'}({self.a.turned}, {self.b.turned}, {m}, {n}, {inner}, {scale}, "
            f"{a}, {self.a.leading}, {b}, {self.b.leading}, {literal(float(beta), self.core.dtype)}, {c}, {columns})"
        ]

    def _small(self) -> bool:
        """Say whether a product is done before BLAS has packed its operands."""
        return small(*self.sides, self.b.turned)

    def _tiles(self, m: str, a: str, b: str, c: str, scale: str, added: bool) -> list[str]:
        rows, columns, inner = self.sides
        lines, leading = [f"left = {a}", f"right = {b}", f"to = {c}"], self.b.leading
        if self.b.turned:
            room = self.task.room(inner * columns, self.core.dtype)
            lines, leading = [*lines, *turned("right", room, inner, columns, leading), f"right = {room}"], columns
        down, along = (1, self.a.leading) if self.a.turned else (self.a.leading, 1)
        tiles = Tiles(self.core.dtype, *self.sides, down, along, leading, scale, added)
        return [*lines, *tiles.lines(m, whole=rows <= BLOCK)]

    def share(self, by_rows: bool) -> None:
        """Cut the product by rows or by columns."""
        rows, columns, inner = self.sides
        self.task.cut(pieces(2.0 * rows * columns * inner), rows if by_rows else columns, 32)

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
        """Write product and epilogue for a range of rows (perhaps block by block) or of columns."""
        rows, columns, _ = self.sides
        lines: list[str] = []
        if by_rows:
            to = pointer if local else f"at({pointer}, r0 * {columns})"
            lines += self.gemm("r1 - r0", str(columns), self.a.at("", row="r0"), self.b.at(""), to)
            lines += epilogue(self.task, self.core, pointer, f"-r0 * {columns}" if local else "", {0: ("r0", "r1")})
            head = [f"for r0 in range(lo, hi, {BLOCK}):", f"    r1 = min(r0 + {BLOCK}, hi)"]
            self.task.lines += [*head, *indented(lines)] if blocked else ["r0 = lo", "r1 = hi", *lines]
        else:
            to = f"at({pointer}, lo)"
            self.task.lines += self.gemm(str(rows), "hi - lo", self.a.at(""), self.b.at("", column="lo"), to)
            self.task.lines += epilogue(self.task, self.core, pointer, "", {1: ("lo", "hi")})

    # -- p - rate * (a @ b), over p ------------------------------------------------------------------------------------
    def _linear(self) -> Node | None:
        """Return the rate of a step along the product, if that is all that follows."""
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
            places = (self.a.at("", row="lo"), self.b.at(""), f"at({to}, lo * {columns})")
            self.task.lines += self.gemm("hi - lo", str(columns), *places, alpha, "1")
        else:
            places = (self.a.at(""), self.b.at("", column="lo"), f"at({to}, lo)")
            self.task.lines += self.gemm(str(rows), "hi - lo", *places, alpha, "1")

    # -- batches of matrices -------------------------------------------------------------------------------------------
    def _batched(self) -> None:
        rows, columns, inner = self.sides
        batch = self.core.shape[:-2]
        place = home(self.task, self.core)
        pointer = self.task.storage(place) if place is not None else self.task.room(size(self.core), self.core.dtype)
        shared = bool(batch) and batch[0] > 1 and place is not None and self.task.group.space.row != 0
        self.task.share(2.0 * size(self.core) * inner, WORK, batch[0] if shared else 1)
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
