"""Small products in registers agree with NumPy's in every shape, and always sum in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_backend_numba.backend import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.emit import register_tiles
from sigma_backend_numba.emit.product_table import TILES, Route, forced
from sigma_backend_numba.emit.register_tiles import Shape, Tiles, covering, disjoint, fitting, shape
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, symbol

SIDES = [1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 17, 31, 33, 40]
EXACT = {"float32": 2e-6, "float64": 2e-15}


def product(x: Any, w: Any, first: bool, second: bool) -> Any:
    """Return a product, compiled, with operands transposed or not."""
    a, b = symbol(x.shape, str(x.dtype)), symbol(w.shape, str(w.dtype))
    result = (f.swap_axes(a, 0, 1) if first else a) @ (f.swap_axes(b, 0, 1) if second else b)
    (found,) = NumbaBackend().lower(Graph((a, b), (result,)), {})(x, w)
    return found


@settings(max_examples=50)
@given(
    st.sampled_from(SIDES), st.sampled_from(SIDES), st.sampled_from(SIDES), st.booleans(), st.booleans(),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
def test_a_small_product_of_any_shape_equals_numpys(
    rows: int, columns: int, inner: int, first: bool, second: bool, dtype: str
) -> None:
    draw = np.random.default_rng(rows * 10_000 + columns * 100 + inner)
    x, w = draw.standard_normal((rows, inner)), draw.standard_normal((inner, columns))
    x, w = x.astype(dtype), w.astype(dtype)
    laid = (np.ascontiguousarray(v.T) if turned else v for v, turned in ((x, first), (w, second)))
    found = product(*laid, first, second)
    size = np.abs(x).astype(float) @ np.abs(w).astype(float)
    assert np.all(np.abs(found - x.astype(float) @ w.astype(float)) <= EXACT[dtype] * size)


@pytest.mark.parametrize("columns", [3, 10, 15, 16, 31])
@pytest.mark.parametrize("inner", [4, 9, 130])
def test_an_update_by_a_product_adds_every_column_once(columns: int, inner: int) -> None:
    draw = np.random.default_rng(0)
    values = {"p": draw.standard_normal((inner, columns)), "x": draw.standard_normal((20, inner))}
    values |= {"g": draw.standard_normal((20, columns))}
    nodes = {name: symbol(value.shape, "float64") for name, value in values.items()}
    rate = symbol((), "float64")
    updated = nodes["p"] - rate * (f.swap_axes(nodes["x"], 0, 1) @ nodes["g"])
    step = Step(Graph((*nodes.values(), rate), (updated,)), tuple(nodes), (), ("rate",), ("p",), ())
    expected = values["p"] - 0.5 * (values["x"].T @ values["g"])
    state = {name: np.ascontiguousarray(value) for name, value in values.items()}
    done = NumbaBackend().compile(step).run(state, {}, np.zeros(0, np.int32), {"rate": np.float64(0.5)}, 1)
    assert np.allclose(done.state["p"], expected, rtol=0, atol=1e-13)


def test_an_element_of_a_product_does_not_depend_on_its_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "makers", lambda: "in tiles")  # BLAS sums in another order
    draw = np.random.default_rng(0)
    x, w = (draw.standard_normal(shape).astype("float32") for shape in ((24, 50), (50, 31)))
    with forced(Route(TILES, 1)):
        whole = product(x, w, False, False)
        for rows, columns in ((5, 31), (24, 7), (1, 1), (23, 16)):
            part = product(x[:rows].copy(), np.ascontiguousarray(w[:, :columns]), False, False)
            assert np.array_equal(part, whole[:rows, :columns])


@pytest.mark.parametrize("columns", range(1, 16))
def test_packing_covers_exactly_the_remaining_columns(columns: int) -> None:
    for parts in (disjoint(columns), covering(columns)):
        assert {place + k for place, width in parts for k in range(width)} == set(range(columns))
    assert sum(width for _, width in disjoint(columns)) == columns
    assert len(covering(columns)) <= 2
    assert len(disjoint(columns)) > 2 or covering(columns) == disjoint(columns)  # what overlaps is stored twice


def test_the_tiles_of_a_product_fit_its_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: 512)
    assert shape(100, 64) == Shape(6, 4)  # 24 registers of sums, 4 of columns, and one to broadcast
    assert shape(100, 1).vectors == 1
    assert (fitting(14, 4), fitting(8, 4), fitting(9, 2)) == (2, 4, 9)
    monkeypatch.setattr(register_tiles, "registers", lambda: 256)
    assert shape(96, 64) == Shape(6, 1)  # twelve of sixteen registers


def panels(rows: int, columns: int, inner: int, down: int, along: int, turned: bool) -> Tiles:
    """Return a product of panels; the elements of its first operand are ``down`` and ``along`` apart."""
    leading = inner if turned else columns
    return Tiles("float32", rows, columns, inner, down, along, leading, turned, columns, "f4(1.0)", False, True)


@pytest.mark.parametrize("bits", [256, 512])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("rows", [24, 50, 100, 500])
def test_tiles_prefetch_every_line_that_is_packed_next(
    rows: int, turned: bool, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: bits)
    made = panels(rows, 1000, 784, 784, 1, turned)
    beside, groups, share = made._ahead
    high, across = (made.wide, made.deep) if turned else (made.deep, made.wide)
    steps = min(share, made.deep // register_tiles.APART)
    assert f"{groups} * {share * made.leading}" in "\n".join(made.lines("100", "1000"))
    fetched = {
        (tile // groups * share + step, tile % groups * beside + line)
        for tile in range(rows // made.shape.rows)
        for step in range(steps)
        for line in range(beside)
    }
    assert {(row, line) for row in range(high) for line in range(-(-across // 16))} <= fetched


def test_rows_that_lie_apart_are_packed_for_many_panels_or_where_they_share_sets_of_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(register_tiles, "registers", lambda: 512)
    assert not panels(784, 128, 100, 1, 784, False).turns
    assert panels(1024, 128, 100, 1, 1024, False).turns
    assert panels(784, 1000, 100, 1, 784, False).turns
