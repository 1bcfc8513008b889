"""Large products without BLAS agree with NumPy's, also if they are cut, added, or do not fill a tile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from sigma_backend_numba.backend import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.emit.functions import Library, write_all
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import LoweredFunction, graph_job, step_job
from sigma_backend_numba.lower.canonical import Form
from sigma_backend_numba.lower.product_table import PANELS, Route, force_route
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, symbol


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pack the operands of every product on every processor."""
    monkeypatch.setattr(lookup, "makers", lambda: "packed")  # do not reuse cached programs of other tests
    with force_route(Route(PANELS, 8)):
        yield


def lowered(x: Any, w: Any, first: bool, second: bool) -> tuple[LoweredFunction, list[Any]]:
    """Return a product whose operands lie transposed or not, and these."""
    laid = [np.ascontiguousarray(v.T) if turned else v for v, turned in ((x, first), (w, second))]
    a, b = (symbol(v.shape, str(v.dtype)) for v in laid)
    result = (f.swap_axes(a, 0, 1) if first else a) @ (f.swap_axes(b, 0, 1) if second else b)
    return NumbaBackend().lower(Graph((a, b), (result,)), {}), laid


def operands(rows: int, columns: int, inner: int, dtype: str) -> tuple[Any, Any]:
    """Return two matrices."""
    draw = np.random.default_rng(rows)
    return draw.standard_normal((rows, inner)).astype(dtype), draw.standard_normal((inner, columns)).astype(dtype)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    ("rows", "columns", "inner"),
    [(6, 16, 1), (7, 5, 3), (11, 17, 513), (100, 64, 512), (193, 131, 70), (400, 209, 90), (320, 300, 40)],
)
def test_a_product_of_any_shape_equals_numpys(rows: int, columns: int, inner: int, first: bool, second: bool) -> None:
    dtype = "float64" if rows == 193 else "float32"
    x, w = operands(rows, columns, inner, dtype)
    function, laid = lowered(x, w, first, second)
    assert "gemm(" not in source(graph_job(function.machine.graph, {})).text
    (found,) = function(*laid)
    size = np.abs(x).astype(float) @ np.abs(w).astype(float)
    wrong = np.abs(found - x.astype(float) @ w.astype(float))
    assert np.all(wrong <= {"float32": 3e-6, "float64": 6e-15}[dtype] * size)


@pytest.mark.parametrize(("inner", "columns", "batch"), [(300, 210, 97), (97, 210, 300), (130, 64, 1100)])
def test_an_update_by_a_product_is_added_once(inner: int, columns: int, batch: int) -> None:
    draw = np.random.default_rng(0)
    values = {"p": draw.standard_normal((inner, columns)), "x": draw.standard_normal((batch, inner))}
    values |= {"g": draw.standard_normal((batch, columns))}
    nodes, rate = {name: symbol(value.shape, "float64") for name, value in values.items()}, symbol((), "float64")
    updated = nodes["p"] - rate * (f.swap_axes(nodes["x"], 0, 1) @ nodes["g"])
    step = Step(Graph((*nodes.values(), rate), (updated,)), tuple(nodes), (), ("rate",), ("p",), ())
    assert "wide" in source(step_job(step)).text.partition("put(at(to,")[2].partition("\n")[0]  # added in place
    expected = values["p"] - 0.5 * (values["x"].T @ values["g"])
    done = NumbaBackend().compile(step).run(values, {}, np.zeros(0, np.int32), {"rate": np.float64(0.5)}, 1)
    assert np.allclose(done.state["p"], expected, rtol=0, atol=1e-11)


def test_an_element_of_a_product_does_not_depend_on_the_cut() -> None:
    x, w = operands(96, 700, 700, "float32")
    whole, laid = lowered(x, w, False, False)
    assert whole.machine.needs["threads"] > 2
    (found,) = whole(*laid)
    for rows, columns in ((96, 33), (50, 300), (6, 7)):
        part, laid = lowered(x[:rows].copy(), np.ascontiguousarray(w[:, :columns]), False, False)
        assert np.array_equal(part(*laid)[0], found[:rows, :columns])


def test_non_finite_elements_do_not_spread() -> None:
    x, w = operands(30, 70, 40, "float32")
    x[3, 5], w[7, 9] = np.nan, np.inf
    function, laid = lowered(x, w, False, False)
    (found,) = function(*laid)
    assert np.array_equal(np.isnan(found), np.isnan(x @ w))
    assert np.array_equal(np.isinf(found), np.isinf(x @ w))


@pytest.mark.parametrize(("after", "pieces"), [(f.relu, 1), (f.exp, 2)])
def test_a_small_product_is_cut_if_exponentials_follow_it(after: Any, pieces: int) -> None:
    a, b = symbol((100, 128)), symbol((128, 10))
    job = graph_job(Graph((a, b), (after(a @ b),)), {})
    ((block,),) = write_all(Form(job.graph, job.frame), Library())
    assert block.chunks == pieces
