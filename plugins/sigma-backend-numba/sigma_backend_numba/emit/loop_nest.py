"""Write one loop nest: fused elementwise nodes and reductions of rows.

Reductions need several passes over a row; expensive values are kept in a row of scratch between passes, and all others
are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import define, field

from sigma_backend_numba.emit.addresses import Address, Addresses
from sigma_backend_numba.emit.blocks import LoopBlocks, blocks, sums_many
from sigma_backend_numba.emit.nest_loops import Fold, NestLoops, Range
from sigma_backend_numba.emit.nest_values import NestValues
from sigma_backend_numba.emit.task import Task, indent
from sigma_backend_numba.lower.canonical import FLOATS
from sigma_backend_numba.lower.layout import source
from sigma_backend_numba.plan.axis_maps import identity, values
from sigma_backend_numba.plan.groups import Space
from sigma_backend_numba.scalars import COSTLY, SHORT, arithmetic, literal, lowest
from sigma_kernel.graph import Node

DOWN = 8  # rows of a fold whose sum stays in registers


def starting(node: Node) -> str:
    """Return the initial value of a reduction."""
    return literal(0, node.dtype) if node.op == "sum" else lowest(node.dtype)


def combine(node: Node, so_far: str, value: str, along: bool = True) -> str:
    """Return the expression that combines a reduction with one more value.

    A sum ``along`` the innermost loop may be reordered, so that it can be vectorised.  LLVM would gather the contiguous
    terms of others.
    """
    if node.op == "max":
        return f"larger({so_far}, {value})"
    if along and node.dtype in FLOATS:
        return f"radd({so_far}, {value})"
    return arithmetic("add", node.dtype, so_far, value)


@define(eq=False)
class Nest:
    """The loops over a space.  ``ranges`` limits the axes that are covered partially."""

    task: Task
    space: Space
    outs: Sequence[Node]
    ranges: Mapping[int, Range]
    over: Mapping[Node, Address] = field(factory=dict)  # members that are already in memory
    late: frozenset[Node] = frozenset()  # outputs that overwrite what other passes read
    folds: Sequence[Fold] = ()
    addresses: Addresses = field(init=False)
    loops: NestLoops = field(init=False)
    values: NestValues = field(init=False)
    _blocks: LoopBlocks | None = field(init=False)
    _stores: list[tuple[list[str], str]] = field(factory=list, init=False)
    _sums: list[tuple[str, str]] = field(factory=list, init=False)  # lines that read and write the sum of a fold
    _reductions: set[int] = field(factory=set, init=False)  # passes whose innermost loop reduces a row

    def __attrs_post_init__(self) -> None:
        """Write the lines."""
        self.addresses = Addresses(self.task, self.space, self.over)
        self.loops = NestLoops(self.space, self.addresses, self.outs, self.ranges, self.folds)
        self.values = NestValues(self.task, self.space, self.addresses, self.loops)
        reductions = [*self.space.inner, *(fold.core for fold in self.folds)]
        reduced = [(k, self.loops.rounds(k)) for k in self.loops.axes_of_folds()]
        self._blocks = blocks(reductions[0], reduced) if reductions else None
        self._write()

    def _write(self) -> None:
        needed = self._values_by_pass()
        for number in range(self.loops.passes):
            for node, depth in self.loops.depths.items():
                once = depth <= self.loops.split and self.loops.levels[node] == number
                if (once or node in needed[number]) and node not in self.space.inner:
                    self.values.compute(node, number)
            self._reduce(number)
        for node in self.outs:
            self._store(node)
        for place, line in self._stores:
            place.append(line)

    def _values_by_pass(self) -> list[set[Node]]:
        """Return what each pass computes per element; an expensive value that a later pass needs is saved."""
        needed: list[set[Node]] = [set() for _ in range(self.loops.passes)]
        waiting: list[list[Node]] = [[] for _ in range(self.loops.passes)]
        for node in self.outs:
            waiting[self._pass(node)].append(node)
        for node in self.space.inner:
            waiting[self.loops.levels[node] - 1].append(source(node.inputs[0]))
        waiting[0] += [source(fold.value) for fold in self.folds]
        for number in reversed(range(self.loops.passes)):
            while waiting[number]:
                node = waiting[number].pop()
                if self.loops.depths.get(node, 0) <= self.loops.split or node in needed[number]:
                    continue
                if self.loops.levels[node] < number and node.op in COSTLY:
                    self.values.save(node)
                    waiting[self.loops.levels[node]].append(node)
                    continue
                needed[number].add(node)
                waiting[number] += [source(node.inputs[i]) for i in values(node)]
        return needed

    def _pass(self, node: Node) -> int:
        """Return the pass that writes an output."""
        last = self.loops.passes - 1
        return last if node in self.late else min(self.loops.levels.get(node, 0), last)

    def _reduce(self, number: int) -> None:
        """Write the reductions of a pass."""
        full = len(self.loops.axes)
        for node in self.space.inner:
            if self.loops.levels[node] - 1 == number:
                self._reductions.add(number)
                value = self.values.read(node.inputs[0], self.space.inner[node], number)
                name = self.values.names[node, -1] = self.task.variable()
                self.values.within[number][full].append(f"{name} = {combine(node, name, value)}")
                self._start(node, number, f"{name} = {starting(node)}")
        for fold in self.folds if not number else ():
            value = self.values.read(fold.value, identity(fold.value.shape), 0)
            name, target = self.task.variable(), self.loops.element_at(fold.to)
            along = self.loops.depth_of(fold.to.strides) < full
            if along:
                self._reductions.add(number)
            ends = f"{name} = {target}", f"{target} = {name}"
            self._sums.append(ends)
            self._open(fold)
            line = f"{name} = {combine(fold.core, name, value, along)}"
            self.values.place(full, 0, 0).extend([ends[0], line, ends[1]])

    def _start(self, node: Node, number: int, line: str) -> None:
        """Write the start of a reduction of rows: before the loop, or before each block, whose sums are then added."""
        if self._blocks is None or not sums_many(node):
            self.values.between[number].append(line)
            return
        part, total, name = self.values.names[node, -1], self.task.variable(), self.task.variable()
        self.values.between[number].append(f"{total} = f8(0)")
        self._blocks.add(number, [line], [f"{total} = {total} + f8({part})"])
        self.values.between[number + 1].append(f"{name} = {SHORT[node.dtype]}({total})")
        self.values.names[node, -1] = name

    def _open(self, fold: Fold) -> None:
        """Write the start and the end of a fold's sums in a block, if it has blocks."""
        if self._blocks is None or fold.total is None:
            return
        part, total = self.loops.element_at(fold.to), self.loops.element_at(fold.total)
        lines = [f"{part} = {starting(fold.core)}"], [f"{total} = {total} + f8({part})"]
        for k in reversed(range(self._blocks.number + 1, len(self.loops.axes))):
            if self.loops.follows(k, fold.to):
                lines = [self.loops.header(k), *indent(lines[0])], [self.loops.header(k), *indent(lines[1])]
        self._blocks.add(0, *lines)

    def _store(self, node: Node) -> None:
        """Write an output to memory, after everything that is read at the same depth."""
        address = self.addresses.target(node)
        number = self._pass(node)
        deepest = max(self.loops.depths[node], self.loops.depth_of(address.strides))
        value = self.values.names.get((node, number)) or self.values.names.get((node, -1))
        if value is None:
            value = self.values.load_saved(node, number)
        stored = f"i1({value})" if node.dtype == "bool" else value
        place = self.values.place(deepest, self.loops.levels[node], number)
        self._stores.append((place, f"{self.loops.element_at(address)} = {stored}"))

    def lines(self) -> list[str]:
        """Return the text of the whole nest."""
        plain = len(self.loops.axes) == 2 and self.loops.passes == 1
        if self._sums and plain and not (self.values.before[1] or 0 in self.ranges):
            return [*self.values.before[0], *self._in_blocks(0, 0, self._fold_rows)]
        inside: list[str] = []
        for number in range(self.loops.passes):
            inside += [*self.values.between[number], *self._row(number)]
        inside += self.values.between[self.loops.passes]
        for k in reversed(range(self.loops.split)):
            inside = self._write_loop(k, [*self.values.before[k + 1], *inside])
        return [*self.values.before[0], *inside]

    def _fold_rows(self, first: str, last: str) -> list[str]:
        """Return folds of rows, some rows at a time: their sums stay in registers meanwhile."""
        ends = [line for pair in self._sums for line in pair]
        each, rows = self.values.within[0][2], self.loops.rounds(0)
        stop = f"{first} + ({last} - {first}) // {DOWN} * {DOWN}"
        uneven = rows % DOWN or (self._blocks is not None and self._blocks.size % DOWN)
        body = [line for line in each if line not in ends]
        lines = [
            f"for d in range({first}, {stop}, {DOWN}):",
            *indent([self.loops.header(1), *indent(ends[::2])]),
            *indent([f"for v0 in range(d, d + {DOWN}):", *indent(body)], 2),
            *indent(ends[1::2], 2),
        ]
        rest = [f"for v0 in range({stop}, {last}):", *indent([self.loops.header(1), *indent(each)])]
        return [*(lines if rows >= DOWN else []), *(rest if uneven else [])]

    def _row(self, number: int) -> list[str]:
        lines: list[str] = []
        for k in reversed(range(self.loops.split, len(self.loops.axes))):
            lines = self._write_loop(k, [*self.values.within[number][k + 1], *lines], number)
        return lines

    def _write_loop(self, k: int, body: list[str], number: int = 0) -> list[str]:
        """Return a loop, or nothing if its body is empty: the values that vary along an axis may have no reader."""
        if not body:
            return []
        word = "row" if self.loops.is_row(k) and number not in self._reductions else "range"
        return self._in_blocks(k, number, lambda *ends: [f"for v{k} in {word}({', '.join(ends)}):", *indent(body)])

    def _in_blocks(self, k: int, number: int, loop: Callable[[str, str], list[str]]) -> list[str]:
        if self._blocks is None or k != self._blocks.number:
            return loop(*self.loops.range(k))
        return self._blocks.wrap_loop(number, self.loops.range(k), loop)
