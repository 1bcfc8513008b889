"""Products that read the rows of a minibatch where they lie in the resident block, and which products do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.emit import matmul
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute import program, thread_pool
from sigma_backend_numba.execute.program import step_job
from sigma_backend_numba.lower.product_table import BLAS, PANELS, TILES, Route, force_route
from sigma_backend_numba.lower.resident import read_in_place
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.graph import Graph, ops, symbol

ROWS = 230  # of a block


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile each program anew, and share the work among three threads."""
    monkeypatch.setattr(thread_pool.POOL, "most", 3)
    monkeypatch.setattr(program, "load", lambda job, make, kernels: lookup.fresh(make))


def trained(batch: int, sample: tuple[int, ...], width: int, dtype: str = "float32") -> Step:
    """Return a step that multiplies samples by weights, whose gradient multiplies their transpose."""
    x, w, rate = symbol((batch, *sample), dtype), symbol((int(np.prod(sample)), width), dtype), symbol((), dtype)
    flat = f.reshape(x, (batch, -1))
    hidden = f.tanh(flat @ w)
    slope = f.swap_axes(flat, 0, 1) @ (hidden * (1 - hidden * hidden)) * (1 / batch)
    return Step(Graph((w, x, rate), (w - rate * slope, f.mean(hidden))), ("w",), ("x",), ("rate",), ("w",), ("loss",))


def results(step: Step, dtype: str = "float32", steps: int = 3) -> Mapping[str, np.ndarray]:
    """Return what a few steps come to, and the rows that they took."""
    draw = np.random.default_rng(0)
    w, x = step.graph.inputs[:2]
    state = {"w": (draw.standard_normal(w.shape) / w.shape[0]).astype(dtype)}
    first = state["w"].copy()  # a step updates it in place
    block = {"x": draw.standard_normal((ROWS, *x.shape[1:])).astype(dtype)}
    rows = draw.integers(0, ROWS, (steps, x.shape[0])).astype(np.int32)
    found = NumbaBackend().compile(step).run(state, block, rows, {"rate": np.array(0.1, dtype)}, steps)
    return {"w": found.state["w"], "loss": found.ring["loss"], "x": block["x"], "rows": rows, "first": first}


@pytest.mark.parametrize(
    ("batch", "sample", "width", "dtype"),
    [
        (100, (784,), 128, "float32"),
        (37, (11, 23), 70, "float32"),
        (50, (600,), 512, "float32"),
        (7, (3, 5, 2), 65, "float32"),
        (200, (96,), 200, "float32"),
        (64, (2100,), 320, "float32"),  # whose transposed rows are packed
        (250, (2100,), 320, "float32"),  # in two blocks
        (45, (70,), 50, "float64"),
        (2, (2,), 64, "float32"),
        (1, (8,), 64, "float32"),  # which are read as a column
        (8, (1,), 64, "float32"),
    ],
)
@pytest.mark.parametrize("way", [None, PANELS, TILES])
def test_products_of_rows_that_lie_anywhere_in_a_block_equal_numpys(batch, sample, width, dtype, way):
    step = trained(batch, sample, width, dtype)
    with force_route(Route(way, 8)) if way else nullcontext():
        found, text = results(step, dtype), source(step_job(step)).text
    assert ("among" in text) == (min(batch, np.prod(sample)) > 1) or way is None
    w, losses = found["first"].astype(float), []
    for rows in found["rows"]:
        x = found["x"][rows].reshape(batch, -1).astype(float)
        hidden = np.tanh(x @ w)
        losses.append(hidden.mean())
        w = w - 0.1 * (x.T @ (hidden * (1 - hidden * hidden))) / batch
    near = {"float32": 1e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(found["w"], w, rtol=0, atol=near * np.abs(w).max())
    np.testing.assert_allclose(found["loss"], losses, rtol=0, atol=near)


def test_an_update_by_a_product_of_rows_reads_those_of_its_piece():
    x, w, rate = symbol((200, 96)), symbol((200, 128)), symbol(())
    p = symbol((96, 128))
    graph = Graph((w, p, x, rate), (w - rate * (x @ p), f.sum(p)))
    step = Step(graph, ("w", "p"), ("x",), ("rate",), ("w",), ("loss",))
    draw = np.random.default_rng(0)
    state = {name: draw.standard_normal(node.shape).astype("f4") for name, node in (("w", w), ("p", p))}
    first, block = state["w"].copy(), {"x": draw.standard_normal((ROWS, 96)).astype("f4")}
    rows = draw.integers(0, ROWS, (1, 200)).astype(np.int32)
    with force_route(Route(PANELS, 8)):
        assert "among = at(a" in source(step_job(step)).text
        found = NumbaBackend().compile(step).run(state, block, rows, {"rate": np.float32(0.1)}, 1)
    wanted = first - 0.1 * (block["x"][rows[0]].astype(float) @ state["p"])
    np.testing.assert_allclose(found.state["w"], wanted, rtol=1e-4, atol=1e-5)


def inputs_in_place(make) -> bool:
    """Return whether a graph of samples and weights reads the samples in place."""
    x, w = symbol((100, 96)), symbol((96, 128))
    with force_route(Route(PANELS, 8)):
        return read_in_place(Graph((x, w), make(x, w)), [x]) == {x}


def test_only_products_of_whole_rows_read_them_in_place():
    assert inputs_in_place(lambda x, w: (x @ w,))
    assert inputs_in_place(lambda x, w: (x @ w, f.swap_axes(x, 0, 1) @ (x @ w)))
    assert not inputs_in_place(lambda x, w: (x @ w, x * 2.0))
    assert not inputs_in_place(lambda x, w: (x @ w, f.reshape(x, (96, 100))))
    assert not inputs_in_place(lambda x, w: ((x + 1.0) @ w,))
    assert not inputs_in_place(lambda x, w: (x @ f.swap_axes(x, 0, 1),))
    assert not inputs_in_place(lambda x, w: (f.swap_axes(w, 0, 1) @ f.swap_axes(x, 0, 1),))
    assert not inputs_in_place(lambda x, w: (f.reshape(x, (50, 192)) @ f.reshape(w, (192, 64)),))
    assert not inputs_in_place(lambda x, w: (f.reshape(x, (10, 10, 96)) @ w,))
    assert not inputs_in_place(lambda x, w: (x[:, :48] @ w[:48],))
    assert not inputs_in_place(lambda x, w: (x[1:] @ w,))


@pytest.mark.parametrize("width", [63, 513])
def test_narrow_and_wide_products_read_a_copy(width):
    x, w = symbol((100, 96)), symbol((96, width))
    with force_route(Route(PANELS, 8)):
        assert read_in_place(Graph((x, w), (x @ w,)), [x]) == set()


def test_blas_reads_a_copy_and_integers_are_copied():
    x, w, n = symbol((100, 96)), symbol((96, 128)), symbol((100, 96), "int32")
    with force_route(Route(BLAS, 2)):
        assert read_in_place(Graph((x, w), (x @ w,)), [x]) == set()
    with force_route(Route(PANELS, 2)):
        assert read_in_place(Graph((n, w), (ops.cast(n, dtype="float32") @ w,)), [n]) == set()


@pytest.mark.parametrize("wrong", [ROWS, -1])
def test_a_row_that_the_block_does_not_have_is_refused_before_it_is_read(wrong):
    step = trained(100, (96,), 128)
    rows = np.zeros((2, 100), np.int32)
    rows[1, 99] = wrong
    block = {"x": np.ones((ROWS, 96), "f4")}
    with force_route(Route(PANELS, 8)), pytest.raises(SigmaStateError, match="of a block of 230 rows"):
        NumbaBackend().compile(step).run({"w": np.ones((96, 128), "f4")}, block, rows, {"rate": np.float32(0.1)}, 2)


@pytest.mark.parametrize(("batch", "end"), [(100, "100 - 1"), (200, "r1 - r0 - 1")])  # cut by columns, and by rows
def test_tiles_prefetch_no_rows_behind_their_piece(batch, end):
    step = trained(batch, (784,), 128)
    with force_route(Route(PANELS, 8)):
        text = source(step_job(step)).text
    fetched = re.findall(r"fetch\(at\(left, i8\(among\[min\(i \+ \d+, (.*?)\)\]", text)
    assert {*fetched} == {end}


def test_a_product_that_the_table_gives_to_blas_late_is_computed_in_panels(monkeypatch):
    step = trained(100, (96,), 128)
    with force_route(Route(PANELS, 8)):
        wanted = results(step)
        monkeypatch.setattr(matmul, "select_route", lambda *sides: Route(BLAS, 8))
        assert "gemm(" not in source(step_job(step)).text
        assert results(step)["w"].tobytes() == wanted["w"].tobytes()
