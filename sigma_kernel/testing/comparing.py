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
from math import prod
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Backend
from sigma_kernel.graph.meaning import MEANINGS
from sigma_kernel.graph.namespace import Namespace, numpy_namespace
from sigma_kernel.graph.node import ALIGNMENT, BYTES
from sigma_kernel.testing.graphs import ROWS, Case
from sigma_kernel.testing.null import NullBackend

Found = dict[str, np.ndarray]
UNITS = 4  # in the last place, by which each result moves
TIMES, FLOOR = 16.0, 64  # what is forgiven: of what moving does, and units in the last place
WINDOWS = ("convolution", "convolution_input", "convolution_kernel", "sum_pool", "sum_unpool", "pool_scatter")
ADDING = {"sum", "matmul", "scatter_add", *WINDOWS}
POINTWISE = {"add", "sub", "mul", "div", "pow", "mod", "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh",
             "erf"}  # fmt: skip


@define(eq=False)
class Moved(NullBackend):
    """The reference with errors of rounding made larger."""

    chance: np.random.Generator
    namespace: Namespace = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the meanings."""
        own = {name: partial(self._moved, name in ADDING, MEANINGS[name]) for name in (*ADDING, *POINTWISE)}
        self.namespace = evolve(numpy_namespace(), own=own)

    def _moved(self, adds: bool, run: Callable[..., Any], ns: Namespace, *operands: Any, **attrs: Any) -> Any:
        found = np.asarray(run(ns, *operands, **attrs))
        if found.dtype.kind != "f":
            return found
        sizes = run(ns, *map(np.abs, operands), **attrs) if adds else np.abs(found)
        unit = UNITS * np.finfo(found.dtype).eps
        return (found + sizes * unit * self.chance.uniform(-1, 1, found.shape)).astype(found.dtype)


def outcome(backend: Backend, case: Case) -> Found:
    """Return all that a case leaves behind on a backend, by name; new memory holds NaN, not what others computed."""
    sizes = [x.nbytes + more for x in case.arrays.values() for more in (0, ALIGNMENT)]
    sizes += [prod(x.shape) * BYTES[x.dtype] + more for x in case.step.graph.outputs for more in (0, ALIGNMENT)]
    spoilt = [np.full(size, 255, np.uint8) for size in sizes for _ in range(8)]
    del spoilt
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
    first = step.graph.inputs[len(step.state)].shape  # of data, or of the rate
    rows = np.random.default_rng(case.seed).integers(0, ROWS, (case.steps, (*first, 0)[0])).astype(np.int32)
    live = {name: case.arrays[name] for name in step.steer}
    for begin, end in [(0, 1), (1, case.steps)][: case.steps]:
        burst = program.run(state, block, rows[begin:end], live, end - begin)
        state = burst.state
        found |= {f"{name} from step {begin}": values for name, values in burst.ring.items()}
    return found | {name: backend.to_host(value) for name, value in state.items()}


@frozen
class Difference:
    """What differs, and by how much: names with the largest distance in units of what is allowed.

    ``compared`` counts the elements that may differ by a hundredth of their array's largest at most.
    """

    wrong: Mapping[str, float]
    compared: int
    elements: int


def compare(backends: Sequence[Backend], case: Case) -> Difference:
    """Return in what backends differ from the reference; a first doubt is looked at with more rounding."""
    made = {str(k): outcome(backend, case) for k, backend in enumerate(backends)}
    wanted = outcome(NullBackend(), case)  # last, so that nobody finds its results in memory that was freed
    for draws in (3, 30):
        allowed = _allowed(case, wanted, draws)
        wrong = {f"{name} on backend {k}": worst for k, found in made.items()
                 for name in wanted if (worst := _worst(found[name], wanted[name], allowed[name])) > 1}  # fmt: skip
        if not wrong:
            break
    compared = sum(int(np.sum(x <= _size(wanted[name], 0.01))) for name, x in allowed.items())
    return Difference(wrong, compared, sum(x.size for x in wanted.values()))


def _allowed(case: Case, wanted: Found, draws: int) -> Found:
    """Return how far each element may lie away."""
    allowed = {name: np.zeros(x.shape) for name, x in wanted.items()}
    with np.errstate(all="ignore"):
        for draw in range(draws):
            for name, x in outcome(Moved(np.random.default_rng((case.seed, draw))), case).items():
                distance = np.abs(x.astype(float) - wanted[name].astype(float))
                allowed[name] = np.maximum(allowed[name], np.where(np.isfinite(distance), distance, np.inf))
        return {name: TIMES * x + _size(wanted[name]) for name, x in allowed.items()}


def _size(x: np.ndarray, unit: float | None = None) -> float:
    """Return so many times the largest element; units in the last place of floats where no number is given."""
    if unit is None:
        unit = FLOOR * float(np.finfo(x.dtype).eps) if x.dtype.kind == "f" else 0.0
    return unit * float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))) + unit * 1e-20


def _worst(found: np.ndarray, wanted: np.ndarray, allowed: np.ndarray) -> float:
    """Return the largest distance of a result, in units of what is allowed; infinity for another dtype or shape."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return np.inf
    known = np.isfinite(allowed) & np.isfinite(wanted)
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(float) - wanted.astype(float)) / np.maximum(allowed, 1e-300)
    return float(np.max(np.nan_to_num(distance[known], nan=np.inf, posinf=np.inf), initial=0.0))
