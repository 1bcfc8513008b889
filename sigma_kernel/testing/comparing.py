"""Compare a backend with the reference, which runs a graph op by op without a plan, within what rounding explains.

What rounding explains is measured: the reference runs again with every result of an op that rounds moved at random by
a few units in the last place (Monte Carlo arithmetic: Parker, UCLA CSD-970002, 1997), sums and products by units of the
sum of what they add up.  How far this moves an element says how well it is conditioned.  An element may differ by 16
times as much, and by 64 units in the last place of the largest element of its array.  What a comparison near a tie
turns over, or what is not finite, can differ by anything and is not compared; :attr:`Difference.compared` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Backend
from sigma_kernel.graph.meaning import MEANINGS, interpret
from sigma_kernel.graph.namespace import Namespace, numpy_namespace
from sigma_kernel.graph.node import Graph
from sigma_kernel.testing.graphs import Case
from sigma_kernel.testing.null import NullBackend

Found = dict[str, np.ndarray]
UNITS = 4  # in the last place, by which each result moves
TIMES, FLOOR = 16.0, 64  # what is forgiven: of what moving does, and units in the last place
ADDING = frozenset({
    "sum", "matmul", "convolution", "convolution_input", "convolution_kernel", "sum_pool", "sum_unpool", "scatter_add",
    "pool_scatter",
})  # fmt: skip
EXACT = frozenset({
    "stop", "where", "max", "argmax", "reshape", "permute", "stretch", "slice", "pad", "concat", "iota", "take", "neg",
    "maximum", "minimum", "abs", "sign", "floor", "max_pool", "pool_argmax", "pool_select", "random_bits", "scan",
    "part", "cast",
})  # fmt: skip


@define(eq=False)
class Moved(NullBackend):
    """The reference with errors of rounding made larger."""

    chance: np.random.Generator
    namespace: Namespace = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the meanings."""
        own = {name: partial(self._moved, name, run) for name, run in MEANINGS.items() if name not in EXACT}
        self.namespace = evolve(numpy_namespace(), own=own)

    def _moved(self, name: str, run: Callable[..., Any], ns: Namespace, *operands: Any, **attrs: Any) -> Any:
        found = np.asarray(run(ns, *operands, **attrs))
        if found.dtype.kind != "f":
            return found
        sizes = run(ns, *map(np.abs, operands), **attrs) if name in ADDING else np.abs(found)
        unit = UNITS * np.finfo(found.dtype).eps
        return (found + sizes * unit * self.chance.uniform(-1, 1, found.shape)).astype(found.dtype)

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        """Return a function that runs the graph op by op."""
        run = interpret(graph, self.namespace)
        return lambda *arrays: [np.array(value) for value in run(*arrays)]


def outcome(backend: Backend, case: Case) -> Found:
    """Return everything that a case leaves behind on a backend, by name."""
    return _bursts(backend, case) if case.program else _calls(backend, case)


def _calls(backend: Backend, case: Case) -> Found:
    """Call a function twice, so that what the first call leaves in memory would be seen by the second."""
    step = case.step
    call = backend.lower(step.graph, step.donations if case.in_place else {})
    named = zip((*step.state, *step.data, *step.steer), step.graph.inputs, strict=True)
    given = [case.arrays[name][: node.shape[0]] if name in step.data else case.arrays[name] for name, node in named]
    results = [call(*map(backend.to_device, given)) for _ in range(2)]
    names = [f"{name} of call {turn}" for turn in range(2) for name in (*step.writes, *step.ring)]
    return {name: backend.to_host(value) for name, value in zip(names, [*results[0], *results[1]], strict=True)}


def _bursts(backend: Backend, case: Case) -> Found:
    """Run one step by itself, and the others in one burst."""
    step, program = case.step, backend.compile(case.step, case.in_place)
    found: Found = {}
    state = {name: backend.to_device(case.arrays[name]) for name in step.state}
    block = {name: backend.to_device(case.arrays[name]) for name in step.data}
    rows = _rows(case)
    for first, last in [(0, 1), (1, case.steps)][: case.steps]:
        live = {name: case.arrays[name] for name in step.steer}
        burst = program.run(state, block, rows[first:last], live, last - first)
        state = burst.state
        found |= {f"{name} from step {first}": values for name, values in burst.ring.items()}
    return found | {name: backend.to_host(value) for name, value in state.items()}


def _rows(case: Case) -> np.ndarray:
    """Return the rows of each step's minibatch."""
    sections = case.step.graph.inputs[len(case.step.state) :][: len(case.step.data)]
    batch = sections[0].shape[0] if sections else 0
    count = min((len(case.arrays[name]) for name in case.step.data), default=1)
    return np.random.default_rng(case.seed).integers(0, count, (case.steps, batch)).astype(np.int32)


@frozen
class Difference:
    """What differs, and by how much: names with the largest distance in units of what is allowed."""

    wrong: Mapping[str, float]
    compared: int
    elements: int


def compare(backends: Sequence[Backend], case: Case) -> Difference:
    """Return in what backends differ from the reference; a first doubt is looked at with more rounding."""
    wanted = outcome(NullBackend(), case)
    made = {str(k): outcome(backend, case) for k, backend in enumerate(backends)}
    for draws in (3, 30):
        allowed = _allowed(case, wanted, draws)
        wrong = {f"{name} on backend {k}": worst for k, found in made.items()
                 for name in wanted if (worst := _worst(found[name], wanted[name], allowed[name])) > 1}  # fmt: skip
        if not wrong:
            break
    tight = sum(int(np.sum(_tight(x, wanted[name]))) for name, x in allowed.items())
    return Difference(wrong, tight, sum(x.size for x in wanted.values()))


def _allowed(case: Case, wanted: Found, draws: int) -> Found:
    """Return how far each element may lie away."""
    allowed = {name: np.zeros(x.shape) for name, x in wanted.items()}
    with np.errstate(all="ignore"):
        for draw in range(draws):
            for name, x in outcome(Moved(np.random.default_rng((case.seed, draw))), case).items():
                distance = np.abs(x.astype(float) - wanted[name].astype(float))
                allowed[name] = np.maximum(allowed[name], np.where(np.isfinite(distance), distance, np.inf))
        return {name: TIMES * x + _floor(wanted[name]) for name, x in allowed.items()}


def _floor(x: np.ndarray) -> float:
    if x.dtype.kind != "f":
        return 0.0
    return FLOOR * float(np.finfo(x.dtype).eps) * _size(x) + 1e-30


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))


def _tight(allowed: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Say of which elements a wrong value would be seen: what is allowed is little beside the array's largest."""
    return allowed <= 0.01 * _size(wanted.astype(float)) + 1e-30


def _worst(found: np.ndarray, wanted: np.ndarray, allowed: np.ndarray) -> float:
    """Return the largest distance of a result, in units of what is allowed; infinity for another dtype or shape."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return np.inf
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(float) - wanted.astype(float)) / np.maximum(allowed, 1e-300)
    known = np.isfinite(allowed) & np.isfinite(wanted)
    distance = np.where(known, np.where(np.isnan(distance), np.inf, distance), 0.0)
    return float(np.max(np.where(known & (found == wanted), 0.0, distance), initial=0.0))
