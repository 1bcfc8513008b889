"""Elements of nodes as statements: loads, scalar ops and index arithmetic, each written once for a point."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from attrs import define, field, frozen

from sigma_backend_cupy.graphs.fusion import INLINE, KernelFrame, Loop
from sigma_backend_cupy.graphs.reads import PULLED, REDUCTIONS, Read, reads
from sigma_backend_cupy.graphs.scalars import CTYPES, SCALARS, literal, write_cast
from sigma_backend_cupy.text.pulls import write_pull
from sigma_kernel.graph import Node


@frozen
class ArrayPointer:
    """A pointer that a kernel takes: to a node's elements, or to where an op notes indices outside of its axis."""

    name: str
    text: str
    node: Node
    use: str  # "read", "write" or "fault"


@define(eq=False)
class Signature:
    """The arrays that a kernel takes, in the order in which its text mentions them."""

    loop: Loop
    stored: Collection[Node]
    _found: dict[tuple[Node, str], ArrayPointer] = field(factory=dict)
    _points: dict[Node, set[str]] = field(factory=dict)

    @property
    def parameters(self) -> list[ArrayPointer]:
        """Return all pointers."""
        return [*self._found.values()]

    def _name_argument(self, node: Node, use: str, text: str) -> str:
        key = node, use
        if key not in self._found:
            self._found[key] = ArrayPointer(f"p{len(self._found)}", text, node, use)
        return self._found[key].name

    def read(self, node: Node, point: str = "") -> str:
        """Return the pointer to a node that is read at a point, or anywhere."""
        self._points.setdefault(node, set()).add(point)
        return self._name_argument(node, "read", f"const {CTYPES[node.dtype]}*")

    def pointer_to(self, node: Node) -> str:
        """Return the pointer to a node that is written."""
        return self._name_argument(node, "write", f"{CTYPES[node.dtype]}*")

    def fault(self, node: Node) -> str:
        """Return the pointer to where an op notes indices."""
        return self._name_argument(node, "fault", "wide*")

    def private(self, whole: str) -> set[Node]:
        """Return the nodes that are read at this point only."""
        return {node for node, points in self._points.items() if points == {whole}}


@define(eq=False)
class ElementText:
    """Writes the elements that a phase of a kernel computes; ``reduced`` holds what earlier phases found."""

    loop: Loop
    signature: Signature
    phase: int
    reduced: Mapping[Node, str] = field(factory=dict)
    frame: KernelFrame = field(init=False)
    _values: dict[tuple[Node, str], str] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        """Begin with empty loops."""
        self.frame = KernelFrame(self.loop.frame.elements, self.loop.frame.form)

    def prepare(self, wanted: Iterable[Node]) -> None:
        """Write what these nodes depend on within the kernel, operands first."""
        needed, rest = set[Node](), [*wanted]
        while rest:
            node = rest.pop()
            if node not in needed and node in self.loop.members and not self._is_reduced(node):
                needed.add(node)
                rest.extend(x for x, _ in self.loop.reads[node])
        size = self.frame.elements
        for node in self.loop.members:
            if node in needed and node.op not in REDUCTIONS:
                self.value(node, self.frame.whole if math.prod(node.shape) == size else self.frame.row)

    def _is_reduced(self, node: Node) -> bool:
        return node.op in REDUCTIONS and self.loop.phases[node] < self.phase

    def value(self, node: Node, point: str) -> str:
        """Return the name of an element, or its number."""
        if node.op == "constant":
            return literal(node.attrs["value"], node.dtype)
        key = node, point
        if key not in self._values:
            self._values[key] = self._compute(node, point)
        return self._values[key]

    def _compute(self, node: Node, point: str) -> str:
        if node in self.loop.members and self._is_reduced(node):
            return self._variable(node, self.reduced[node], 0)
        if node.op in INLINE or node in self.loop.members:
            return self._write_element(node, point)
        array = self.signature.read(node, point)
        return self._variable(node, f"{array}[{point}]", self.frame.points.level(point))

    def _variable(self, node: Node, text: str, level: int) -> str:
        name = f"v{len(self._values)}_{len(self.frame.points.levels)}"
        self.frame.points.declare(name, level)
        self.frame.points.lines[level].append(f"const {CTYPES[node.dtype]} {name} = {text};")
        return name

    def _write_element(self, node: Node, point: str) -> str:
        points = self.frame.points
        if node.op == "iota":
            part = points.parts(point, node.shape)[node.attrs["axis"]]
            return self._variable(node, write_cast(part, "int32", node.dtype), points.level(part))
        if node.op in PULLED:
            return self._pull_element(node, point)
        operands = reads(node, point, points, lambda x, at: self._place(node, x, at))
        names = [self.value(read.operand, read.point) for read in operands]
        if node.op in ("pad", "concat"):
            return self._select_element(node, operands, names)
        if node.op in SCALARS and node.op != "stop":
            extra = [point] if node.op == "random_bits" else []
            return self._variable(node, SCALARS[node.op](node, [*names, *extra]), points.level(*names, *extra))
        return names[0]

    def _place(self, node: Node, indices: Node, point: str) -> str:
        """Return an index that ``take`` reads, within its axis."""
        side = node.inputs[0].shape[node.attrs["axis"]]
        value = self.value(indices, point)
        return self.frame.points.name(f"sg_place({value}, {side}, {self.signature.fault(node)})", value)

    def _select_element(self, node: Node, found: list[Read], names: list[str]) -> str:
        """Return the operand's element, if there is one."""
        text = literal(node.attrs["value"], node.dtype) if node.op == "pad" else names[-1]
        for read, name in reversed([*zip(found, names, strict=True)]):
            text = f"{read.when} ? {name} : {text}"
        return self._variable(node, text, self.frame.points.level(*names, *(read.when for read in found)))

    def _pull_element(self, node: Node, point: str) -> str:
        points = self.frame.points
        scatters = node.op == "scatter_add"
        first = self.value(node.inputs[0], point) if scatters else ""
        arrays = [first if scatters and not i else self.signature.read(x) for i, x in enumerate(node.inputs)]
        fault = self.signature.fault(node) if scatters else ""
        parts = points.parts(point, node.shape)
        level = points.level(point, first, *parts)
        name = f"v{len(self._values)}_{len(points.levels)}"
        points.declare(name, level)
        points.lines[level].extend(write_pull(node, point, points, arrays, name, first, fault))
        return name
