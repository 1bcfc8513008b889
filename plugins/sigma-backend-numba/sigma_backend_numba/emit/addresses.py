"""Where a loop nest reads and writes: pointers, offsets and strides, and values that take more than one load."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Protocol

from attrs import define, frozen

from sigma_backend_numba.emit.task import Task
from sigma_backend_numba.lower.layout import require_layout, source
from sigma_backend_numba.plan.axis_maps import Map, operand, values
from sigma_backend_numba.plan.groups import Space
from sigma_backend_numba.plan.strides import own_strides, strides
from sigma_backend_numba.scalars import SHORT
from sigma_kernel.graph import Node

Steps = tuple[int, ...]
Value = Callable[[Sequence[str]], str]


class Loops(Protocol):
    """The variables of a nest's loops that addresses use."""

    axes: list[list[int]]
    split: int

    def index(self, strides: Sequence[int], offset: str = "") -> str:
        """Return the text of an index."""
        ...

    def range(self, k: int) -> tuple[str, str]:
        """Return the bounds of a loop."""
        ...


class NestLines(Protocol):
    """The variables of a nest's lines that addresses use."""

    @property
    def loops(self) -> Loops:
        """Return the loops around the lines."""
        ...

    @property
    def prologue(self) -> list[str]:
        """Return the lines before all loops."""
        ...

    @property
    def outer_lines(self) -> list[str]:
        """Return the lines before a row."""
        ...

    def hoist(self, text: str, steps: Sequence[int], number: int) -> str:
        """Write a value at the depth at which its index varies, and return its name."""
        ...


@frozen
class Address:
    """The address of an element of a nest: a pointer, an offset, and a stride for each axis."""

    pointer: str
    offset: str
    strides: Steps


@define(eq=False)
class Addresses:
    """The addresses of one loop nest.  ``over`` replaces the addresses of members that are already in memory."""

    task: Task
    space: Space
    over: Mapping[Node, Address]

    def lies(self, x: Node) -> bool:
        """Return whether a value is read from memory."""
        root = source(x)
        return root.op != "constant" and root not in self.task.schedule.grouping.free

    def address_of(self, x: Node, m: Map) -> Address:
        """Return the address of an operand with a map; a node that is not a member is read from its storage."""
        root = source(x)
        if root in self.over:
            given = self.over[root]
            return Address(given.pointer, given.offset, given.strides)  # members are read element by element
        offset, steps = strides(x, m, self.space.sides)
        pointer, rest = self.task.part(root, offset)
        return Address(pointer, str(rest) if rest else "", steps)

    def target(self, node: Node) -> Address:
        """Return the address of an output."""
        _, steps = own_strides(self.task.schedule.spread(node), self.space.maps[node], self.space.sides)
        return Address(self.task.storage(node), "", steps)

    def steps(self, outs: Sequence[Node]) -> list[Steps]:
        """Return the strides of everything that is read or written."""
        rows = [self.target(node).strides for node in outs]
        for node, m in self.space.maps.items():
            if node in self.over:
                rows.append(self.over[node].strides)
                continue
            rows += self.own_steps(node)
            for position in values(node):
                x = node.inputs[position]
                inner = self.space.inner.get(node) or operand(node, position, m)
                if self.lies(x) and (source(x) not in self.space.maps or source(x) in self.over):
                    rows.append(self.address_of(x, inner).strides)
        return rows

    def own_steps(self, node: Node) -> list[Steps]:
        """Return the axes along which a node itself varies, and its strides."""
        m, nest = self.space.maps[node], self.space.sides
        if node.op == "iota":
            return [tuple(int(axis == m[node.attrs["axis"]]) for axis in range(len(nest)))]
        if node.op == "random_bits":
            return [own_strides(node, m, nest)[1]]
        if node.op == "gather":
            whole = own_strides(node, m, nest)[1]
            first = tuple(int(bool(m) and axis == m[0]) for axis in range(len(nest)))
            return [first, tuple(0 if stride else step for stride, step in zip(first, whole, strict=True))]
        return [self._take_strides(node)] if node.op == "take" else []

    def _take_strides(self, node: Node) -> Steps:
        """Return the strides of a ``take`` along the axes that are not indexed."""
        (x, indices), axis, m = node.inputs, node.attrs["axis"], self.space.maps[node]
        count = len(indices.shape)
        steps = [0] * len(self.space.sides)
        kept = (*m[:axis], None, *m[axis + count :])
        for place, stride in zip(kept, require_layout(x).strides, strict=True):
            if place is not None:
                steps[place] += stride
        return tuple(steps)

    # -- values that are not expressions of their operands -------------------------------------------------------------
    def value(self, node: Node, nest: NestLines, number: int) -> Value | None:
        """Return how a node is read or generated, or None if it is an expression."""
        kinds = {"iota": self._iota, "gather": self._gather, "take": self._take, "random_bits": self._bits}
        return kinds[node.op](node, nest, number) if node.op in kinds else None

    def _iota(self, node: Node, nest: NestLines, number: int) -> Value:
        (steps,) = self.own_steps(node)
        return lambda operands: f"{SHORT[node.dtype]}({nest.loops.index(steps)})"

    def _gather(self, node: Node, nest: NestLines, number: int) -> Value:
        block = self.task.argument("input", node.attrs["input"], node.dtype)
        rows = self.task.argument("rows", 0, "int32")
        first, rest = self.own_steps(node)
        width, test = prod(node.shape[1:]), " != 0" if node.dtype == "bool" else ""
        if width == 1 and any(first):
            return self._copy_elements(node, nest, first, f"{block}[i8({rows}[{{}}])]", test)
        row = nest.hoist(f"i8({rows}[{nest.loops.index(first)}])", first, number)
        step = nest.loops.index(rest)
        index = f"{row} * {width}" + (f" + {step}" if step != "0" else "") if width != 1 else row
        return lambda operands: f"{block}[{index}]{test}"

    def _copy_elements(self, node: Node, nest: NestLines, first: Steps, element: str, test: str) -> Value:
        """Copy single elements to scratch before all loops, which LLVM could not vectorise without gathering."""
        k = next(k for k, loop in enumerate(nest.loops.axes) if first[loop[-1]])
        room, line = self.task.room(node.shape[0], node.dtype), f"for v{k} in range({', '.join(nest.loops.range(k))}):"
        nest.prologue.extend([line, f"    {room}[v{k}] = {element.format(f'v{k}')}"])
        return lambda operands: f"{room}[v{k}]{test}"

    def _take(self, node: Node, nest: NestLines, number: int) -> Value:
        x, axis = node.inputs[0], node.attrs["axis"]
        layout, fault = require_layout(x), self.task.argument("fault", 0, "int64")
        pointer, steps = self.task.storage(source(x)), nest.loops.index(self._take_strides(node))
        offset = f" + {layout.offset}" if layout.offset else ""
        test = " != 0" if node.dtype == "bool" else ""

        def text(operands: Sequence[str]) -> str:
            place = f"check_index(i8({operands[0]}), i8({x.shape[axis]}), {fault})"
            return f"{pointer}[{place} * {layout.strides[axis]}{offset} + {steps}]{test}"

        return text

    def _bits(self, node: Node, nest: NestLines, number: int) -> Value:
        key, stream = source(node.inputs[0]), node.attrs["stream"]
        base = require_layout(node.inputs[0])
        words = self.task.storage(key)
        keys = f"{words}[{base.offset}], {words}[{base.offset + base.strides[0]}]"
        steps, width = own_strides(node, self.space.maps[node], self.space.sides)[1], prod(node.shape[1:])
        full = self.space.maps[node] == tuple(range(len(self.space.sides)))
        row = prod(self.space.sides[loop] for loop in nest.loops.axes[-1]) if nest.loops.axes else 1
        if not full or row < 16 or nest.loops.split != len(nest.loops.axes) - 1:
            return lambda x: f"word(i8({x[1]}) * {width} + {nest.loops.index(steps)}, {stream}, {x[0]}, {x[2]}, {keys})"
        return self._row_of_bits(nest, steps, width, f"{stream}, {{0}}, {{2}}, {keys}", row)

    def _row_of_bits(self, nest: NestLines, steps: Steps, width: int, rest: str, row: int) -> Value:
        """Generate the random blocks of one row into scratch, and read from there."""
        words, inner = self.task.room(row + 8, "uint32"), len(nest.loops.axes) - 1
        outer = nest.loops.index([0 if axis in nest.loops.axes[-1] else step for axis, step in enumerate(steps)])
        lo, hi = nest.loops.range(inner)

        def text(x: Sequence[str]) -> str:
            begin, start = self.task.variable(), self.task.variable()
            nest.outer_lines.append(f"{begin} = i8({x[1]}) * {width} + {outer}")
            nest.outer_lines.append(f"{start} = ({begin} + {lo}) >> 2")
            nest.outer_lines.append(f"bits({words}, {start}, ({begin} + {hi} + 3) >> 2, {rest.format(*x)})")
            return f"{words}[{begin} - 4 * {start} + v{inner}]"

        return text
