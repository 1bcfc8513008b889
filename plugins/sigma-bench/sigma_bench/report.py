"""What was measured, as the JSON document and as a table for people."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sigma_bench.contest import Result

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
COLUMNS = ("", "per iteration", "spread", "samples/s", "compile", "memory")


def document(recipe: str, backends: Sequence[Result], peers: Sequence[Result]) -> dict[str, Any]:
    """Return the JSON document; times are seconds per iteration."""
    return {
        "recipe": recipe,
        "machine": machine(),
        "contestants": [_contestant(result) for result in (*backends, *peers)],
        "ratios": ratios(backends, peers),
    }


def _contestant(result: Result) -> dict[str, Any]:
    names = ("name", "median_s", "spread_s", "samples_per_s", "compile_s", "peak_bytes")
    return {name: getattr(result, name) for name in names}


def ratios(backends: Sequence[Result], peers: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return how many times as long as each backend each peer takes."""
    return {ours.name: {theirs.name: theirs.median_s / ours.median_s for theirs in peers} for ours in backends}


def machine() -> dict[str, Any]:
    """Return what was measured on."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", described.read_text(), re.MULTILINE) if described.exists() else None
    return found[1] if found else platform.processor() or platform.machine()


def lines(backends: Sequence[Result], peers: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of a table for people, and of what follows from it."""
    rows = [COLUMNS, *(_row(result) for result in (*backends, *peers))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        padded = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *padded])
    for ours, others in ratios(backends, peers).items():
        for theirs, ratio in others.items():
            yield f"{theirs} takes {ratio:.2f} times as long as {ours}"


def _row(result: Result) -> tuple[str, ...]:
    times = (_time(seconds) for seconds in (result.median_s, result.spread_s, result.compile_s))
    median, spread, compiling = times
    memory = f"{result.peak_bytes / 1e6:.3g} MB"
    return result.name, median, spread, f"{result.samples_per_s:,.0f}", compiling, memory


def _time(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    unit = next((unit for unit, size in UNITS.items() if seconds >= size), "us")
    return f"{seconds / UNITS[unit]:.3g} {unit}"
