"""Backends to compare, each with its compiled programs, and the reference that records every intermediate value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_hooks.reference import Reference
from sigma_kernel.contracts import Array, Backend, LoopProgram, Program, Step
from sigma_kernel.graph import Graph, Node

Values = Mapping[Node, np.ndarray]


@frozen(eq=False)
class Engine(Backend):
    """A backend that compiles each graph and each step once; both are compared by identity."""

    own: Backend
    _lowered: dict[int, tuple[Graph, Callable[..., Sequence[Array]]]] = field(factory=dict, init=False)
    _compiled: dict[int, tuple[Step, Program]] = field(factory=dict, init=False)

    @property
    def function_error(self) -> float:
        """Return the backend's."""
        return self.own.function_error

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        """Return the function of a graph, which donates nothing."""
        if id(graph) not in self._lowered:
            self._lowered[id(graph)] = graph, self.own.lower(graph, {})
        return self._lowered[id(graph)][1]

    def compile(self, step: Step, in_place: bool = True) -> Program:
        """Return the backend's program of a step."""
        if id(step) not in self._compiled:
            self._compiled[id(step)] = step, self.own.compile(step)
        return self._compiled[id(step)][1]

    def to_device(self, host: np.ndarray) -> Array:
        """Return a copy on the device."""
        return self.own.to_device(host)

    def to_host(self, array: Array) -> np.ndarray:
        """Return a copy on the host."""
        return self.own.to_host(array)

    def take(self, array: Array, rows: np.ndarray) -> Array:
        """Return rows, on the device."""
        return self.own.take(array, rows)

    def compute_on_host(self, graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs of a graph on the host."""
        return [self.to_host(x) for x in self.lower(graph, {})(*map(self.to_device, arrays))]


@frozen(eq=False)
class Tracing(Reference):
    """The reference, which notes the values of all nodes of each step that it runs, in order."""

    calls: list[tuple[Step, Values]] = field(factory=list, kw_only=True)

    def compile(self, step: Step, in_place: bool = True) -> LoopProgram:
        """Return the program of a step."""
        graph = step.graph
        nodes = tuple(node for node in dict.fromkeys((*graph.inputs, *graph)) if node.dtype != "tuple")
        run = self.lower(Graph(graph.inputs, nodes), {})

        def call(*arrays: Any) -> list[np.ndarray]:
            values = dict(zip(nodes, run(*arrays), strict=True))
            self.calls.append((step, values))
            return [values[node] for node in graph.outputs]

        return LoopProgram(self, step, call)
