"""Convolutions of numbers rounded to bfloat16: in tiles where the processor has AMX, else as in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.compiler.processor import AMX, mixed_form
from sigma_backend_numba.emit.program_text import source
from sigma_backend_numba.execute.program import graph_job
from sigma_backend_numba.lower import canonical, tiled_convolutions
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, interpret, numpy_namespace, ops, symbol

PLAIN: dict[str, Any] = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}


def both(x: tuple[int, ...], w: tuple[int, ...], dtype: str = "float32", **how: Any) -> Graph:
    """Return a graph of a convolution with an epilogue, and of the gradient of its operand, of rounded numbers."""
    samples, kernel = symbol(x, dtype), symbol(w, dtype)
    first, second = (ops.reduce_precision(v, dtype="bfloat16") for v in (samples, kernel))
    z = ops.convolution(first, second, **how)
    g = symbol(z.shape, dtype)
    back = ops.convolution_input(ops.reduce_precision(g, dtype="bfloat16"), second, shape=x, **how)
    return Graph((samples, kernel, g), (f.relu(z) * 2.0, back))


def drawn(graph: Graph) -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(x.shape, np.float32) for x in graph.inputs]


def sizes(graph: Graph, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the sums of the sizes of all products: what an error of a sum is relative to."""
    return tuple(interpret(graph, numpy_namespace())(*map(np.abs, arrays)))


def agree(x: tuple[int, ...], w: tuple[int, ...], how: dict[str, Any]) -> None:
    """Compare with sums of the same rounded numbers in float64."""
    graph = both(x, w, **how)
    arrays = drawn(graph)
    narrow = [np.asarray(ops.reduce_precision(v, dtype="bfloat16")).astype(float) for v in arrays]
    expected = interpret(both(x, w, "float64", **how), numpy_namespace())(*narrow)
    every = zip(NumbaBackend().lower(graph, {})(*arrays), expected, sizes(graph, arrays), strict=True)
    for result, wanted, size in every:
        assert np.all(np.abs(result - wanted) <= 3e-6 * size + 1e-30)


def count_tiled(graph: Graph) -> int:
    """Return how many products are computed in tiles."""
    return source(graph_job(graph, {})).text.count("tile_shifts(")


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


@settings(max_examples=12, deadline=None)
@given(geometries())
def test_a_convolution_of_any_geometry_is_that_of_rounded_operands(
    geometry: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]],
) -> None:
    x, w, how = geometry
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LEAST", "FEW", "MANY"):
            patch.setattr(tiled_convolutions, name, 0)
        assert count_tiled(both(x, w, **how)) == 2 * (mixed_form() == AMX)
        agree(x, w, how)


@pytest.mark.parametrize("form", ["", mixed_form()])
@pytest.mark.parametrize(
    ("x", "w", "how"),
    [
        ((2, 32, 14, 14), (64, 32, 3, 3), PLAIN),
        ((2, 34, 9, 8), (38, 17, 5, 2), {**PLAIN, "groups": 2, "padding": ((2, 2), (0, 0)), "dilation": (1, 2)}),
        ((2, 17, 13, 13), (33, 17, 1, 1), {**PLAIN, "padding": ((0, 0), (0, 0)), "stride": (2, 2)}),
    ],
)
def test_both_forms_agree(monkeypatch: pytest.MonkeyPatch, form: str, x: Any, w: Any, how: dict[str, Any]) -> None:
    monkeypatch.setattr(canonical, "mixed_form", lambda: form)
    assert bool(count_tiled(both(x, w, **how))) == (form == AMX)
    agree(x, w, how)


def test_few_channels_filters_or_positions_stay_in_vectors() -> None:
    for x, w in (((2, 15, 8, 8), (16, 15, 3, 3)), ((2, 16, 8, 8), (15, 16, 3, 3)), ((2, 16, 5, 6), (16, 16, 3, 3))):
        assert count_tiled(both(x, w, **PLAIN)) == 0
    assert count_tiled(both((2, 16, 6, 6), (16, 16, 3, 3), **PLAIN)) == 2 * (mixed_form() == AMX)


def test_a_large_kernel_needs_more_positions() -> None:
    assert count_tiled(both((1, 256, 7, 7), (256, 256, 3, 3), **PLAIN)) == 0
    assert count_tiled(both((1, 256, 12, 12), (256, 256, 3, 3), **PLAIN)) == 2 * (mixed_form() == AMX)


def test_the_number_of_threads_changes_no_bit() -> None:
    graph = both((24, 32, 12, 12), (48, 32, 3, 3), **PLAIN)
    arrays = drawn(graph)
    one, two = (NumbaBackend(threads=count).lower(graph, {})(*arrays) for count in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_sample_does_not_depend_on_the_others() -> None:
    whole, part = (both((n, 20, 9, 7), (20, 20, 3, 3), **PLAIN) for n in (5, 1))
    x, w, g = drawn(whole)
    for all_of, alone in zip(
        NumbaBackend().lower(whole, {})(x, w, g), NumbaBackend().lower(part, {})(x[3:4], w, g[3:4]), strict=True
    ):
        np.testing.assert_array_equal(all_of[3:4], alone)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_finite_reach_only_the_windows_that_cover_them(value: float) -> None:
    graph = both((2, 17, 6, 6), (18, 17, 3, 3), **PLAIN)
    arrays = drawn(graph)
    arrays[0][0, 3, 0, 5], arrays[2][1, 4, 5, 0] = value, value
    with np.errstate(invalid="ignore"):
        expected = interpret(graph, numpy_namespace())(*arrays)
    for result, wanted in zip(NumbaBackend().lower(graph, {})(*arrays), expected, strict=True):
        np.testing.assert_array_equal(np.isnan(result), np.isnan(wanted))
        np.testing.assert_array_equal(np.isinf(result), np.isinf(wanted))
        assert np.isfinite(result).any()
