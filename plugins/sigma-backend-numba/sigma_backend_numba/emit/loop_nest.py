"""Write one loop nest: fused elementwise nodes and reductions of rows.

Every value is computed at the depth at which it varies.  Axes that all addresses step through evenly become one loop.
Reductions need several passes over a row; expensive values are kept in a row of scratch between passes, and all others
are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from attrs import define, field, frozen

from sigma_backend_numba.emit.addresses import Address, Addresses
from sigma_backend_numba.emit.blocks import LoopBlocks, blocks, sums_many
from sigma_backend_numba.emit.task import Task, indented
from sigma_backend_numba.lower.canonical import FLOATS
from sigma_backend_numba.lower.layout import source
from sigma_backend_numba.plan.axis_maps import identity, operand, values
from sigma_backend_numba.plan.groups import Space
from sigma_backend_numba.scalars import COSTLY, SHORT, arithmetic, literal, lowest, text
from sigma_kernel.graph import Node, ordered

Range = tuple[str, str]
DOWN = 8  # rows of a fold whose sum stays in registers


@frozen
class Fold:
    """A reduction into memory: the reduced value, and the location of its sums; of those of all blocks, if any."""

    core: Node
    value: Node
    to: Address
    total: Address | None = None


def starting(node: Node) -> str:
    """Return the initial value of a reduction."""
    return literal(0, node.dtype) if node.op == "sum" else lowest(node.dtype)


def combined(node: Node, so_far: str, value: str, along: bool = True) -> str:
    """Return the expression that combines a reduction with one more value.

    A sum ``along`` the innermost loop may be reordered, so that it can be vectorised.  LLVM would gather the terms of
    others, which lie side by side.
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
    loops: list[list[int]] = field(init=False)
    split: int = field(init=False)  # the number of loops around a row
    passes: int = field(init=False)
    _blocks: LoopBlocks | None = field(init=False)
    _levels: dict[Node, int] = field(factory=dict, init=False)
    _depths: dict[Node, int] = field(factory=dict, init=False)
    _names: dict[tuple[object, ...], str] = field(factory=dict, init=False)
    _before: list[list[str]] = field(init=False)
    _between: list[list[str]] = field(init=False)
    _within: list[list[list[str]]] = field(init=False)
    _stores: list[tuple[list[str], str]] = field(factory=list, init=False)
    _saved: dict[Node, str] = field(factory=dict, init=False)
    _sums: list[tuple[str, str]] = field(factory=list, init=False)  # lines that read and write the sum of a fold

    def __attrs_post_init__(self) -> None:
        """Write the lines."""
        self.addresses = Addresses(self.task, self.space, self.over)
        self.loops = self._merged()
        row = self.space.row
        ends = [loop[-1] for loop in self.loops]
        self.split = max(len(self.loops) - 1, 0) if row is None else sum(end < row for end in ends)
        reductions = [*self.space.inner, *(fold.core for fold in self.folds)]
        reduced = [(k, self._rounds(k)) for k in self._reduced()]
        self._blocks = blocks(reductions[0], reduced) if reductions else None
        for node in self._computed():
            self._levels[node] = self._level(node)
            self._depths[node] = self._depth(node)
        self.passes = 1 + max([0, *(self._levels[n] - (n in self.space.inner) for n in self._levels)])
        depth = len(self.loops) + 1
        self._before = [[] for _ in range(self.split + 1)]
        self._between = [[] for _ in range(self.passes + 1)]
        self._within = [[[] for _ in range(depth)] for _ in range(self.passes)]
        self._write()

    def _computed(self) -> list[Node]:
        return [node for node in self.space.maps if node not in self.over]

    # -- structure -----------------------------------------------------------------------------------------------------
    def _merged(self) -> list[list[int]]:
        """Return the loops, merging axes that every address steps through evenly."""
        rank, sides = len(self.space.sides), self.space.sides
        steps = self.addresses.steps(self.outs)
        for fold in self.folds:
            steps.append(fold.to.strides)
            if self.addresses.lies(fold.value) and source(fold.value) not in self.space.maps:
                steps.append(self.addresses.of(fold.value, identity(fold.value.shape)).strides)
        loops: list[list[int]] = []
        wordy = any(node.op == "random_bits" for node in self.space.maps)
        for axis in range(rank):
            inside = axis in self.ranges or axis == self.space.row or (wordy and axis == rank - 1)
            even = all(s[axis - 1] == s[axis] * sides[axis] for s in steps)
            if loops and even and not inside:
                loops[-1].append(axis)
            else:
                loops.append([axis])
        return loops

    def _reduced(self) -> list[int]:
        """Return the loops over numbers that are reduced to one: they are the same for all reductions of a nest."""
        if self.space.inner:
            return [*range(self.split, len(self.loops))]
        return [k for k in range(len(self.loops)) if self.folds and not self._follows(k, self.folds[0].to)]

    def _follows(self, k: int, address: Address) -> bool:
        return any(address.strides[axis] for axis in self.loops[k])

    def _rounds(self, k: int) -> int:
        return prod(self.space.sides[axis] for axis in self.loops[k])

    def _level(self, node: Node) -> int:
        """Return the first pass in which a value is available."""
        known = max([self._levels.get(source(x), 0) for x in node.inputs], default=0)
        return known + (node in self.space.inner)

    def _depth(self, node: Node) -> int:
        """Return the number of loops inside which a value varies."""
        if node in self.space.inner:
            return self.split
        m = self.space.maps[node]
        depths = [self._deep(step) for step in self.addresses.own_steps(node)]
        for position in values(node):
            x = node.inputs[position]
            if source(x) in self._depths:
                depths.append(self._depths[source(x)])
            elif self.addresses.lies(x):
                depths.append(self._deep(self.addresses.of(x, operand(node, position, m)).strides))
        return max(depths, default=0)

    def _deep(self, strides: Sequence[int]) -> int:
        axes = [axis for axis, stride in enumerate(strides) if stride]
        return max((1 + k for k, loop in enumerate(self.loops) for axis in axes if axis in loop), default=0)

    # -- text ----------------------------------------------------------------------------------------------------------
    def _write(self) -> None:
        needed = self._needed()
        for number in range(self.passes):
            for node, depth in self._depths.items():
                once = depth <= self.split and self._levels[node] == number
                if (once or node in needed[number]) and node not in self.space.inner:
                    self._compute(node, number)
            self._reduce(number)
        for node in self.outs:
            self._store(node)
        for place, line in self._stores:
            place.append(line)

    def _needed(self) -> list[set[Node]]:
        """Return what each pass computes per element; an expensive value that a later pass needs is saved."""
        needed: list[set[Node]] = [set() for _ in range(self.passes)]
        waiting: list[list[Node]] = [[] for _ in range(self.passes)]
        for node in self.outs:
            waiting[self._pass(node)].append(node)
        for node in self.space.inner:
            waiting[self._levels[node] - 1].append(source(node.inputs[0]))
        waiting[0] += [source(fold.value) for fold in self.folds]
        for number in reversed(range(self.passes)):
            while waiting[number]:
                node = waiting[number].pop()
                if self._depths.get(node, 0) <= self.split or node in needed[number]:
                    continue
                if self._levels[node] < number and node.op in COSTLY:
                    self._save(node)
                    waiting[self._levels[node]].append(node)
                    continue
                needed[number].add(node)
                waiting[number] += [source(node.inputs[i]) for i in values(node)]
        return needed

    def _pass(self, node: Node) -> int:
        """Return the pass that writes an output."""
        return self.passes - 1 if node in self.late else min(self._levels.get(node, 0), self.passes - 1)

    def _save(self, node: Node) -> None:
        if node not in self._saved:
            self._saved[node] = self.task.room(prod(self.space.sides[self.space.row or 0 :]), node.dtype)

    def place(self, depth: int, level: int, number: int) -> list[str]:
        """Return the list of lines for a depth and a pass."""
        if depth > self.split:
            return self._within[number][depth]
        return self._between[level] if level else self._before[depth]

    def _compute(self, node: Node, number: int) -> None:
        """Write a member that is not a reduction."""
        depth, level = self._depths[node], self._levels[node]
        operands = [self._operand(node, position, number) for position in values(node)]
        lines = self.place(depth, level, number)
        value = self.addresses.value(node, self, number)
        name = self.task.variable()
        lines.append(f"{name} = {text(node, operands) if value is None else value(operands)}")
        self._names[node, number if depth > self.split else -1] = name
        if node in self._saved and number == level:
            stored = f"i1({name})" if node.dtype == "bool" else name
            lines.append(f"{self._saved[node]}[{self._in_row()}] = {stored}")

    def _operand(self, node: Node, position: int, number: int) -> str:
        m = self.space.inner[node] if node in self.space.inner else operand(node, position, self.space.maps[node])
        return self.read(node.inputs[position], m, number)

    def read(self, x: Node, m: tuple[int | None, ...], number: int) -> str:
        """Return the name or literal of a value in a pass; write its load first if there is none."""
        root = source(x)
        if root.op == "constant":
            return literal(root.attrs["value"], root.dtype)
        if root in self.task.schedule.grouping.free:
            return self._free(root)
        for key in ((root, number), (root, -1)):
            if root in self._depths and key in self._names:
                return self._names[key]
        if root in self._saved:
            return self._loaded(root, Address(self._saved[root], self._in_row(), ()), len(self.loops), number)
        address = self.addresses.of(x, m)
        return self._loaded(root, address, self._deep(address.strides), number)

    def _loaded(self, root: Node, address: Address, depth: int, number: int) -> str:
        key = ("load", address, number if depth > self.split else -1)
        if key not in self._names:
            name = self._names[key] = self.task.variable()
            read = self.at(address) + (" != 0" if root.dtype == "bool" else "")
            self.place(depth, 0, number).append(f"{name} = {read}")
        return self._names[key]

    def hoisted(self, text: str, steps: Sequence[int], number: int) -> str:
        """Write a value at the depth at which its index varies, and return its name."""
        depth = self._deep(steps)
        key = ("text", text, number if depth > self.split else -1)
        if key not in self._names:
            name = self._names[key] = self.task.variable()
            self.place(depth, 0, number).append(f"{name} = {text}")
        return self._names[key]

    @property
    def ahead(self) -> list[str]:
        """Return the lines before all loops."""
        return self._before[0]

    @property
    def outside(self) -> list[str]:
        """Return the lines before a row."""
        return self._before[self.split]

    def at(self, address: Address) -> str:
        """Return the text of an element."""
        return f"{address.pointer}[{self.index(address.strides, address.offset)}]"

    def index(self, strides: Sequence[int], offset: str = "") -> str:
        """Return the text of an index."""
        terms = [offset] if offset else []
        for k, loop in enumerate(self.loops):
            stride = strides[loop[-1]] if strides else 0
            if stride:
                terms.append(f"v{k}" if stride == 1 else f"v{k} * {stride}")
        return " + ".join(terms) or "0"

    def _in_row(self) -> str:
        row = self.space.row or 0
        sides = self.space.sides
        return self.index([prod(sides[a + 1 :]) if a >= row else 0 for a in range(len(sides))])

    def _free(self, root: Node) -> str:
        """Write a free scalar and its free operands before all loops."""
        free = self.task.schedule.grouping.free
        for node in ordered((root,)):
            if node in free and (node, "free") not in self._names:
                operands = [self.read(x, (None,) * len(x.shape), 0) for x in node.inputs]
                name = self._names[node, "free"] = self.task.variable()
                self._before[0].append(f"{name} = {text(node, operands)}")
        return self._names[root, "free"]

    def _reduce(self, number: int) -> None:
        """Write the reductions of a pass."""
        full = len(self.loops)
        for node in self.space.inner:
            if self._levels[node] - 1 == number:
                value = self.read(node.inputs[0], self.space.inner[node], number)
                name = self._names[node, -1] = self.task.variable()
                self._within[number][full].append(f"{name} = {combined(node, name, value)}")
                self._start(node, number, f"{name} = {starting(node)}")
        for fold in self.folds if not number else ():
            value = self.read(fold.value, identity(fold.value.shape), 0)
            name, target, along = self.task.variable(), self.at(fold.to), self._deep(fold.to.strides) < full
            ends = f"{name} = {target}", f"{target} = {name}"
            self._sums.append(ends)
            self._open(fold)
            self.place(full, 0, 0).extend([ends[0], f"{name} = {combined(fold.core, name, value, along)}", ends[1]])

    def _start(self, node: Node, number: int, line: str) -> None:
        """Write the start of a reduction of rows: before the loop, or before each block, whose sums are then added."""
        if self._blocks is None or not sums_many(node):
            self._between[number].append(line)
            return
        part, total, name = self._names[node, -1], self.task.variable(), self.task.variable()
        self._between[number].append(f"{total} = f8(0)")
        self._blocks.add(number, [line], [f"{total} = {total} + f8({part})"])
        self._between[number + 1].append(f"{name} = {SHORT[node.dtype]}({total})")
        self._names[node, -1] = name

    def _open(self, fold: Fold) -> None:
        """Write the start and the end of a fold's sums in a block, if it has blocks."""
        if self._blocks is None or fold.total is None:
            return
        part, total = self.at(fold.to), self.at(fold.total)
        lines = [f"{part} = {starting(fold.core)}"], [f"{total} = {total} + f8({part})"]
        for k in reversed(range(self._blocks.number + 1, len(self.loops))):
            if self._follows(k, fold.to):
                lines = [self._loop(k), *indented(lines[0])], [self._loop(k), *indented(lines[1])]
        self._blocks.add(0, *lines)

    def _store(self, node: Node) -> None:
        """Write an output to memory, after everything that is read at the same depth."""
        address = self.addresses.target(node)
        number = self._pass(node)
        deepest = max(self._depths[node], self._deep(address.strides))
        value = self._names.get((node, number)) or self._names.get((node, -1))
        if value is None:
            value = self._loaded(node, Address(self._saved[node], self._in_row(), ()), len(self.loops), number)
        stored = f"i1({value})" if node.dtype == "bool" else value
        self._stores.append((self.place(deepest, self._levels[node], number), f"{self.at(address)} = {stored}"))

    def lines(self) -> list[str]:
        """Return the text of the whole nest."""
        if self._sums and len(self.loops) == 2 and self.passes == 1 and not (self._before[1] or 0 in self.ranges):
            return [*self._before[0], *self._in_blocks(0, 0, self._down)]
        inside: list[str] = []
        for number in range(self.passes):
            inside += [*self._between[number], *self._row(number)]
        inside += self._between[self.passes]
        for k in reversed(range(self.split)):
            inside = self._around(k, [*self._before[k + 1], *inside])
        return [*self._before[0], *inside]

    def _down(self, first: str, last: str) -> list[str]:
        """Return folds of rows, some rows at a time: their sums stay in registers meanwhile."""
        ends = [line for pair in self._sums for line in pair]
        each, rows = self._within[0][2], self._rounds(0)
        stop = f"{first} + ({last} - {first}) // {DOWN} * {DOWN}"
        uneven = rows % DOWN or (self._blocks is not None and self._blocks.size % DOWN)
        body = [line for line in each if line not in ends]
        lines = [
            f"for d in range({first}, {stop}, {DOWN}):",
            *indented([self._loop(1), *indented(ends[::2])]),
            *indented([f"for v0 in range(d, d + {DOWN}):", *indented(body)], 2),
            *indented(ends[1::2], 2),
        ]
        rest = [f"for v0 in range({stop}, {last}):", *indented([self._loop(1), *indented(each)])]
        return [*(lines if rows >= DOWN else []), *(rest if uneven else [])]

    def _row(self, number: int) -> list[str]:
        found: list[str] = []
        for k in reversed(range(self.split, len(self.loops))):
            found = self._around(k, [*self._within[number][k + 1], *found], number)
        return found

    def _around(self, k: int, body: list[str], number: int = 0) -> list[str]:
        """Return a loop, or nothing if its body is empty: the values that vary along an axis may have no reader."""
        if not body:
            return []
        return self._in_blocks(k, number, lambda *ends: [f"for v{k} in range({', '.join(ends)}):", *indented(body)])

    def _in_blocks(self, k: int, number: int, loop: Callable[[str, str], list[str]]) -> list[str]:
        if self._blocks is None or k != self._blocks.number:
            return loop(*self.range(k))
        return self._blocks.around(number, self.range(k), loop)

    def _loop(self, k: int) -> str:
        return f"for v{k} in range({', '.join(self.range(k))}):"

    def range(self, k: int) -> Range:
        """Return the bounds of a loop."""
        first, *rest = self.loops[k]
        width = prod(self.space.sides[axis] for axis in rest)
        lo, hi = self.ranges.get(first, ("0", str(self.space.sides[first])))
        return (lo, hi) if width == 1 else (f"({lo}) * {width}", f"({hi}) * {width}")
