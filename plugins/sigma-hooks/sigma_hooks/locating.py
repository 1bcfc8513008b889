"""Locate the op that is wrong: run steps with all intermediate values kept, and compare each with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from sigma_hooks.agreement import Difference, differences
from sigma_hooks.reference import Reference
from sigma_kernel.contracts import Backend, Burst, Program, Step
from sigma_kernel.graph import Graph, Node

SEEDS = (1, 2, 3)  # of the reference's perturbed roundings
MORE = range(4, 16)  # of further ones, before a difference is reported


@frozen
class Fault:
    """The first op of a step whose value differs although its operands agree."""

    node: Node
    names: tuple[str, ...]  # of the nearest inputs upstream
    difference: Difference
    order: tuple[bool, int]  # within an iteration: updates last, shards by their first row

    def __str__(self) -> str:
        operands = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.node.inputs)
        return (
            f"The first wrong op is {self.node.op}({operands}) -> {self.node.dtype}{list(self.node.shape)}, "
            f"near {', '.join(self.names) or 'no input'}: {self.difference}"
        )


@frozen(eq=False)
class Locator(Reference):
    """Compute with the reference, and collect faults of another backend."""

    own: Backend = field(kw_only=True)
    tolerance: float = field(kw_only=True)
    faults: list[Fault] = field(factory=list)

    def compile(self, step: Step, in_place: bool = True) -> Program:
        """Return the reference's program; it first examines the other backend on the same step."""
        return Examined(self, step, super().compile(step))


@frozen(eq=False)
class Examined:
    """A program of the reference that also computes every value of the step on another backend."""

    locator: Locator
    step: Step
    exact: Program
    peak_bytes: int = 0

    def run(
        self, state: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray, steer: Mapping[str, Any], n: int
    ) -> Burst:
        """Examine the step, and run it by the reference."""
        first = int(rows[0, 0]) if rows.size else 0
        self.locator.faults.extend(self._faults((not self.step.data, first), state, block, rows, steer))
        return self.exact.run(state, block, rows, steer, n)

    def _faults(self, order: tuple[bool, int], *given: Any) -> list[Fault]:
        step, nodes = observing(self.step)
        results = _ring(self.locator.own, step, *given)
        error = self.locator.own.function_error
        wanted, *moved = (_ring(Reference(seed, error), step, *given) for seed in (None, *SEEDS, *MORE))
        first = next(iter(differences(results, wanted, moved, self.locator.tolerance)), None)
        if first is None:
            return []
        node = nodes[int(first.address)]
        return [Fault(node, nearest(self.step, node), evolve(first, address="its value"), order)]


def _ring(
    backend: Backend, step: Step, state: Mapping[str, Any], block: Mapping[str, Any], rows: np.ndarray,
    steer: Mapping[str, Any],
) -> dict[str, np.ndarray]:  # fmt: skip
    placed = {name: backend.to_device(np.asarray(state[name])) for name in step.state}
    batch = {name: backend.to_device(np.asarray(block[name])) for name in step.data}
    ring = backend.compile(step, in_place=False).run(placed, batch, rows, steer, 1).ring
    return {name: values[0] for name, values in ring.items()}


def observing(step: Step) -> tuple[Step, list[Node]]:
    """Return a step that records every intermediate value of another one, by its index, and these nodes."""
    nodes = [node for node in step.graph if node.op not in ("input", "constant") and node.dtype != "tuple"]
    graph = Graph(step.graph.inputs, tuple(nodes))
    return Step(graph, step.state, step.data, step.steer, (), tuple(map(str, range(len(nodes))))), nodes


def nearest(step: Step, node: Node) -> tuple[str, ...]:
    """Return the names of the state and data inputs that are the fewest ops upstream of a value."""
    names = dict(zip(step.graph.inputs, (*step.state, *step.data), strict=False))
    level = dict.fromkeys(node.inputs)
    while level and not any(x in names for x in level):
        level = dict.fromkeys(x for above in level for x in above.inputs)
    return tuple(names[x] for x in level if x in names)
