"""Choose the loops of a nest, and find at which of them each value varies.

Axes that all addresses step through evenly become one loop.  Reductions need several passes over a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from attrs import define, field, frozen

from sigma_backend_numba.emit.addresses import Address, Addresses
from sigma_backend_numba.lower.layout import source
from sigma_backend_numba.plan.axis_maps import identity, operand, values
from sigma_backend_numba.plan.groups import Space
from sigma_kernel.graph import Node

Range = tuple[str, str]
UNROLLED = 256  # elements of a space that LLVM may write out, if it knows their number: faster by up to a tenth
ROW = range(9, 64)  # elements of a row that is longer than a vector, and that LLVM may write out


@frozen
class Fold:
    """A reduction into memory: the reduced value, and the location of its sums; of those of all blocks, if any."""

    core: Node
    value: Node
    to: Address
    total: Address | None = None


@define(eq=False)
class NestLoops:
    """The loops over a space, and the depth and the pass of each value.  ``ranges`` limits some axes."""

    space: Space
    addresses: Addresses
    outs: Sequence[Node]
    ranges: Mapping[int, Range]
    folds: Sequence[Fold]
    axes: list[list[int]] = field(init=False)  # those of each loop
    split: int = field(init=False)  # the number of loops around a row
    passes: int = field(init=False)
    levels: dict[Node, int] = field(factory=dict, init=False)
    depths: dict[Node, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """Find depths and passes."""
        self.axes = self._merge_axes()
        row, ends = self.space.row, [loop[-1] for loop in self.axes]
        self.split = max(len(self.axes) - 1, 0) if row is None else sum(end < row for end in ends)
        for node in self.space.maps:
            if node not in self.addresses.over:
                self.levels[node] = self._level(node)
                self.depths[node] = self._depth(node)
        self.passes = 1 + max([0, *(level - (node in self.space.inner) for node, level in self.levels.items())])

    def _merge_axes(self) -> list[list[int]]:
        """Return the loops, merging axes that every address steps through evenly."""
        rank, sides = len(self.space.sides), self.space.sides
        steps = self.addresses.steps(self.outs)
        for fold in self.folds:
            steps.append(fold.to.strides)
            if self.addresses.lies(fold.value) and source(fold.value) not in self.space.maps:
                steps.append(self.addresses.address_of(fold.value, identity(fold.value.shape)).strides)
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

    def axes_of_folds(self) -> list[int]:
        """Return the loops over numbers that are reduced to one: they are the same for all reductions of a nest."""
        if self.space.inner:
            return [*range(self.split, len(self.axes))]
        return [k for k in range(len(self.axes)) if self.folds and not self.follows(k, self.folds[0].to)]

    def follows(self, k: int, address: Address) -> bool:
        """Return whether an address moves along a loop."""
        return any(address.strides[axis] for axis in self.axes[k])

    def rounds(self, k: int) -> int:
        """Return the number of rounds of a loop."""
        return prod(self.space.sides[axis] for axis in self.axes[k])

    def _level(self, node: Node) -> int:
        """Return the first pass in which a value is available."""
        level = max([self.levels.get(source(x), 0) for x in node.inputs], default=0)
        return level + (node in self.space.inner)

    def _depth(self, node: Node) -> int:
        """Return the number of loops inside which a value varies."""
        if node in self.space.inner:
            return self.split
        m = self.space.maps[node]
        depths = [self.depth_of(step) for step in self.addresses.own_steps(node)]
        for position in values(node):
            x = node.inputs[position]
            if source(x) in self.depths:
                depths.append(self.depths[source(x)])
            elif self.addresses.lies(x):
                depths.append(self.depth_of(self.addresses.address_of(x, operand(node, position, m)).strides))
        return max(depths, default=0)

    def depth_of(self, strides: Sequence[int]) -> int:
        """Return the number of loops inside which an address with these strides varies."""
        axes = [axis for axis, stride in enumerate(strides) if stride]
        return max((1 + k for k, loop in enumerate(self.axes) for axis in axes if axis in loop), default=0)

    def index(self, strides: Sequence[int], offset: str = "") -> str:
        """Return the text of an index."""
        terms = [offset] if offset else []
        for k, loop in enumerate(self.axes):
            stride = strides[loop[-1]] if strides else 0
            if stride:
                terms.append(f"v{k}" if stride == 1 else f"v{k} * {stride}")
        return " + ".join(terms) or "0"

    def element_at(self, address: Address) -> str:
        """Return the text of an element."""
        return f"{address.pointer}[{self.index(address.strides, address.offset)}]"

    def row_index(self) -> str:
        """Return the text of the index within a row."""
        row = self.space.row or 0
        sides = self.space.sides
        return self.index([prod(sides[a + 1 :]) if a >= row else 0 for a in range(len(sides))])

    def range(self, k: int) -> Range:
        """Return the bounds of a loop."""
        first, *rest = self.axes[k]
        width = prod(self.space.sides[axis] for axis in rest)
        lo, hi = self.ranges.get(first) or ("0", self._side(k))
        if hi == "hi" and self._is_outer(k):
            self.addresses.task.leave_end_open()
        return (lo, hi) if width == 1 else (f"({lo}) * {width}", f"({hi}) * {width}")

    def _side(self, k: int) -> str:
        """Return the side of the first axis of a loop: an argument for the outermost loop around others."""
        side = self.space.sides[self.axes[k][0]]
        return self.addresses.task.number(side) if self._is_outer(k) else str(side)

    def _is_outer(self, k: int) -> bool:
        """Return whether a loop is the outermost one around others, and they have many rounds together."""
        return k == 0 and len(self.axes) > 1 and prod(self.space.sides) > UNROLLED

    def is_row(self, k: int) -> bool:
        """Return whether a loop is the innermost one of a large space, and vectors must be parts of its rows.

        LLVM would write such a short row out, and take the elements of each vector from as many rows.
        """
        return k == len(self.axes) - 1 > 0 and self.rounds(k) in ROW and prod(self.space.sides) >= UNROLLED

    def header(self, k: int) -> str:
        """Return the first line of a loop."""
        return f"for v{k} in range({', '.join(self.range(k))}):"
