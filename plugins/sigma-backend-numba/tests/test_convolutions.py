"""Convolutions over one, two and three axes, and both gradients, agree with the reference in every geometry."""

from __future__ import annotations

import re
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.cache import lookup
from sigma_backend_numba.compiler.processor import registers
from sigma_backend_numba.emit import convolutions, shifted_products
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.emit.shifted_products import KernelSlopes, PositionRows, shape
from sigma_backend_numba.emit.windows import Windows
from sigma_backend_numba.execute.program import graph_job
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, interpret, numpy_namespace, ops, symbol

EXACT = {"float32": 3e-5, "float64": 1e-13}
PLAIN: dict[str, Any] = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def all_three(x: tuple[int, ...], w: tuple[int, ...], dtype: str, **how: Any) -> Graph:
    """Return a graph of a convolution with an epilogue, and of its two gradients."""
    samples, kernel = symbol(x, dtype), symbol(w, dtype)
    z = ops.convolution(samples, kernel, **how)
    g = symbol(z.shape, dtype)
    gradients = (
        ops.convolution_input(g, kernel, shape=x, **how),
        ops.convolution_kernel(samples, g, shape=w, **how),
    )
    return Graph((samples, kernel, g), (f.tanh(z) * 2.0, *gradients))


def drawn(graph: Graph) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(x.shape).astype(x.dtype) for x in graph.inputs]


def agree(graph: Graph, dtype: str) -> None:
    arrays = drawn(graph)
    expected = interpret(graph, numpy_namespace())(*arrays)
    for found, wanted in zip(NumbaBackend().lower(graph, {})(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=EXACT[dtype] * (1 + np.abs(wanted).max()))


@st.composite
def geometries(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Draw the shapes of samples and kernels, and how the windows lie."""
    rank = draw(st.integers(1, 3))
    each = lambda least, most: tuple(draw(st.integers(least, most)) for _ in range(rank))  # noqa: E731
    how = {"stride": each(1, 3), "dilation": each(1, 3), "padding": tuple(zip(each(0, 3), each(0, 3), strict=True))}
    sides, kernel, groups = each(1, (20, 9, 5)[rank - 1]), each(1, 4), draw(st.sampled_from([1, 1, 2, 3]))
    spans = ((k - 1) * d + 1 for k, d in zip(kernel, how["dilation"], strict=True))
    assume(all(span <= n + sum(pad) for span, n, pad in zip(spans, sides, how["padding"], strict=True)))
    channels, filters = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 3, 4, 5, 8, 20]))
    samples = (draw(st.integers(1, 3)), groups * channels, *sides)
    return samples, (groups * filters, channels, *kernel), {**how, "groups": groups}


@settings(max_examples=12, deadline=None)
@given(geometries(), st.sampled_from(["float32", "float64"]))
def test_a_convolution_of_any_geometry_and_its_gradients_equal_the_reference(
    geometry: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], dtype: str
) -> None:
    x, w, how = geometry
    agree(all_three(x, w, dtype, **how), dtype)


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(geometries())
def test_copies_of_planes_give_the_same_results_in_every_geometry(
    geometry: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
) -> None:
    x, w, how = geometry
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolutions, "ROW", -1e6)  # the more rows, the better
        patch.setattr(lookup, "makers", lambda: "copies")
        agree(all_three(x, w, "float32", **how), "float32")


@pytest.mark.parametrize("bits", [512, 256, 128], ids=["AVX-512", "AVX2", "NEON"])
@pytest.mark.parametrize(
    ("x", "w", "how"),
    [
        ((2, 6, 9, 7), (20, 6, 3, 3), PLAIN),
        ((2, 5, 9, 8), (5, 1, 3, 3), {**PLAIN, "groups": 5, "stride": (2, 3)}),
        ((2, 3, 9, 7), (40, 3, 5, 5), {**PLAIN, "padding": ((2, 2), (2, 2))}),
        ((2, 3, 9, 9), (4, 3, 1, 1), {**PLAIN, "padding": ((0, 0), (0, 0)), "stride": (2, 2)}),
    ],
)
def test_tiles_for_any_kind_of_registers_give_the_same_results(monkeypatch, bits, x, w, how) -> None:
    graph = all_three(x, w, "float32", **how)
    known = source(graph_job(graph, {})).text
    monkeypatch.setattr(shifted_products, "registers", lambda: bits)
    monkeypatch.setattr(lookup, "makers", lambda: f"registers of {bits} bits")  # no program of another kind
    assert (source(graph_job(graph, {})).text == known) == (bits == registers())
    agree(graph, "float32")


def test_the_number_of_threads_changes_no_bit() -> None:
    graph = all_three((24, 16, 12, 12), (16, 16, 3, 3), "float32", **PLAIN)
    arrays = drawn(graph)
    one, two = (NumbaBackend(threads=count).lower(graph, {})(*arrays) for count in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_infinite_elements_reach_only_the_windows_that_cover_them() -> None:
    graph = all_three((1, 1, 6, 6), (4, 1, 3, 3), "float32", **PLAIN)
    arrays = drawn(graph)
    arrays[0][0, 0, 0, 0] = np.inf
    value, _, kernel = NumbaBackend().lower(graph, {})(*arrays)
    assert np.isfinite(value[:, :, 2:, 2:]).all()
    assert not np.isfinite(kernel[:, :, :2, :2]).any()
    assert np.isfinite(kernel[:, :, 2]).all()


def test_rows_share_the_zeros_between_them() -> None:
    how = Windows(4, 8, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (8, 8), 1)
    planes = how.planes()
    assert planes.steps == (9, 1)
    assert planes.distances(how.result) == 71
    assert planes.extent == 91


def test_copies_of_planes_leave_no_zeros_between_rows_of_positions() -> None:
    how = Windows(4, 8, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (8, 8), 1)
    assert [planes.distances((8, 8)) for planes in (how.copies(), how.slope_copies())] == [64, 64]
    assert how.copies().size == 3 * 10 * 8


@pytest.mark.parametrize(("filters", "copies"), [(64, 3), (1, 1)])
def test_planes_are_copied_where_that_saves_more_than_it_takes(filters: int, copies: int) -> None:
    graph = all_three((1, 8, 8, 8), (filters, 8, 3, 3), "float32", **PLAIN)
    text = source(graph_job(Graph(graph.inputs, graph.outputs[:1]), {})).text
    assert text.count("copied(at(a2") == copies


def test_windows_that_skip_elements_need_no_planes_for_them() -> None:
    how = Windows(4, 8, (8, 8), (1, 1), (2, 2), (0, 0), (1, 1), (4, 4), 1)
    assert prod(axis.remainders for axis in how.planes().axes) == 1
    assert how.planes().size == 16


@pytest.mark.parametrize(("bits", "count"), [(512, 32), (256, 16), (128, 32)])
def test_a_tile_fits_the_registers(monkeypatch, bits, count) -> None:
    monkeypatch.setattr(shifted_products, "registers", lambda: bits)
    for rows in (1, 3, 10, 64):
        for vectors in (1, 5, 66):
            deep, across = shape(rows, vectors)
            assert deep * across + across + 1 <= count


@pytest.mark.parametrize(("bits", "count"), [(512, 32), (256, 16), (128, 32)])
def test_a_tile_of_the_gradient_of_a_kernel_fits_the_registers(monkeypatch, bits, count) -> None:
    monkeypatch.setattr(shifted_products, "registers", lambda: bits)
    for filters, channels, taps in product((1, 7, 16, 40), (1, 3, 64), (1, 3, 9)):
        slopes = KernelSlopes("float32", filters, PositionRows(8, []), channels, 81, taps, range(taps))
        tiles = re.split(r"for c in", "\n".join(slopes.lines("left", "right", "to")))[1:]
        for tile in tiles:
            assert len(re.findall(r" s\w+ =", tile)) + len(re.findall(r" e\w+ =", tile)) + 1 <= count


def test_no_tile_of_the_gradient_of_a_kernel_reads_what_it_has_read_for_the_position_before() -> None:
    graph = all_three((2, 6, 9, 7), (20, 6, 3, 3), "float32", **PLAIN)
    text = source(graph_job(Graph(graph.inputs, graph.outputs[2:]), {})).text
    tiles = [[int(x) for x in re.findall(r"there\[j \+ (\d+)\]", part)] for part in text.split("for c in")]
    assert any(tiles)
    assert all(abs(one - other) > 7 for tile in tiles for one, other in combinations(sorted(set(tile)), 2))
