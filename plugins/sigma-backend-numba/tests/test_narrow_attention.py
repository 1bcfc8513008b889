"""Attention to numbers rounded to bfloat16: scores by dot products where the processor has them, else in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numba.compiler.processor import DOTS, mixed_form
from sigma_backend_numba.lower import canonical
from sigma_backend_numba.lower.paired_products import PAIRED
from sigma_kernel.graph import Graph, interpret, numpy_namespace, ops, symbol

Shape = tuple[int, ...]
SHAPES: dict[str, tuple[Shape, Shape, Shape, Shape | None]] = {  # queries, keys, values, mask
    "whole tiles": ((2, 2, 64, 32), (2, 2, 64, 32), (2, 2, 64, 32), None),
    "odd sides": ((2, 37, 5), (2, 37, 5), (2, 37, 3), None),
    "one column": ((2, 9, 1), (2, 9, 1), (2, 9, 1), None),
    "several blocks": ((2, 100, 33), (2, 70, 33), (2, 70, 47), None),
    "a mask": ((3, 7, 4), (3, 50, 4), (3, 50, 18), (3, 7, 50)),
    "shared heads": ((2, 3, 5, 6), (2, 1, 5, 6), (2, 1, 5, 3), (5,)),
}


def attended(name: str, causal: bool, dtype: str = "float32") -> Graph:
    """Return attention and the gradients of queries, keys and values, of rounded operands."""
    *shapes, mask = SHAPES[name]
    q, k, v = (symbol(shape, dtype) for shape in shapes if shape)
    masks = [symbol(mask, "bool")] if mask else []
    rounded = [ops.reduce_precision(x, dtype="bfloat16") for x in (q, k, v)]
    result = ops.attention(*rounded, *masks, causal=causal)
    g = symbol(result.shape, dtype)
    slope = ops.reduce_precision(g, dtype="bfloat16")
    back = (ops.attention_gradient(slope, *rounded, *masks, causal=causal, of=i) for i in range(3))
    return Graph((q, k, v, g, *masks), (result, *back))


def drawn(graph: Graph) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    *numbers, last = [draw.standard_normal(x.shape, np.float32) for x in graph.inputs]
    return [*numbers, last > -0.4 if graph.inputs[-1].dtype == "bool" else last]


def agree(name: str, causal: bool, arrays: list[np.ndarray]) -> None:
    """Compare with the expansion of the same rounded numbers in float64."""
    wide = [x if x.dtype == bool else x.astype(float) for x in arrays]
    with np.errstate(all="ignore"):
        expected = interpret(attended(name, causal, "float64"), numpy_namespace())(*wide)
    for result, other in zip(NumbaBackend(threads=1).lower(attended(name, causal), {})(*arrays), expected, strict=True):
        np.testing.assert_array_equal(np.isfinite(result), np.isfinite(other))
        known = np.isfinite(other)
        scale = 4e-6 * max(np.abs(other[known]).max(initial=0), 1e-3)
        np.testing.assert_allclose(result[known], other[known], rtol=0, atol=scale)


def count_paired(graph: Graph) -> int:
    return sum(PAIRED in node.attrs for node in canonical.expand_graph(graph))


@pytest.mark.long_cases("several blocks-False-")
@pytest.mark.parametrize("form", sorted({"", mixed_form()}))
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_attention_and_its_gradients_are_those_of_rounded_operands(
    monkeypatch: pytest.MonkeyPatch, name: str, causal: bool, form: str
) -> None:
    if causal and SHAPES[name][0][-2] != SHAPES[name][1][-2]:
        causal = False
    monkeypatch.setattr(canonical, "mixed_form", lambda: form)
    graph = attended(name, causal)
    assert count_paired(graph) == 4 * (form == DOTS)
    agree(name, causal, drawn(graph))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("operand", range(4))
@pytest.mark.parametrize("causal", [False, True])
def test_numbers_that_are_not_finite_spread_as_in_the_expansion(causal: bool, operand: int, value: float) -> None:
    arrays = drawn(attended("odd sides", causal))
    arrays[operand][1, 5, 2] = value
    agree("odd sides", causal, arrays)


def test_operands_that_are_not_rounded_to_bfloat16_are_multiplied_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical, "mixed_form", lambda: DOTS)
    q, k, v = (symbol((2, 64, 32)) for _ in range(3))
    kinds: list[Any] = [("bfloat16", "float16"), ("float16", "float16")]
    for first, second in kinds:
        narrow = ops.reduce_precision(q, dtype=first), ops.reduce_precision(k, dtype=second)
        values = ops.reduce_precision(v, dtype=first)
        assert count_paired(Graph((q, k, v), (ops.attention(*narrow, values, causal=False),))) == 0
    assert count_paired(Graph((q, k, v), (ops.attention(q, k, v, causal=False),))) == 0


def test_threads_change_no_bit() -> None:
    graph = attended("whole tiles", True)
    arrays = drawn(graph)
    one, two = (NumbaBackend(threads=count).lower(graph, {})(*arrays) for count in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
