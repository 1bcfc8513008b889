"""Decide which nodes one kernel computes: loops over the same elements, and reductions over the same rows.

A kernel computes elements of arrays of one size, and may reduce them by rows: nodes of the size of the result of the
reduction are then computed once for each row, and others after it in a further phase of the same kernel. A node joins
a kernel if it reads what that computes at its own element only, and all else is computed before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain

from attrs import define, field

from sigma_backend_cupy.graphs.points import Points
from sigma_backend_cupy.graphs.reads import LEAVES, LOOPS, MOVES, PULLED, REDUCTIONS, reads
from sigma_kernel.graph import Graph, Node

Form = tuple[tuple[int, bool], ...]  # sides, and whether they are reduced
INLINE = frozenset({*MOVES, *LEAVES})
MEMBERS = 96  # nodes of a kernel, at most: more take long to compile, and spill registers
ARRAYS = 64
NEAR = 8  # kernels that a node may join without reading from them
GIVEN = frozenset({"input", "array"})


@define(eq=False)
class KernelFrame:
    """The index arithmetic of a kernel: ``whole`` is the point of an element, ``row`` that of its row."""

    elements: int
    form: Form | None
    points: Points = field(init=False)
    whole: str = field(init=False, default="e")
    row: str = field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        """Declare the variables of the loops."""
        self.points = Points("int" if self.elements < 2**30 else "wide")
        if self.form is None:
            self.points.declare("e", 0)
            self.whole = "e" if self.elements > 1 else "0"
            return
        self.points.declare("o", 0)
        self.points.declare("r", 1)
        self.row = "o" if self.rows > 1 else "0"
        kept, gone = ([side for side, r in self.form if r is which] for which in (False, True))
        outer, inner = iter(self.points.parts(self.row, kept)), iter(self.points.parts("r", gone))
        parts = [next(inner if reduced else outer) for _, reduced in self.form]
        self.whole = self.points.point(parts, [side for side, _ in self.form])

    @cached_property
    def rows(self) -> int:
        """Return the number of results of a reduction."""
        return math.prod(side for side, reduced in self.form or () if not reduced)

    @property
    def length(self) -> int:
        """Return the number of elements of a row."""
        return self.elements // self.rows


def form(shape: Sequence[int], axes: Iterable[int]) -> Form:
    """Return sides and whether they are reduced; neighbours alike are one."""
    runs: list[tuple[int, bool]] = []
    axes = set(axes)
    for axis, side in enumerate(shape):
        reduced = axis in axes
        if side != 1 and runs and runs[-1][1] is reduced:
            runs[-1] = (runs[-1][0] * side, reduced)
        elif side != 1:
            runs.append((side, reduced))
    return tuple(runs)


@define(eq=False)
class Loop:
    """A kernel of loops: its nodes, each with the point and the phase that it is computed at."""

    frame: KernelFrame
    members: dict[Node, str] = field(factory=dict)
    phases: dict[Node, int] = field(factory=dict)
    reads: dict[Node, list[tuple[Node, str]]] = field(factory=dict)

    def place(self, node: Node) -> tuple[KernelFrame, str, list[tuple[Node, str]]] | None:
        """Return the frame, the point and the reads that a node has if it joins; None if it cannot."""
        frame, count = self.frame, math.prod(node.shape)
        if node.op in REDUCTIONS:
            x, axes = node.inputs[0], node.attrs["axis"]
            wanted = form(x.shape, axes if isinstance(axes, tuple) else (axes,))
            if math.prod(x.shape) != frame.elements or frame.form not in (None, wanted):
                return None
            frame = frame if frame.form else KernelFrame(frame.elements, wanted)
            return self._fitting(frame, frame.row, list(walk_sources(x, frame.whole, frame.points)))
        if count != frame.elements and not (frame.form and count == frame.rows):
            return None
        point = frame.whole if count == frame.elements else frame.row
        return self._fitting(frame, point, list(_operands(node, point, frame.points)))

    def _fitting(
        self, frame: KernelFrame, point: str, found: list[tuple[Node, str]]
    ) -> tuple[KernelFrame, str, list[tuple[Node, str]]] | None:
        moved = frame is not self.frame
        for x, at in found:
            if x in self.members and at != (frame.whole if moved else self.members[x]):
                return None
        return frame, point, found

    def full(self, found: Sequence[tuple[Node, str]]) -> bool:
        """Return whether there is no room for one more node that reads these."""
        outside = {x for row in (*self.reads.values(), found) for x, _ in row if x not in self.members}
        return len(self.members) >= MEMBERS or len(outside) + len(self.members) > ARRAYS * 2 or len(outside) > ARRAYS

    def add(self, node: Node, frame: KernelFrame, point: str, found: list[tuple[Node, str]]) -> None:
        """Add a node, in the phase after that of the reductions that it reads."""
        if frame is not self.frame:
            self.frame, self.members = frame, dict.fromkeys(self.members, frame.whole)
        self.members[node], self.reads[node] = point, found
        before = (self.phases[x] + (x.op in REDUCTIONS) for x, _ in found if x in self.phases)
        self.phases[node] = max(before, default=0)


def _operands(node: Node, point: str, points: Points) -> Iterator[tuple[Node, str]]:
    """Yield a node's operands from other kernels, or from the same one, with the points."""
    sources: list[tuple[Node, str]] = []

    def value(indices: Node, at: str) -> str:
        sources.extend(walk_sources(indices, at, points))
        return points.name(f"?{len(sources)} {id(indices)} {at}", at)

    for read in reads(node, point, points, value):
        sources.extend(walk_sources(read.operand, read.point, points))
    yield from sources


def walk_sources(node: Node, point: str, points: Points) -> Iterator[tuple[Node, str]]:
    """Yield the nodes with storage, or members, that an element depends on."""
    if node.op in INLINE:
        yield from _operands(node, point, points)
    else:
        yield node, point


def group_kernels(graph: Graph) -> list[Loop | Node]:
    """Return the kernels of a graph in order: loops, and nodes with kernels of their own."""
    kernels: list[Loop | Node] = []
    order: dict[Node, int] = {}
    for node in _updates_last(graph):
        if node.op in INLINE or node.op in GIVEN:
            continue
        if node.op == "part":
            order[node] = order[node.inputs[0]]
        elif node.op not in LOOPS:
            order[node] = len(kernels)
            kernels.append(node)
        elif math.prod(node.shape):
            order[node] = _join(node, kernels, order)
    return kernels


def _updates_last(graph: Graph) -> list[Node]:
    """Return the nodes, those followed only by elementwise ops last: updates may then overwrite their operands."""
    heavy: set[Node] = set()
    every = [*graph]
    for node in reversed(every):
        if node in heavy or node.op not in LOOPS or node.op in (*REDUCTIONS, *PULLED):
            heavy.update((node, *node.inputs))
    return [*(x for x in every if x in heavy), *(x for x in every if x not in heavy)]


def _join(node: Node, made: list[Loop | Node], order: dict[Node, int]) -> int:
    """Add a node to the best kernel there is, or to a new one; return its number."""
    size = math.prod((node.inputs[0] if node.op in REDUCTIONS else node).shape)
    alone = Loop(KernelFrame(size, None))
    place = alone.place(node)
    assert place is not None
    last = max([0, *(order[x] for x, _ in place[2] if x in order)])
    recent = range(len(made) - 1, max(last, len(made) - NEAR), -1)
    for number in chain(range(last, min(last + 1, len(made))), recent):
        loop = made[number]
        if isinstance(loop, Loop) and (position := loop.place(node)) and not loop.full(position[2]):
            loop.add(node, *position)
            return number
    alone.add(node, *place)
    made.append(alone)
    return len(made) - 1
