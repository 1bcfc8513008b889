"""Measure how matrix products are computed fastest, and write the table of this width of registers.

::

    python -m sigma_backend_numba.tune [--to FILE] [--only TEXT]
    python -m sigma_backend_numba.tune --check

Each product of the table runs in every way that may be fastest, on one thread and in turns, over several right
operands; the least processor time counts, and the first way wins if it is nearly as fast.  A product is cut into as
many pieces, up to eight, as cost little more on one thread than a single one.  ``--only`` measures the entries that
contain a text anew, and keeps the others.  ``--check`` writes nothing: it prints how fast the products of dense layers
are in each way, relative to the fastest product of two matrices of 2048 x 2048.
``SIGMA_NUMBA_REGISTERS=256 OPENBLAS_CORETYPE=Haswell`` before the command measures AVX2 on a processor with AVX-512.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

from sigma_backend_numba.cache.lookup import fresh
from sigma_backend_numba.compiler.blas_library import blas
from sigma_backend_numba.compiler.processor import processor, registers
from sigma_backend_numba.execute.alignment import copy
from sigma_backend_numba.execute.machine import Machine
from sigma_backend_numba.execute.program import CompiledProgram, step_job
from sigma_backend_numba.lower.product_table import (
    BLAS,
    COLUMNS,
    FILE,
    INNER,
    PANELS,
    ROWS,
    TILES,
    WAYS,
    Route,
    entry,
    force_route,
    select_route,
)
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, symbol

TIMES, LEAST = 31, 3e-4  # how often each is measured, and for how many seconds at least
SEVERAL = 4  # right operands that take turns
CUT = 2e7  # floating-point operations of products that are worth cutting
MORE, CUTS = 1.05, 1.1  # how much longer a simpler way may take, and on one thread a product in pieces
LAYERS = ((100, 784, 1000), (100, 1000, 800), (100, 784, 128))  # batch, inputs and outputs of layers to check
LARGEST, ROUNDS = 2048, 9  # side of the product that all are compared with, and rounds of a check
Sides = tuple[int, int, int, bool]


def sides() -> Iterable[Sides]:
    """Return rows, columns and inner side of each product, and whether its second operand is transposed."""
    return product(ROWS, COLUMNS, INNER, (False, True))


def ways(rows: int, columns: int, inner: int) -> list[str]:
    """Return the ways that may be the fastest."""
    work = 2 * rows * columns * inner
    return [way for way, may in ((TILES, work <= 2e7), (PANELS, work >= 1e5), (BLAS, work >= 2e4)) if may]


def prepare_product(of: Sides, choice: Route, first: bool = False) -> Callable[[int], None]:
    """Return a function that runs a product, several times over, in the given way on one thread.

    ``first``: the first operand is transposed, too.
    """
    rows, columns, inner, turned = of
    draw, right = np.random.default_rng(0), (columns, inner) if turned else (inner, columns)
    shapes = {"x": (inner, rows) if first else (rows, inner)} | {f"w{k}": right for k in range(SEVERAL)}
    state = {name: copy(draw.standard_normal(shape, np.float32)) for name, shape in shapes.items()}
    state |= {f"y{k}": copy(np.zeros((rows, columns), np.float32)) for k in range(SEVERAL)}
    nodes = {name: symbol(value.shape, "float32") for name, value in state.items()}
    rights = [f.swap_axes(nodes[f"w{k}"], 0, 1) if turned else nodes[f"w{k}"] for k in range(SEVERAL)]
    left = f.swap_axes(nodes["x"], 0, 1) if first else nodes["x"]
    outs = tuple(left @ right for right in rights)
    step = Step(Graph(tuple(nodes.values()), outs), tuple(nodes), (), (), tuple(f"y{k}" for k in range(SEVERAL)), ())
    job = step_job(step)
    with force_route(choice):
        needs, call = fresh(job.write_program)
    program = CompiledProgram(step, Machine(job.graph, needs, call, threads=1), in_place=True)

    def run(steps: int) -> None:
        program.run(state, {}, np.zeros(0, np.int32), {}, steps)

    return run


def time_alternating(runs: Sequence[Callable[[int], None]], times: int = TIMES) -> list[float]:
    """Return the least seconds of each, which take turns."""
    for run in runs:
        run(1)  # touch all memory
    counts = [max(1, round(LEAST / max(_seconds(run, 1), 1e-7))) for run in runs]
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for k, (run, count) in enumerate(zip(runs, counts, strict=True)):
            best[k] = min(best[k], _seconds(run, count) / count / SEVERAL)
    return best


def _seconds(run: Callable[[int], None], steps: int) -> float:
    start = thread_time()
    run(steps)
    return thread_time() - start


def tune_product(of: Sides, before: str = "") -> tuple[list[Any], dict[str, float]]:
    """Return the way and the most pieces of a product, and its GFLOP/s in each way.

    The way before stays if it is nearly the fastest, so that processors whose tables differ by chance have one table.
    """
    rows, columns, inner, _ = of
    work, among = 2e-9 * rows * columns * inner, ways(rows, columns, inner)
    times = time_alternating([prepare_product(of, Route(way, 1)) for way in among]) if len(among) > 1 else [0.0]
    near = [name for name, time in zip(among, times, strict=True) if time <= MORE * min(times)]
    way = before if before in near else near[0]
    rates = {name: round(work / time, 1) for name, time in zip(among, times, strict=True) if time}
    return [way, _pieces(of, way) if work >= CUT * 1e-9 else 2 if way == BLAS else 8], rates


def _pieces(of: Sides, way: str) -> int:
    counts = (1, 2, 4, 8)
    times = time_alternating([prepare_product(of, Route(way, count)) for count in counts])
    return max(count for count, time in zip(counts, times, strict=True) if count <= 2 or time <= CUTS * times[0])


def report_rates() -> Iterable[str]:
    """Return the rates of the products of dense layers, as lines of text."""
    names, ofs = zip(*_of_layers(), strict=True)
    whole = [(LARGEST, LARGEST, LARGEST, False)] * 2
    routes = [Route(PANELS, 1), Route(BLAS, 1), *(Route(way, 1) for _ in ofs for way in WAYS)]
    every = [*((of, False) for of in whole), *(of for of in ofs for _ in WAYS)]
    times = time_alternating(
        [prepare_product(of, how, first) for (of, first), how in zip(every, routes, strict=True)], ROUNDS
    )
    rates = [2e-9 * of[0] * of[1] * of[2] / time for (of, _), time in zip(every, times, strict=True)]
    limit = max(rates[:2])
    head = f"{registers()} bits, {blas()}: {LARGEST} x {LARGEST} by {PANELS} and {BLAS}"
    yield f"{head}: {rates[0]:.0f} and {rates[1]:.0f} GFLOP/s"
    for k, (name, (of, _)) in enumerate(zip(names, ofs, strict=True)):
        own = rates[2 + k * len(WAYS) :][: len(WAYS)]
        shares = ", ".join(f"{way} {rate / limit:.0%}" for way, rate in zip(WAYS, own, strict=True))
        yield f"{name}: {shares}; the table says {select_route(*of).way}"


def _of_layers() -> Iterable[tuple[str, tuple[Sides, bool]]]:
    """Return the products of layers by name, and whether their first operand is transposed."""
    for batch, inputs, outputs in LAYERS:
        name = f"{batch} x {inputs} x {outputs}"
        yield f"{name}, forward", ((batch, outputs, inputs, False), False)
        yield f"{name}, gradient of the input", ((batch, inputs, outputs, True), False)
        yield f"{name}, gradient of the weights", ((inputs, outputs, batch, False), True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all products and write the table, or check those of dense layers."""
    parser = argparse.ArgumentParser(prog="python -m sigma_backend_numba.tune", description="Tune matrix products.")
    parser.add_argument("--to", type=Path, default=FILE, help="the file to write")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only entries that contain this text")
    parser.add_argument("--check", action="store_true", help="print rates of dense layers, and write nothing")
    given = parser.parse_args(arguments)
    if given.check:
        print("\n".join(report_rates()))
        return
    tables = json.loads(FILE.read_text("utf-8"))
    table = tables.setdefault(str(registers()), {"products": {}})
    table["measured"] = _provenance(table.get("measured", ""), not given.only)
    given.to.write_text(_text(tables), "utf-8")
    for of in sides():
        name = entry(*of)
        if given.only in name:
            before = table["products"].get(name, [""])[0]
            table["products"][name], rates = tune_product(of, before)
            print(f"{name}: {table['products'][name]}, GFLOP/s: {rates}", file=sys.stderr, flush=True)
            given.to.write_text(_text(tables), "utf-8")


def _provenance(before: str, whole: bool) -> str:
    """Return what measured the table: this processor and its BLAS, after those whose entries it may have kept."""
    core = os.environ.get("OPENBLAS_CORETYPE")
    own = f"{processor()[0]}, {blas()}" + (f" ({core})" if core else "")
    return before if before and (not whole or own in before) else "; then ".join(filter(None, (before, own)))


def _text(tables: dict[str, Any]) -> str:
    """Return the tables as JSON, with one line for each product."""
    parts = []
    for bits, table in tables.items():
        rows = (f"      {json.dumps(name)}: {json.dumps(value)}" for name, value in table["products"].items())
        head = f'    "measured": {json.dumps(table["measured"])},\n    "products": {{\n'
        parts.append(f'  "{bits}": {{\n{head}' + ",\n".join(rows) + "\n    }\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main()
