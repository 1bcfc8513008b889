"""Convolutions of numbers rounded to bfloat16, in tiles of AMX or by dot products of AVX-512, else as in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.compiler.processor import AMX, DOTS, mixed_form
from sigma_backend_numba.lower import canonical, paired_products, tiled_convolutions
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, interpret, numpy_namespace, ops, symbol

PLAIN: dict[str, Any] = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
NARROW = {AMX: 2, DOTS: 3, "": 0}  # of a convolution and its two gradients, those that are computed in bfloat16
needs_dots = pytest.mark.skipif(mixed_form() != DOTS, reason="this processor has no fast dot products of bfloat16")


def every(x: tuple[int, ...], w: tuple[int, ...], dtype: str = "float32", **how: Any) -> Graph:
    """Return a graph of a convolution with an epilogue, and of its gradients, of rounded numbers."""
    samples, kernel = symbol(x, dtype), symbol(w, dtype)
    first, second = (ops.reduce_precision(v, dtype="bfloat16") for v in (samples, kernel))
    z = ops.convolution(first, second, **how)
    g = symbol(z.shape, dtype)
    slope = ops.reduce_precision(g, dtype="bfloat16")
    back = ops.convolution_input(slope, second, shape=x, **how)
    return Graph((samples, kernel, g), (f.relu(z) * 2.0, back, ops.convolution_kernel(first, slope, shape=w, **how)))


def drawn(graph: Graph) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(x.shape, np.float32) for x in graph.inputs]


def sizes(graph: Graph, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the sums of the sizes of all products: what an error of a sum is relative to."""
    return tuple(interpret(graph, numpy_namespace())(*map(np.abs, arrays)))


def agree(x: tuple[int, ...], w: tuple[int, ...], how: dict[str, Any]) -> None:
    """Compare with sums of the same rounded numbers in float64."""
    graph = every(x, w, **how)
    arrays = drawn(graph)
    narrow = [np.asarray(ops.reduce_precision(v, dtype="bfloat16")).astype(float) for v in arrays]
    expected = interpret(every(x, w, "float64", **how), numpy_namespace())(*narrow)
    results = zip(NumbaBackend().lower(graph, {})(*arrays), expected, sizes(graph, arrays), strict=True)
    for result, wanted, size in results:
        assert np.all(np.abs(result - wanted) <= 3e-6 * size + 1e-30)


def count_narrow(graph: Graph) -> int:
    """Return how many products are computed in bfloat16."""
    names = {tiled_convolutions.TILED, paired_products.PAIRED}
    return sum(not names.isdisjoint(node.attrs) for node in canonical.expand_graph(graph))


@st.composite
def geometries(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Draw the shapes of samples and kernels, and how the windows lie."""
    rank = draw(st.integers(1, 3))
    each = lambda least, most: tuple(draw(st.integers(least, most)) for _ in range(rank))  # noqa: E731
    how = {"stride": each(1, 3), "dilation": each(1, 2), "padding": tuple(zip(each(0, 3), each(0, 3), strict=True))}
    sides, kernel, groups = each(1, (70, 11, 6)[rank - 1]), each(1, 5), draw(st.sampled_from([1, 1, 2]))
    spans = ((k - 1) * d + 1 for k, d in zip(kernel, how["dilation"], strict=True))
    assume(all(span <= n + sum(pad) for span, n, pad in zip(spans, sides, how["padding"], strict=True)))
    channels, filters = draw(st.sampled_from([1, 3, 16, 17, 33])), draw(st.sampled_from([1, 16, 19, 32, 40]))
    samples = (draw(st.integers(1, 3)), groups * channels, *sides)
    return samples, (groups * filters, channels, *kernel), {**how, "groups": groups}


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(geometries())
def test_a_convolution_of_any_geometry_is_that_of_rounded_operands(
    geometry: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
) -> None:
    x, w, how = geometry
    with pytest.MonkeyPatch.context() as patch:
        for module, names in ((tiled_convolutions, ("LEAST", "FEW", "MANY")), (paired_products, ("FEW",))):
            for name in names:
                patch.setattr(module, name, 0)
        patch.setattr(paired_products, "_gains", lambda *_: True)
        assert count_narrow(every(x, w, **how)) == NARROW[mixed_form()]
        agree(x, w, how)


@pytest.mark.parametrize("form", ["", mixed_form()])
@pytest.mark.parametrize(
    ("x", "w", "how"),
    [
        ((2, 32, 14, 14), (64, 32, 3, 3), PLAIN),
        ((2, 34, 9, 8), (38, 17, 5, 2), {**PLAIN, "groups": 2, "padding": ((2, 2), (0, 0)), "dilation": (1, 2)}),
        ((2, 35, 13, 13), (33, 35, 1, 1), {**PLAIN, "padding": ((0, 0), (0, 0)), "stride": (2, 2)}),
    ],
)
def test_both_forms_agree(monkeypatch: pytest.MonkeyPatch, form: str, x: Any, w: Any, how: dict[str, Any]) -> None:
    monkeypatch.setattr(canonical, "mixed_form", lambda: form)
    assert count_narrow(every(x, w, **how)) == NARROW[form]
    agree(x, w, how)


def test_tiles_are_for_many_channels_filters_and_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "mixed_form", lambda: AMX)
    for x, w in (((2, 15, 8, 8), (16, 15, 3, 3)), ((2, 16, 8, 8), (15, 16, 3, 3)), ((2, 16, 5, 6), (16, 16, 3, 3))):
        assert count_narrow(every(x, w, **PLAIN)) == 0
    assert count_narrow(every((2, 16, 6, 6), (16, 16, 3, 3), **PLAIN)) == 2
    assert count_narrow(every((1, 256, 7, 7), (256, 256, 3, 3), **PLAIN)) == 0  # a large kernel needs more positions
    assert count_narrow(every((1, 256, 12, 12), (256, 256, 3, 3), **PLAIN)) == 2


@pytest.mark.parametrize(
    ("x", "w", "count"),
    [
        ((2, 8, 4, 4), (8, 8, 3, 3), 3),
        ((2, 8, 3, 5), (8, 8, 3, 3), 0),  # too few positions to fill a vector
        ((2, 1, 8, 8), (32, 1, 3, 3), 1),  # one channel has no other; positions have
        ((2, 64, 8, 8), (8, 64, 1, 1), 1),  # each number of the operand is used eight times only
        ((2, 16, 8, 8), (4, 16, 3, 3), 2),  # most lanes of a vector of four filters would be empty
    ],
)
def test_dot_products_are_for_numbers_that_are_used_often(
    monkeypatch: pytest.MonkeyPatch, x: Any, w: Any, count: int
) -> None:
    monkeypatch.setattr(canonical, "mixed_form", lambda: DOTS)
    how = PLAIN if w[2] == 3 else {**PLAIN, "padding": ((0, 0), (0, 0))}
    assert count_narrow(every(x, w, **how)) == count
    graph = every(x, w, **how)
    wide = [ops.reduce_precision(node, dtype="float16") for node in graph.inputs[:2]]
    assert count_narrow(Graph(graph.inputs, (ops.convolution(*wide, **how),))) == 0


def test_the_number_of_threads_changes_no_bit() -> None:
    graph = every((24, 32, 12, 12), (48, 32, 3, 3), **PLAIN)
    arrays = drawn(graph)
    one, two = (NumbaBackend(threads=count).lower(graph, {})(*arrays) for count in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_sample_does_not_depend_on_the_others() -> None:
    whole, part = (every((n, 20, 9, 7), (20, 20, 3, 3), **PLAIN) for n in (5, 1))
    x, w, g = drawn(whole)
    results = NumbaBackend().lower(whole, {})(x, w, g)[:2], NumbaBackend().lower(part, {})(x[3:4], w, g[3:4])[:2]
    for all_of, alone in zip(*results, strict=True):
        np.testing.assert_array_equal(all_of[3:4], alone)


@needs_dots
def test_sums_of_dot_products_add_second_numbers_of_pairs_first_and_flush_denormals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paired_products, "_gains", lambda *_: True)
    draw = np.random.default_rng(0)
    x, w, g = (draw.standard_normal(shape, np.float32) for shape in ((1, 5, 20), (40, 5, 1), (1, 40, 20)))
    x[0, 0, 3], w[7, 0, 0] = 1e-39, 1e5  # a product of 1e-34, if the denormal number is not flushed to zero
    x[0, 1:, 3] = 0.0
    how: dict[str, Any] = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}
    z, _, dw = NumbaBackend().lower(every(x.shape, w.shape, **how), {})(x, w, g)
    left, right, slope = (np.asarray(ops.reduce_precision(v, dtype="bfloat16")).astype(float) for v in (x, w, g))
    left[np.abs(left) < np.finfo(np.float32).tiny] = 0.0
    total = np.zeros((40, 20), np.float32)
    for c in (1, 0, 3, 2, 4):
        total = (total + right[:, c] * left[0, c]).astype(np.float32)  # products are exact in float64
    np.testing.assert_array_equal(z[0], np.maximum(total, 0) * 2)
    assert z[0, 7, 3] == 0
    total = np.zeros((40, 5), np.float32)
    for j in [k + 1 - 2 * (k % 2) for k in range(20)]:
        total = (total + slope[0, :, j, None] * left[0, :, j]).astype(np.float32)
    np.testing.assert_array_equal(dw[:, :, 0], total)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_finite_reach_only_the_windows_that_cover_them(value: float) -> None:
    graph = every((2, 17, 6, 7), (18, 17, 3, 3), **PLAIN)
    arrays = drawn(graph)
    arrays[0][0, 3, 0, 6], arrays[2][1, 4, 5, 0] = value, value
    with np.errstate(invalid="ignore"):
        expected = interpret(graph, numpy_namespace())(*arrays)
    for result, wanted in zip(NumbaBackend().lower(graph, {})(*arrays), expected, strict=True):
        np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
        np.testing.assert_array_equal(np.isinf(result), np.isinf(wanted))
        assert np.isfinite(result).any()
