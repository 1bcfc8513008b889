"""Compile a graph to a list of launches over symbolic memory.

A launch names the places of its arrays: inputs, outputs, constants, faults, and offsets in the arena of intermediate
values. A program binds them to addresses. The body of a scan is a unit as well, whose launches are repeated for each
iteration with other places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field

from sigma_backend_cupy.graphs.canonical import TILED, canonical
from sigma_backend_cupy.graphs.fusion import INLINE, Loop, group_kernels
from sigma_backend_cupy.graphs.views import StridedProduct, product
from sigma_backend_cupy.runs.places import ArrayPlace, Launch, LaunchList, size, total
from sigma_backend_cupy.runs.scans import RepeatedBody
from sigma_backend_cupy.text.kernels import Kernel, loop_kernel
from sigma_backend_cupy.text.tiles import tiles_kernel
from sigma_kernel.graph import Arena, Graph, Node


def compile_graph(graph: Graph, donate: Mapping[int, int]) -> LaunchList:
    """Compile a graph; ``donate`` maps outputs to inputs that they may overwrite."""
    return _Compiler(canonical(graph), dict(donate)).unit()


@define(eq=False)
class _Compiler:
    graph: Graph
    donate: dict[int, int]
    groups: list[Loop | Node] = field(init=False)
    order: dict[Node, int] = field(factory=dict)
    read: dict[Node, list[int]] = field(factory=dict)
    places: dict[Node, ArrayPlace] = field(factory=dict)
    constants: list[np.ndarray] = field(factory=list)
    faults: list[tuple[str, int]] = field(factory=list)
    launches: list[Launch] = field(factory=list)
    arena: Arena = field(factory=Arena)

    def unit(self) -> LaunchList:
        """Return the unit."""
        self.groups = group_kernels(self.graph)
        self._follow()
        kernels = {k: self._kernel(group) for k, group in enumerate(self.groups) if not _python(group)}
        taken = self._in_place(kernels)
        self._settle()
        for number, group in enumerate(self.groups):
            if isinstance(group, Node) and group.op == "scan":
                self._scan(group, number)
            else:
                self._launch(group, kernels.get(number))
        return LaunchList(
            self.graph.inputs, self.graph.outputs, tuple(self.launches), self.arena.size, tuple(self.constants),
            tuple(self.faults), taken,
        )  # fmt: skip

    # -- what is read where --------------------------------------------------------------------------------------------
    def _follow(self) -> None:
        """Note the kernel that computes each node, and the kernels that read it from memory."""
        for number, group in enumerate(self.groups):
            members = group.members if isinstance(group, Loop) else {group: ""}
            self.order |= dict.fromkeys(members, number)
            sources = [x for row in group.reads.values() for x, _ in row] if isinstance(group, Loop) else _bases(group)
            for x in sources:
                if x not in members:
                    self.read.setdefault(x.inputs[0] if x.op == "part" else x, []).append(number)
        self.order |= {x: self.order[x.inputs[0]] for x in self.graph if x.op == "part"}
        for x in self.graph.outputs:
            self.read.setdefault(x, []).append(len(self.groups))

    def _kernel(self, group: Loop | Node) -> Kernel | StridedProduct | None:
        if isinstance(group, Loop):
            return loop_kernel(group, dict.fromkeys(x for x in group.members if x in self.read))
        if group.op == "matmul":
            return product(group)[1]  # type: ignore[index]  # ``canonical`` copies what does not fit
        return tiles_kernel(group, group.attrs.get("splits", 1))

    def _in_place(self, kernels: Mapping[int, Any]) -> dict[int, int]:
        """Return the outputs that are computed when nothing else reads the input that they replace."""
        positions: dict[int, int] = {}
        for out, position in self.donate.items():
            node, given = self.graph.outputs[out], self.graph.inputs[position]
            order = self.order.get(node, -1)
            kernel = kernels.get(order)
            last = max(self.read.get(given, [-1]))
            alone = last < order or (last == order and isinstance(kernel, Kernel) and given in kernel.own)
            if isinstance(kernel, Kernel) and alone and (node.shape, node.dtype) == (given.shape, given.dtype):
                positions[out] = position
        return positions

    # -- memory --------------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        """Give every array in memory its place."""
        self.places |= {node: ArrayPlace("input", i) for i, node in enumerate(self.graph.inputs)}
        results = {node: ArrayPlace("output", i) for i, node in enumerate(self.graph.outputs)}
        for node in self.graph:
            if node.op == "array":
                self.places[node] = self._constant(np.asarray(node.attrs["value"].array, node.dtype))
            elif node in results:
                self.places[node] = results[node]
            elif node.op == "part":
                first, last = self.order[node], max(self.read[node.inputs[0]], default=0)
                self.places[node] = ArrayPlace("arena", 0, self.arena.place(total([size(node)]), first, last))
            elif node in self.read and node.op not in INLINE and node.op not in ("scan", "input"):
                offset = self.arena.place(total([size(node)]), self.order.get(node, 0), max(self.read[node]))
                self.places[node] = ArrayPlace("arena", 0, offset)

    def _constant(self, value: np.ndarray) -> ArrayPlace:
        self.constants.append(value)
        return ArrayPlace("constant", len(self.constants) - 1)

    def _fault(self, node: Node) -> ArrayPlace:
        self.faults.append((node.op, node.inputs[0].shape[node.attrs["axis"]]))
        return ArrayPlace("fault", len(self.faults) - 1)

    # -- launches ------------------------------------------------------------------------------------------------------
    def _launch(self, group: Loop | Node, what: Kernel | StridedProduct | None) -> None:
        if isinstance(what, Kernel):
            given = [self._fault(x.node) if x.use == "fault" else self.places[x.node] for x in what.parameters]
        else:
            assert isinstance(group, Node)
            given = [self.places[x] for x in (*_bases(group), group)]
        self.launches.append(Launch(what or group, tuple(given)))  # type: ignore[arg-type]

    def _scan(self, node: Node, number: int) -> None:
        """Repeat the launches of the body."""
        body = compile_graph(node.attrs["body"], {})
        parts = {x.attrs["index"]: self.places[x] for x in self.graph if x.op == "part" and x.inputs[0] is node}
        held = RepeatedBody(node, body, [self.places[x] for x in node.inputs], parts)
        room = self.arena.place(total([held.room]), number, number)
        spaces = {
            "constant": [self._constant(x) for x in body.constants],
            "fault": [ArrayPlace("fault", len(self.faults) + k) for k in range(len(body.faults))],
        }
        self.faults += body.faults
        self.launches += held.launches(room, spaces)


def _python(group: Loop | Node) -> bool:
    return isinstance(group, Node) and group.op not in ("matmul", *TILED)


def _bases(node: Node) -> list[Node]:
    """Return the arrays in memory that a node reads."""
    if node.op == "matmul":
        match = product(node)
        assert match is not None
        return [*match[0]]
    return [*node.inputs]
