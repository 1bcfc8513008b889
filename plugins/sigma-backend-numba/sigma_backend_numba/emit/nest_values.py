"""Write the lines of a nest that compute and load values, each at the depth at which it varies."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, isfinite, prod

from attrs import define, field

from sigma_backend_numba.emit.addresses import Address, Addresses
from sigma_backend_numba.emit.nest_loops import NestLoops
from sigma_backend_numba.emit.task import Task
from sigma_backend_numba.lower.layout import source
from sigma_backend_numba.plan.axis_maps import operand, values
from sigma_backend_numba.plan.groups import Space
from sigma_backend_numba.scalars import FLOATING, literal, text
from sigma_kernel.graph import Node, topological_order

ROUNDING = 1e-6  # relative error of a constant that was computed from the number of rows


def follows_from(value: float, rows: int) -> bool:
    """Return whether a constant may be computed from the number of rows.

    It is one over them, or a multiple n of them, or n / (n - 1), as in an unbiased variance.
    """
    if rows < 2 or not isfinite(value) or value in (0, 1):
        return False
    counts = (n for n in (value, value / (value - 1)) if n > 1)
    return isclose(1 / value, rows, rel_tol=ROUNDING) or any(
        isclose(n, round(n / rows) * rows, rel_tol=ROUNDING) for n in counts
    )


@define(eq=False)
class NestValues:
    """The lines that compute and load values, each at the depth at which it varies, and the names of the values."""

    task: Task
    space: Space
    addresses: Addresses
    loops: NestLoops
    names: dict[tuple[object, ...], str] = field(factory=dict, init=False)
    saved: dict[Node, str] = field(factory=dict, init=False)  # rows of scratch
    before: list[list[str]] = field(init=False)  # by depth, up to a row
    between: list[list[str]] = field(init=False)  # the passes over a row
    within: list[list[list[str]]] = field(init=False)  # a pass, by depth

    def __attrs_post_init__(self) -> None:
        """Begin without lines."""
        split, passes, depth = self.loops.split, self.loops.passes, len(self.loops.axes) + 1
        self.before = [[] for _ in range(split + 1)]
        self.between = [[] for _ in range(passes + 1)]
        self.within = [[[] for _ in range(depth)] for _ in range(passes)]

    def place(self, depth: int, level: int, number: int) -> list[str]:
        """Return the list of lines for a depth and a pass."""
        if depth > self.loops.split:
            return self.within[number][depth]
        return self.between[level] if level else self.before[depth]

    @property
    def prologue(self) -> list[str]:
        """Return the lines before all loops."""
        return self.before[0]

    @property
    def outer_lines(self) -> list[str]:
        """Return the lines before a row."""
        return self.before[self.loops.split]

    def save(self, node: Node) -> None:
        """Keep an expensive value in a row of scratch between passes."""
        if node not in self.saved:
            self.saved[node] = self.task.room(prod(self.space.sides[self.space.row or 0 :]), node.dtype)

    def compute(self, node: Node, number: int) -> None:
        """Write a member that is not a reduction."""
        depth, level = self.loops.depths[node], self.loops.levels[node]
        operands = [self._operand(node, position, number) for position in values(node)]
        lines = self.place(depth, level, number)
        value = self.addresses.value(node, self, number)
        name = self.task.variable()
        lines.append(f"{name} = {text(node, operands) if value is None else value(operands)}")
        self.names[node, number if depth > self.loops.split else -1] = name
        if node in self.saved and number == level:
            stored = f"i1({name})" if node.dtype == "bool" else name
            lines.append(f"{self.saved[node]}[{self.loops.row_index()}] = {stored}")

    def _operand(self, node: Node, position: int, number: int) -> str:
        m = self.space.inner[node] if node in self.space.inner else operand(node, position, self.space.maps[node])
        return self.read(node.inputs[position], m, number)

    def read(self, x: Node, m: tuple[int | None, ...], number: int) -> str:
        """Return the name or literal of a value in a pass; write its load first if there is none."""
        root = source(x)
        if root.op == "constant":
            return self._constant(root)
        if root in self.task.schedule.grouping.free:
            return self._free(root)
        for key in ((root, number), (root, -1)):
            if root in self.loops.depths and key in self.names:
                return self.names[key]
        if root in self.saved:
            return self.load_saved(root, number)
        address = self.addresses.address_of(x, m)
        return self._load(root, address, self.loops.depth_of(address.strides), number)

    def _constant(self, root: Node) -> str:
        """Return the literal of a constant, or an argument if it follows from the number of rows."""
        value, rows = root.attrs["value"], self.task.schedule.form.rows
        counts = root.dtype in FLOATING and follows_from(value, rows)
        return self.task.number(float(value), root.dtype) if counts else literal(value, root.dtype)

    def load_saved(self, root: Node, number: int) -> str:
        """Write the load of a value from its row of scratch, and return its name."""
        return self._load(root, Address(self.saved[root], self.loops.row_index(), ()), len(self.loops.axes), number)

    def _load(self, root: Node, address: Address, depth: int, number: int) -> str:
        key = ("load", address, number if depth > self.loops.split else -1)
        if key not in self.names:
            name = self.names[key] = self.task.variable()
            read = self.loops.element_at(address) + (" != 0" if root.dtype == "bool" else "")
            self.place(depth, 0, number).append(f"{name} = {read}")
        return self.names[key]

    def hoist(self, text: str, steps: Sequence[int], number: int) -> str:
        """Write a value at the depth at which its index varies, and return its name."""
        depth = self.loops.depth_of(steps)
        key = ("text", text, number if depth > self.loops.split else -1)
        if key not in self.names:
            name = self.names[key] = self.task.variable()
            self.place(depth, 0, number).append(f"{name} = {text}")
        return self.names[key]

    def _free(self, root: Node) -> str:
        """Write a free scalar and its free operands before all loops."""
        free = self.task.schedule.grouping.free
        for node in topological_order((root,)) if (root, "free") not in self.names else ():
            if node in free and (node, "free") not in self.names:
                operands = [self.read(x, (None,) * len(x.shape), 0) for x in node.inputs]
                name = self.names[node, "free"] = self.task.variable()
                self.before[0].append(f"{name} = {text(node, operands)}")
        return self.names[root, "free"]
