"""Compare each op alone, on the operands of the reference, so that errors do not add up.

A fused backend has no intermediate values. It compiles graphs in which the operands of each op are separate inputs, and
its results are outputs; some ops share a graph, as compilation is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby

import numpy as np
from attrs import evolve, field, frozen

from sigma_bench.differ.engines import Engine, Values
from sigma_hooks.agreement import Difference, deviations
from sigma_hooks.reference import Reference
from sigma_kernel.contracts import Step
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.graph import Graph, Node, symbol

TOGETHER = 32  # ops per graph
FEW, MANY = (1,), range(1, 16)  # seeds of perturbed roundings: at first, and before a difference is reported


@frozen(eq=False)
class Unit:
    """An op with the nodes that hold its results; ``index`` is its place in the step."""

    index: int
    nodes: tuple[Node, ...]
    operands: tuple[Node, ...]
    graph: Graph


@frozen(eq=False)
class Chunk:
    """A graph of several ops, and the units that it computes: each turn has one unit for each of its ops."""

    graph: Graph
    turns: tuple[tuple[Unit, ...], ...]


def units(graph: Graph) -> Iterator[Unit]:
    """Yield each op of a step, and each loop with the parts of it that are read."""
    parts: dict[Node, list[Node]] = {}
    places = {node: i for i, node in enumerate(graph)}
    for node in places:
        if node.op not in ("input", "constant", "scan"):
            parts.setdefault(node.inputs[0] if node.op == "part" else node, []).append(node)
    for op, nodes in parts.items():
        operands = tuple(dict.fromkeys(x for x in op.inputs if x.op != "constant"))
        new = {x: symbol(x.shape, x.dtype) for x in operands}
        alone = evolve(op, inputs=tuple(new.get(x, x) for x in op.inputs))
        results = tuple(alone if node is op else evolve(node, inputs=(alone,)) for node in nodes)
        yield Unit(places[op], tuple(nodes), operands, Graph(tuple(new.values()), results))


def chunks(graph: Graph) -> list[Chunk]:
    """Return graphs that compute all ops of a step; ops that are equal but for their operands share a function."""
    alike: dict[Graph, list[Unit]] = {}
    for unit in units(graph):
        alike.setdefault(unit.graph, []).append(unit)
    pieces = []
    for _, group in groupby(sorted(alike.values(), key=len), key=len):
        every = list(group)
        for some in (every[i : i + TOGETHER] for i in range(0, len(every), TOGETHER)):
            graphs = [each[0].graph for each in some]
            whole = Graph(*(tuple(chain(*(getattr(g, end) for g in graphs))) for end in ("inputs", "outputs")))
            pieces.append(Chunk(whole, tuple(zip(*some, strict=True))))
    return pieces


@frozen
class OpDeviation:
    """The greatest deviation of an op's result, of the nodes with this ``index`` in the step."""

    index: int
    node: Node
    difference: Difference
    size: float  # of the greatest element of the result


@frozen(eq=False)
class Isolated:
    """Compare the ops of steps; their graphs are made once for each step, and perturbed results once for all."""

    tolerance: float
    _chunks: dict[int, tuple[Step, list[Chunk]]] = field(factory=dict, init=False)
    _noise: dict[tuple[int, float], Engine] = field(factory=dict, init=False)

    def compare_ops(self, step: Step, values: Values, backends: Sequence[Engine]) -> Iterator[list[OpDeviation]]:
        """Yield, for each backend, the deviations of all ops from their values in the reference."""
        if id(step) not in self._chunks:
            self._chunks[id(step)] = step, chunks(step.graph)
        per_backend: list[list[OpDeviation]] = [[] for _ in backends]
        for chunk in self._chunks[id(step)][1]:
            for turn in chunk.turns:
                for backend, into in zip(backends, per_backend, strict=True):
                    into.extend(self._turn(chunk.graph, turn, values, backend))
        yield from per_backend

    def _turn(self, graph: Graph, turn: Sequence[Unit], values: Values, backend: Engine) -> Iterator[OpDeviation]:
        arrays = [values[x] for unit in turn for x in unit.operands]
        nodes = [(unit.index, node) for unit in turn for node in unit.nodes]
        wanted = {str(i): values[node] for i, (_, node) in enumerate(nodes)}
        results = backend.compute_on_host(graph, arrays)
        for (_, node), result in zip(nodes, results, strict=True):
            _check(node, result)
        outputs = dict(zip(wanted, results, strict=True))
        for seeds in (FEW, MANY):
            moved = [dict(zip(wanted, self._compute_perturbed(s, backend, graph, arrays), strict=True)) for s in seeds]
            all_ = deviations(outputs, wanted, moved, self.tolerance)
            if max((difference.share for difference in all_), default=0.0) <= 1:
                break
        for difference in all_:
            index, node = nodes[int(difference.address)]
            yield OpDeviation(index, node, evolve(difference, address="its value"), magnitude(values[node]))

    def _compute_perturbed(
        self, seed: int, backend: Engine, graph: Graph, arrays: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        key = seed, backend.function_error
        if key not in self._noise:
            self._noise[key] = Engine(Reference(*key))
        return self._noise[key].compute_on_host(graph, arrays)


def magnitude(array: np.ndarray) -> float:
    """Return the absolute value of the greatest finite element."""
    sizes = np.abs(np.asarray(array, np.float64))
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def _check(node: Node, result: np.ndarray) -> None:
    if (result.shape, result.dtype.name) != (node.shape, node.dtype):
        got = f"{result.dtype}{list(result.shape)}"
        raise SigmaTrainingError(f"{node.op}: its result is {node.dtype}{list(node.shape)} (got {got}).")
