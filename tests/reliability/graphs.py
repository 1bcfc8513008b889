"""Compare random graphs on all backends with the reference, which runs them op by op without a plan.

::

    python tests/reliability/graphs.py 20000 [SEED] [BACKEND]

Runs graph after graph, from a seed on: `drawing.py` says what is drawn, and `comparing.py` what may differ.  Each runs
on numpy, and on numba with one thread and with two.  Every other graph is compiled with limits so low that small tasks
are cut into pieces, and products into blocks, like large ones.  LLVM optimises two of sixteen, because that takes as
long as everything else.  A graph that differs or fails is minimised and printed with its seed: the same command with 1
and this seed draws it again.  Prints one JSON document; the exit code is 1 if a graph differs.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from traceback import format_exc
from typing import Any
from unittest.mock import patch

import numpy as np
from attrs import evolve
from comparing import Difference, compare
from drawing import Case, drawn

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.compiler import machine_code
from sigma_backend_numba.compiler.tile_sizes import DEPTH
from sigma_backend_numba.emit import attention_layout, blocks, costs, matmul, register_tiles, task
from sigma_backend_numba.lower import batch_chunks, canonical, packing
from sigma_backend_numba.lower.product_table import BLAS, PANELS, Route
from sigma_backend_numba.plan import fusion
from sigma_backend_numpy import NumpyBackend
from sigma_kernel.contracts import Backend
from sigma_kernel.graph.node import Graph, Node, symbol

BACKENDS: dict[str, list[Backend]] = {
    "numpy": [NumpyBackend()],
    "numba": [NumbaBackend(threads=1), NumbaBackend(threads=2)],
}
LOW: tuple[tuple[Any, str, Any], ...] = (  # limits of numba, so low that a few rows are many
    (task, "PIECE", 0.01), (costs, "LESS", float("inf")), (costs, "PIECE", 0.01), (canonical, "ALL", 4),
    (canonical, "WORK", 1.0), (matmul, "WORK", 1.0), (matmul, "BLOCK", 4), (matmul, "ROWS", 6), (matmul, "LARGE", 1),
    (register_tiles, "DEPTH", dict.fromkeys(DEPTH, 16)), (register_tiles, "NEAR", 1), (matmul, "TOGETHER", 2),
    (attention_layout, "BLOCK", 8), (fusion, "LONGEST_ROW", 3), (fusion, "BESIDE", 1),
    (batch_chunks, "ROWS", 1), (batch_chunks, "CHUNK", 1.0), (packing, "STEPS", 1), (packing, "COLUMNS", 1),
    (blocks, "TERMS", 2), (blocks, "BESIDE", 2),
)  # fmt: skip


@contextmanager
def limits(seed: int) -> Iterator[None]:
    """Lower the limits for every other seed; half of these pack all products, or none.  LLVM optimises two of 16."""
    patches = [patch.object(machine_code, "SPEED", 0 if seed % 16 > 1 else 3)]
    patches += [patch.object(*low) for low in LOW] if seed % 2 else []
    found = Route(PANELS if seed % 8 == 1 else BLAS, 8)
    patches += [patch.object(matmul, "select_route", lambda *sides: found)] if seed % 4 == 1 else []
    made = f"{lookup.makers()}{[one.attribute for one in patches]}"  # so that these programs are not cached on disk
    patches += [patch.object(lookup, "makers", lambda: made)]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def told(case: Case) -> str:
    """Return a case as text."""
    how = f"as a program for {case.steps} steps" if case.program else "as a function"
    place = f", in place: {case.step.donations}" if case.in_place else ""
    return f"graph {case.seed}, {how}{place}:\n{case.step.graph}"


def tried(backends: Sequence[Backend], seed: int) -> tuple[Difference, Case | None]:
    """Compare the graph of a seed; return a smaller one if it differs."""
    backends = backends[:: 1 if seed % 2 else -1]  # the second run may find stale results of the first in memory
    with limits(seed):
        case = drawn(seed)
        found = compare(backends, case)
        return found, shrunk(backends, case) if found.wrong else None


def main(graphs: int, seed: int = 0, only: str = "") -> int:
    """Compare that many graphs and print the results."""
    if only not in ("", *BACKENDS):
        raise SystemExit(f"{only}: no backend of this name is compared here; use one of {', '.join(BACKENDS)}")
    backends = [backend for name, some in BACKENDS.items() if only in ("", name) for backend in some]
    wrong: list[int] = []
    compared = elements = 0
    began = time.process_time()
    gc.set_threshold(100_000)  # a compiler creates many objects
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"SIGMA_NUMBA_CACHE": folder}):
        for number in range(seed, seed + graphs):
            try:
                found, smaller = tried(backends, number)
            except Exception:  # a failing graph is a result, too
                print(f"graph {number} failed:\n{format_exc()}", file=sys.stderr, flush=True)
                wrong.append(number)
                continue
            compared, elements = compared + found.compared, elements + found.elements
            if smaller is not None:
                wrong.append(number)
                print(f"seed {number}: {found.wrong}\n{told(smaller)}", file=sys.stderr, flush=True)
    share = round(compared / max(elements, 1), 4)
    seconds = round(time.process_time() - began, 1)
    print(json.dumps({"graphs": graphs, "seed": seed, "different": wrong, "numbers": elements, "compared": share,
                      "seconds": seconds}))  # fmt: skip
    return int(bool(wrong))


# -- smaller cases -----------------------------------------------------------------------------------------------------
def shrunk(backends: Sequence[Backend], case: Case, tries: int = 150) -> Case:
    """Return a smaller case that also fails: fewer outputs, and computed values replaced by inputs."""
    while True:
        for smaller in _smaller(case):
            tries -= 1
            if tries < 0:
                return case
            if compare(backends, smaller).wrong:
                case = smaller
                break
        else:
            return case


def _smaller(case: Case) -> Iterator[Case]:
    """Yield possible reductions of a case, the smallest first."""
    step, graph = case.step, case.step.graph
    written, ring = graph.outputs[: len(step.writes)], graph.outputs[len(step.writes) :]
    for k in range(len(ring)) if len(ring) > 1 else ():
        yield _with(case, Graph(graph.inputs, (*written, ring[k])), ring=step.ring[k : k + 1])
    if written and ring:
        yield _with(case, Graph(graph.inputs, ring), writes=())
    if case.program and not step.data:
        yield evolve(case, program=False)
    for node in reversed([n for n in graph if n.op not in ("input", "constant", "scan") and n.dtype.startswith("f")]):
        name = f"given{len(step.state)}"
        given = symbol(node.shape, node.dtype)
        inputs = (*graph.inputs[: len(step.state)], given, *graph.inputs[len(step.state) :])
        array = np.random.default_rng(len(step.state)).normal(size=node.shape).astype(node.dtype)
        changed = _with(case, _replaced(Graph(inputs, graph.outputs), node, given), state=(*step.state, name))
        yield evolve(changed, arrays={**case.arrays, name: array})


def _with(case: Case, graph: Graph, **changes: Any) -> Case:
    return evolve(case, step=evolve(case.step, graph=graph, **changes))


def _replaced(graph: Graph, node: Node, by: Node) -> Graph:
    """Return a graph that reads another value instead of one."""
    known = {node: by}
    for other in graph:
        if other not in known:
            known[other] = evolve(other, inputs=tuple(known[x] for x in other.inputs)) if other.inputs else other
    return Graph(graph.inputs, tuple(known[x] for x in graph.outputs))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3]), *sys.argv[3:]))
