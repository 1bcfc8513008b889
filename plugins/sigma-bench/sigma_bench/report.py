"""Reports of benchmark results: JSON documents and text tables."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from sigma_bench.contest import Result
from sigma_bench.cores import cores
from sigma_bench.entry import Measured

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
COLUMNS = ("", "per iteration", "spread", "samples/s", "start-up", "compile", "memory")
REPORTED = ("name", "median_s", "spread_s", "samples_per_s", "compile_s", "peak_bytes")
KEPT = ("started_s", "unit")  # next to these, where results are saved
LIBRARIES = ("numba", "torch", "jax")


def to_entry(measured: Measured) -> dict[str, Any]:
    """Return the document's entry for one recipe; times are seconds per iteration."""
    every = (*measured.backends, *measured.peers)
    return {
        "recipe": measured.recipe,
        "contestants": [{name: getattr(result, name) for name in REPORTED} for result in every],
        "ratios": ratios(measured.backends, measured.peers),
    }


def document(every: Sequence[Measured], single: bool, on: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON document: of one recipe, or of a series."""
    results = [to_entry(measured) for measured in every]
    return (
        {"recipe": results[0]["recipe"], "machine": on, **results[0]} if single else {"machine": on, "results": results}
    )


def to_document(every: Sequence[Measured], on: Mapping[str, Any]) -> dict[str, Any]:
    """Return the complete document for a file, with the time of each round."""
    results = [to_entry(measured) for measured in every]
    for measured, result in zip(every, results, strict=True):
        for contestant, into in zip((*measured.backends, *measured.peers), result["contestants"], strict=True):
            into |= {name: getattr(contestant, name) for name in KEPT} | {"rounds_s": list(contestant.seconds)}
    return {"format": 1, "machine": on, "results": results}


def ratios(backends: Sequence[Result], peers: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return the ratio of each peer's time to each backend's."""
    return {ours.name: {theirs.name: theirs.median_s / ours.median_s for theirs in peers} for ours in backends}


# -- the machine -------------------------------------------------------------------------------------------------------
def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        **{library: release for library in LIBRARIES if (release := _version(library))},
    }


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    match = re.search(r"^model name\s*+: (.++)$", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return match[1] if match else platform.processor() or platform.machine()


# -- tables ------------------------------------------------------------------------------------------------------------
def lines(measured: Measured) -> Iterator[str]:
    """Yield the lines of a text table, and of its summary."""
    yield from table([COLUMNS, *(_row(result) for result in (*measured.backends, *measured.peers))])
    for ours, others in ratios(measured.backends, measured.peers).items():
        for theirs, ratio in others.items():
            yield f"{theirs} takes {ratio:.2f} times as long as {ours}"


def summary(every: Sequence[Measured]) -> Iterator[str]:
    """Yield the lines of a series' table: one row per network, with times per iteration and ratios."""
    first = every[0]
    names = [result.name for result in (*first.backends, *first.peers)]
    pairs = [f"{theirs.name}/{ours.name}" for ours in first.backends for theirs in first.peers]
    rows = [("", *names, *pairs)]
    for run in every:
        texts = [f"{ratio:.2f}" for others in ratios(run.backends, run.peers).values() for ratio in others.values()]
        rows.append((run.recipe, *(time(result.median_s) for result in (*run.backends, *run.peers)), *texts))
    yield from table(rows)


def growth(every: Sequence[Measured], works: Sequence[float]) -> Iterator[str]:
    """Yield the lines of a scaling table: growth of an iteration's work, and of its time."""
    rows, first = [("grows by", "work", *(result.name for result in (*every[0].backends, *every[0].peers)))], every[0]
    for run, work in zip(every, works, strict=True):
        first = run if run.recipe.endswith(" x 1") else first
        pairs = zip((*run.backends, *run.peers), (*first.backends, *first.peers), strict=True)
        rows.append((run.recipe, f"{work:.2f}", *(f"{now.median_s / then.median_s:.2f}" for now, then in pairs)))
    yield from table(rows)


def best(rates: Mapping[str, float]) -> str:
    """Return a line about the machine's roofline."""
    flops, memory = rates["float32_flops_per_s"] / 1e9, rates["memory_bytes_per_s"] / 1e9
    return f"at best: {flops:.3g} GFLOP/s in float32, {memory:.3g} GB/s of memory"


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *padded])


def _row(result: Result) -> tuple[str, ...]:
    times = (result.median_s, result.spread_s, result.started_s, result.compile_s)
    median, spread, started, compiling = map(time, times)
    memory = f"{result.peak_bytes / 1e6:.3g} MB"
    return result.name, median, spread, f"{result.samples_per_s:,.0f}", started, compiling, memory


def time(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    unit = next((unit for unit, size in UNITS.items() if seconds >= size), "us")
    return f"{seconds / UNITS[unit]:.3g} {unit}"
