"""Compare a backend with the reference, which runs a graph op by op without a plan, within the effect of rounding.

The effect of rounding is measured: the reference runs again with every result of an op that rounds moved at random by
a few units in the last place (Monte Carlo arithmetic: Parker, UCLA CSD-970002, 1997), sums and products by units of the
sum of the magnitudes of their terms.  How far this moves an element measures its conditioning.  An element may differ
by 16 times as much, plus 64 units in the last place of the largest element of its array.  Elements that depend on a
comparison near a tie, or are not finite, may differ by anything and are not compared; :attr:`Difference.compared`
counts the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from attrs import evolve, frozen
from drawing import ROWS, Case

from sigma_kernel.contracts import Backend, LoopProgram
from sigma_kernel.graph import dtypes, ops
from sigma_kernel.graph.meaning import MEANINGS
from sigma_kernel.graph.namespace import Namespace, numpy_namespace
from sigma_kernel.graph.node import ALIGNMENT, BYTES
from sigma_testing.null import NullBackend

UNITS = 4  # units in the last place by which each result moves
TIMES = 16.0  # tolerance, relative to the effect of moving
LAST = {"float32": 64 * 2.0**-23, "float64": 64 * 2.0**-52}  # tolerance, relative to the largest element
WINDOWS = ("convolution", "convolution_input", "convolution_kernel", "sum_pool", "sum_unpool", "pool_scatter")
ADDING = {"sum", "matmul", "scatter_add", *WINDOWS}
TYING = ("equal",)
ROUNDING = {
    row.name for row in ops.elementwise()
    if row.expansion is None and row.rounding != "exact" and row.dtype in (dtypes.number, dtypes.floating)
}  # fmt: skip


class Moved(NullBackend):
    """The reference with larger rounding errors."""

    def __init__(self, chance: np.random.Generator) -> None:
        own = {name: partial(_moved, chance, name in ADDING, MEANINGS[name]) for name in (*ADDING, *ROUNDING)}
        own |= {name: partial(_tied, chance, MEANINGS[name]) for name in TYING}
        self.namespace = evolve(numpy_namespace(), own=own)


def _moved(chance: np.random.Generator, adds: bool, run: Any, ns: Namespace, *operands: Any, **attrs: Any) -> Any:
    found = np.asarray(run(ns, *operands, **attrs))
    if found.dtype.kind != "f":
        return found
    sizes = run(ns, *map(np.abs, operands), **attrs) if adds else np.abs(found)
    unit = UNITS * np.finfo(found.dtype).eps
    alike = chance.random() < 0.5  # equal operands round alike: errors of n grow by n, not by its root
    return (found + sizes * unit * chance.uniform(-1, 1, () if alike else found.shape)).astype(found.dtype)


def _tied(chance: np.random.Generator, run: Any, ns: Namespace, *operands: Any) -> Any:
    """Return whether operands are equal; of those that rounding alone may have told apart, half are at random."""
    a, b = map(np.asarray, operands)
    if a.dtype.kind != "f":
        return run(ns, a, b)
    near = np.abs(a - b) <= UNITS * np.finfo(a.dtype).eps * np.maximum(np.abs(a), np.abs(b))
    return run(ns, np.where(near & (chance.random(near.shape) < 0.5), b, a), b)


def outcome(backend: Backend, case: Case) -> dict[str, np.ndarray]:
    """Return all results of a case on a backend, by name; new memory is filled with NaN to hide stale values."""
    step, found = case.step, dict[str, np.ndarray]()
    sizes = [prod(x.shape) * BYTES[x.dtype] for x in (*step.graph.inputs, *step.graph.outputs)]
    spoilt = [np.full(size + more, 255, np.uint8) for size in sizes for more in (0, ALIGNMENT) for _ in range(8)]
    del spoilt
    call = None if case.program else backend.lower(step.graph, step.donations if case.in_place else {})
    program = LoopProgram(backend, step, call) if call else backend.compile(step, case.in_place)
    state = {name: backend.to_device(case.arrays[name]) for name in step.state}
    block = {name: backend.to_device(case.arrays[name]) for name in step.data}
    first = step.graph.inputs[len(step.state)].shape  # of data, or of the rate
    rows = np.random.default_rng(case.seed).integers(0, ROWS, (case.steps, (*first, 0)[0])).astype(np.int32)
    live = {name: case.arrays[name] for name in step.steer}
    for begin, end in [(0, 1), (1, case.steps)][: case.steps]:
        state = (burst := program.run(state, block, rows[begin:end], live, end - begin)).state
        found |= {f"{name} from step {begin}": values for name, values in burst.ring.items()}
    return found | {name: backend.to_host(value) for name, value in state.items()}


@frozen
class Difference:
    """The differences: names with the largest distance, relative to the tolerance.

    ``compared`` counts the elements whose tolerance is at most a hundredth of their array's largest element.
    """

    wrong: Mapping[str, float]
    compared: int
    elements: int


def compare(backends: Sequence[Backend], case: Case) -> Difference:
    """Return where backends differ from the reference; differences are checked again with more samples of rounding."""
    made = {str(k): outcome(backend, case) for k, backend in enumerate(backends)}
    wanted = outcome(NullBackend(), case)  # last, so that no backend finds its results in freed memory
    for draws in (3, 30):
        allowed = _allowed(case, wanted, draws)
        wrong = {f"{name} on backend {k}": worst for k, found in made.items()
                 for name in wanted if (worst := _worst(found[name], wanted[name], allowed[name])) > 1}  # fmt: skip
        if not wrong:
            break
    compared = sum(int(np.sum(x <= 0.01 * _size(wanted[name]) + 1e-30)) for name, x in allowed.items())
    return Difference(wrong, compared, sum(x.size for x in wanted.values()))


def _allowed(case: Case, wanted: Mapping[str, np.ndarray], draws: int) -> dict[str, np.ndarray]:
    """Return the tolerance of each element."""
    allowed = {name: np.zeros(x.shape) for name, x in wanted.items()}
    with np.errstate(all="ignore"):
        for draw in range(draws):
            for name, x in outcome(Moved(np.random.default_rng((case.seed, draw))), case).items():
                distance = np.abs(x.astype(float) - wanted[name].astype(float))
                allowed[name] = np.maximum(allowed[name], np.where(np.isfinite(distance), distance, np.inf))
    last = {name: LAST.get(str(x.dtype), 0.0) * _size(x) + 1e-30 for name, x in wanted.items()}
    return {name: TIMES * x + last[name] for name, x in allowed.items()}


def _size(x: np.ndarray) -> float:
    return float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x)))


def _worst(found: np.ndarray, wanted: np.ndarray, allowed: np.ndarray) -> float:
    """Return the largest distance of a result relative to its tolerance; infinity for another dtype or shape."""
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return np.inf
    known = np.isfinite(allowed) & np.isfinite(wanted)
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(float) - wanted.astype(float)) / np.maximum(allowed, 1e-300)
    return float(np.max(np.nan_to_num(distance[known], nan=np.inf, posinf=np.inf), initial=0.0))
