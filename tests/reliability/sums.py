"""Measure sums of as many numbers as there are: columns, rows, and both, on numpy and numba.

::

    python tests/reliability/sums.py 25

Adds 2^25 equal numbers (ones and tenths) along each axis of several layouts.  The exact sum is known, since a product
with a power of two is exact.  Errors are given in roundings, units of half the last place of the sum.  Prints one JSON
document; the exit code is 1 if a sum is off by more roundings than docs/numbers.md says, or a mean of ones is not 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from sigma_backend_numba import NumbaBackend
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend
from sigma_kernel.graph.node import Graph, symbol
from sigma_testing.backend import ROUNDINGS

BLOCK = 1 << 10  # numbers whose sum is one term of another, in float64
BACKENDS: dict[str, Backend] = {"numpy": NumpyBackend(), "numba": NumbaBackend()}


def layouts(terms: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return axes by shape: along them lie as many numbers."""
    return {(terms,): (0,), (terms, 2): (0,), (2, terms): (1,), (4, terms // 4, 2): (0, 1), (8, 2, terms // 8): (0, 2)}


def measured(terms: int) -> Iterator[dict[str, Any]]:
    """Yield the largest error of each backend for each dtype and layout, and what the mean of ones is."""
    for name, backend in BACKENDS.items():
        for dtype in ("float32", "float64"):
            for shape, axes in layouts(terms).items():
                x = symbol(shape, dtype)
                add = backend.lower(Graph((x,), (f.sum(x, axes), f.mean(x, axes))), {})
                off = {number: _off(add, np.full(shape, number, dtype), terms) for number in (1.0, 0.1)}
                kind = {"backend": name, "dtype": dtype, "shape": shape, "axes": axes}
                yield {**kind, "mean of ones": off[1.0][1], "roundings": max(off[1.0][0], off[0.1][0])}


def _off(add: Any, x: np.ndarray, terms: int) -> tuple[float, float]:
    """Return the largest error of a sum in roundings, and a mean."""
    sums, means = map(np.asarray, add(x))
    exact = terms * float(x.reshape(-1)[0])
    unit = exact * float(np.finfo(x.dtype).eps) / 2
    return float(np.abs(sums - exact).max()) / unit, float(means.reshape(-1)[0])


def main(power: int) -> int:
    """Measure sums of two to this power numbers and print the results."""
    rows = list(measured(1 << power))
    print(json.dumps(rows))
    allowed = {"float32": ROUNDINGS, "float64": ROUNDINGS + (1 << power) / BLOCK}
    return int(any(row["roundings"] > allowed[row["dtype"]] or row["mean of ones"] != 1 for row in rows))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
