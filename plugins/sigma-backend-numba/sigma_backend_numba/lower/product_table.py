"""How a matrix product is computed, and into how many pieces it may be cut: a table per register width.

``product_table.json`` holds what ``python -m sigma_backend_numba.tune`` measured.  It depends on the width of registers
alone, never on the machine, so that one type of processor always gives the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from sigma_backend_numba.compiler.processor import registers

TILES, PANELS, BLAS = "tiles", "panels", "blas"
WAYS = (TILES, PANELS, BLAS)
ROWS, COLUMNS, INNER = (1, 4, 16, 64, 256, 1024), (4, 16, 64, 256, 1024), (16, 64, 256, 1024)  # sides in the table
FILE = Path(__file__).with_name("product_table.json")
SMALL = 600_000  # floating-point operations up to which an unmeasured product is not left to BLAS


@frozen
class Route:
    """A way to compute a product, and the most pieces into which it is cut."""

    way: str
    pieces: int


_forced: ContextVar[Route | None] = ContextVar("forced", default=None)


@contextmanager
def force_route(choice: Route) -> Iterator[None]:
    """Compute all products in one way, to measure or to test it.

    The way is no part of a program's job: without a new ``cache.lookup.makers``, known programs stay as they are.
    """
    token = _forced.set(choice)
    try:
        yield
    finally:
        _forced.reset(token)


def select_route(rows: int, columns: int, inner: int, turned: bool) -> Route:
    """Return how a product is computed; ``turned``: the second operand is transposed."""
    if route := _forced.get():
        return route
    table = _tables().get(str(registers()))
    if table is None:  # no processor of this kind has been measured
        return Route(TILES if 2 * rows * columns * inner <= SMALL else BLAS, 2)
    way, pieces = table["products"][entry(rows, columns, inner, turned)]
    return Route(way, pieces)


def entry(rows: int, columns: int, inner: int, turned: bool) -> str:
    """Return the name of the entry whose sides are nearest to those of a product, as ratios."""
    sides = (_nearest(rows, ROWS), _nearest(columns, COLUMNS), _nearest(inner, INNER))
    return " x ".join(map(str, sides)) + (" transposed" if turned else "")


def _nearest(side: int, among: Sequence[int]) -> int:
    """Return the nearest number, or the larger one of two that are as near: powers of two are common."""
    return min(among, key=lambda one: (max(side / one, one / max(side, 1)), -one))


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return tables
