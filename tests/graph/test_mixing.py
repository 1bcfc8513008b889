"""Rounding to 16 bits, and the rewriting of a graph so that its products read rounded operands."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ops
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.namespace import evaluate_graph
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, originating, symbol
from sigma_kernel.graph.rewriting import rewrite
from sigma_step.mixing import mix_precision
from sigma_step.work import operations


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """Return float32 numbers rounded by the op."""
    given = symbol(x.shape, x.dtype.name)
    return np.asarray(evaluate_graph(Graph((given,), (ops.reduce_precision(given, dtype=dtype),)), x)[0])


def every_bfloat16() -> np.ndarray:
    """Return all positive finite numbers of bfloat16, in order: the upper halves of float32."""
    return (np.arange(0x7F80, dtype=np.uint32) << 16).view(np.float32)


def test_every_number_of_bfloat16_is_its_own_rounding_and_ties_go_to_the_even_neighbour() -> None:
    exact = every_bfloat16()
    middle = (exact.view(np.uint32) + 0x8000).view(np.float32)
    even = np.where(np.arange(len(exact)) % 2, (exact.view(np.uint32) + 0x10000).view(np.float32), exact)
    above = (middle.view(np.uint32) + 1).view(np.float32)
    following = np.append(exact[1:], np.float32(np.inf))
    for sign in (1, -1):
        np.testing.assert_array_equal(rounded(sign * exact, "bfloat16"), sign * exact)
        np.testing.assert_array_equal(rounded(sign * middle, "bfloat16"), sign * even)
        np.testing.assert_array_equal(rounded(sign * np.nextafter(middle, 0), "bfloat16"), sign * exact)
        np.testing.assert_array_equal(rounded(sign * above, "bfloat16"), sign * following)


def test_numbers_round_to_float16_as_in_numpy() -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    exact = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    x = np.concatenate([bits.view(np.float32), exact, (exact[1:] + exact[:-1]) / 2, -exact])
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(rounded(x, "float16"), expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_keeps_what_is_not_finite_the_signs_of_zeros_and_the_dtype(dtype: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    for kind in ("float32", "float64"):
        found = rounded(x.astype(kind), dtype)
        assert found.dtype == kind
        np.testing.assert_array_equal(found, x)
        assert np.signbit(found[3:]).tolist() == [False, True]
    odd = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)  # NaN whose bits would overflow
    assert np.isnan(rounded(odd, dtype)).all()


def test_float64_is_rounded_by_way_of_float32() -> None:
    assert rounded(np.array([1 + 2.0**-8 + 2.0**-40]), "bfloat16") == 1.0


def test_the_gradient_passes_a_rounding_unchanged() -> None:
    x = symbol((2,))
    slope = gradient(f.sum(ops.reduce_precision(x, dtype="bfloat16") * 3.0), [x])
    assert evaluate_graph(Graph((x,), slope), np.array([1.001, 2.002], np.float32))[0].tolist() == [3.0, 3.0]


def test_other_dtypes_and_operands_are_refused() -> None:
    with pytest.raises(SigmaGraphError, match="it rounds to bfloat16 or float16, not to 'float32'"):
        ops.reduce_precision(symbol((2,)), dtype="float32")
    with pytest.raises(SigmaGraphError, match="it takes float32 or float64, not int32"):
        ops.reduce_precision(symbol((2,), "int32"), dtype="bfloat16")


# -- the rewriting of products -----------------------------------------------------------------------------------------
ALL = "bfloat16", lambda origin: True
HOW = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}


def named(*outputs: Node, keep: bool = True) -> list[str]:
    """Return the ops of the rewritten graph."""
    graph = mix_precision(Graph((), outputs), *ALL)
    return [node.op for node in rewrite(graph, keep=OPS if keep else ()) if node.op not in ("input", "constant")]


def test_a_product_of_matrices_reads_rounded_operands_and_adds_in_float32() -> None:
    x, w = symbol((3, 40)), symbol((40, 2))
    draw = np.random.default_rng(0)
    arrays = [draw.standard_normal(node.shape, np.float32) for node in (x, w)]
    assert named(x @ w) == ["mixed_matmul"]
    assert sorted(named(x @ w, keep=False)) == ["matmul", "reduce_precision", "reduce_precision"]
    (found,) = evaluate_graph(mix_precision(Graph((x, w), (x @ w,)), *ALL), *arrays)
    exact = rounded(arrays[0], "bfloat16").astype(float) @ rounded(arrays[1], "bfloat16").astype(float)
    np.testing.assert_allclose(found, exact, atol=1e-5)
    assert np.abs(found - arrays[0].astype(float) @ arrays[1].astype(float)).max() > 1e-3


def test_both_gradients_of_a_product_read_rounded_operands_too() -> None:
    x, w = symbol((3, 40)), symbol((40, 2))
    found = named(*gradient(f.sum(f.square(x @ w)), [x, w]))
    assert found.count("mixed_matmul") == 3
    assert "matmul" not in found


def test_convolutions_and_attention_read_rounded_operands() -> None:
    x, w = symbol((2, 3, 9)), symbol((4, 3, 2))
    wave = ops.convolution(x, w, **HOW)
    found = named(wave, *gradient(f.sum(f.square(wave)), [x, w]))
    assert {name: found.count(name) for name in found if "convolution" in name} == {
        "convolution": 1, "convolution_input": 1, "convolution_kernel": 1
    }  # fmt: skip
    assert found.count("reduce_precision") == 3  # samples, kernels and the gradient, each once
    q, mask = symbol((2, 5, 4)), symbol((2, 5, 5), "bool")
    assert named(ops.attention(q, q, q, mask, causal=True)) == ["reduce_precision", "attention"]


def test_products_in_the_body_of_a_loop_read_rounded_operands() -> None:
    w, xs, start = symbol((4, 4)), symbol((3, 2, 4)), symbol((2, 4))
    (final,), _ = f.scan(lambda h, x: ([f.tanh(h @ w + x)], []), [start], [xs])
    graph = mix_precision(Graph((w, xs, start), (final,)), *ALL)
    (loop,) = (node for node in graph if node.op == "scan")
    assert [node.op for node in loop.attrs["body"]].count("mixed_matmul") == 1


def test_products_of_other_dtypes_and_other_origins_stay_as_they_are() -> None:
    assert named(symbol((2, 3), "float64") @ symbol((3, 2), "float64")) == ["matmul"]
    assert named(symbol((2, 3), "int32") @ symbol((3, 2), "int32")) == ["matmul"]
    with originating("a cost"):
        exact = symbol((2, 3)) @ symbol((3, 2))
    graph = mix_precision(Graph((), (exact,)), "bfloat16", lambda origin: origin != "a cost")
    assert graph.outputs == (exact,)


def test_rounding_counts_as_no_work() -> None:
    x, w = symbol((3, 40)), symbol((40, 2))
    assert operations(mix_precision(Graph((x, w), (x @ w,)), *ALL)) == operations(Graph((x, w), (x @ w,)))


def test_origins_are_kept_for_messages() -> None:
    with originating("2-dense"):
        product = symbol((2, 3)) @ symbol((3, 2))
    (made,) = mix_precision(Graph((), (product,)), *ALL).outputs
    assert (made.op, made.origin, Spec(made.shape, made.dtype)) == ("mixed_matmul", "2-dense", product.spec)
