"""The meaning of each op agrees with NumPy, closed forms and plain loops."""

from __future__ import annotations

import math
import warnings
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import dtypes, meaning, ops, shapes
from sigma_kernel.graph.meaning import MEANINGS, interpret
from sigma_kernel.graph.namespace import Namespace, check_indices, erf, numpy_namespace, scatter_add
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, constant, symbol, trace
from sigma_kernel.graph.ops import Op
from sigma_testing.cases import Sample, samples

NUMPY = numpy_namespace()
EVERY = [sample for rows in samples().values() for sample in rows]


def run(sample: Sample) -> tuple[np.ndarray, ...]:
    return interpret(sample.graph(), NUMPY)(*sample.arrays)


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sample", [s for name in names for s in samples()[name]], ids=str)


def test_every_op_of_the_kernel_has_a_sample_and_a_meaning_or_an_expansion():
    kernel = {name: op for name, op in OPS.items() if ":" not in name}
    assert set(samples()) == set(kernel)
    assert {name for name, op in kernel.items() if op.expansion is None} == set(MEANINGS)


@pytest.mark.parametrize("sample", EVERY, ids=str)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_shape_and_dtype_of_every_sample_follow_the_op_table(sample, precision):
    graph = sample.graph(precision)
    with warnings.catch_warnings(action="error"):
        results = interpret(graph, NUMPY)(*sample.operands(precision))
    assert [(x.shape, x.dtype.name) for x in results] == [(node.shape, node.dtype) for node in graph.outputs]


ELEMENTWISE = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y, "neg": lambda x: -x, "abs": abs, "exp": math.exp, "expm1": math.expm1, "log": math.log,
    "log1p": math.log1p, "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "erf": math.erf,
    "floor": math.floor, "sign": lambda x: (x > 0) - (x < 0), "maximum": max, "minimum": min,
    "is_finite": math.isfinite, "mod": lambda x, y: x - y * math.floor(x / y),
    "equal": lambda x, y: x == y, "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y, "logical_and": lambda x, y: x and y, "logical_or": lambda x, y: x or y,
    "logical_not": lambda x: not x, "where": lambda c, x, y: x if c else y, "stop": lambda x: x,
    "relu": lambda x: max(x, 0.0), "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "silu": lambda x: x / (1 + math.exp(-x)), "softplus": lambda x: math.log(1 + math.exp(x)),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
}  # fmt: skip


@of(*ELEMENTWISE)
def test_elementwise_ops_agree_with_python_element_by_element(sample):
    (result,) = run(sample)
    words = any(x.dtype == np.uint32 for x in sample.arrays)
    for place in np.ndindex(result.shape):
        operands = (np.broadcast_to(x, result.shape)[place].item() for x in sample.arrays)
        expected = ELEMENTWISE[sample.op](*operands)
        assert result[place] == pytest.approx(expected % 2**32 if words else expected, rel=1e-14, abs=1e-15)


@of("sum", "max", "argmax", "reshape", "permute", "stretch", "concat", "take", "matmul", "cast")
def test_array_ops_agree_with_numpy(sample):
    expected = {
        "sum": lambda x, axis: np.sum(x, axis, keepdims=True),
        "max": lambda x, axis: np.max(x, axis, keepdims=True),
        "argmax": lambda x, axis: np.argmax(x, axis, keepdims=True),
        "reshape": lambda x, shape: x.reshape(shape),
        "permute": lambda x, axes: x.transpose(axes),
        "stretch": lambda x, shape: np.broadcast_to(x, shape),
        "concat": lambda *xs, axis: np.concatenate(xs, axis),
        "take": lambda x, i, axis: np.take(x, i, axis),
        "matmul": np.matmul,
        "cast": lambda x, dtype: x.astype(dtype),
    }[sample.op](*sample.arrays, **sample.attrs)
    dtype = sample.graph().outputs[0].dtype
    np.testing.assert_array_equal(run(sample)[0], expected.astype(dtype))


@of("scatter_add")
def test_scatter_add_adds_at_the_indices_that_take_reads(sample):
    (x, places, updates), axis = sample.arrays, sample.attrs["axis"]
    expected, named = x.copy(), range(places.ndim)
    front, moved = np.moveaxis(expected, axis, 0), np.moveaxis(updates, [axis + i for i in named], named)
    for place in np.ndindex(places.shape):
        front[places[place]] += moved[place]
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-14)


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [
        ("int32", [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), -1, 7]),
        ("int64", [0, 2**63 - 1, -(2**63), 2**63 - 1, -(2**63), -1, 7]),
        ("uint32", [0, 2**32 - 1, 0, 2**32 - 1, 0, 0, 7]),
    ],
)
def test_floats_beyond_an_integer_type_are_clamped_and_nan_becomes_zero(dtype, wanted, precision):
    far = np.inf if precision == "float16" else 1e20
    x = np.array([np.nan, np.inf, -np.inf, far, -far, -1.75, 7.9], precision)
    graph = trace(lambda x: ops.cast(x, dtype=dtype), Spec(x.shape, precision))
    assert interpret(graph, NUMPY)(x)[0].tolist() == wanted


@pytest.mark.parametrize("place", [-1, 3])
def test_the_reference_reports_indices_outside_their_axis(place):
    graph = trace(lambda x, i: ops.take(x, i, axis=0), Spec((3,)), Spec((2,), "int32"))
    with pytest.raises(SigmaGraphError, match=r"take: indices must be from 0 to 2 \(got .*\). Check the lab"):
        interpret(graph, NUMPY)(np.ones(3, "float32"), np.array([1, place], "int32"))


def test_the_generic_scatter_add_equals_numpys():
    x, places, updates = np.ones((4, 3)), np.array([2, 0, 2]), np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(scatter_add(np, x, places, updates), NUMPY.scatter_add(np, x, places, updates))


def test_padding_can_be_before_between_and_after():
    graph = trace(lambda x: ops.pad(x, low=(1,), high=(2,), interior=(2,), value=9.0), Spec((3,)))
    (result,) = interpret(graph, NUMPY)(np.array([1, 2, 3], "float32"))
    assert result.tolist() == [9, 1, 9, 9, 2, 9, 9, 3, 9, 9]


@of("pad")
def test_slicing_undoes_padding(sample):
    entries = zip(sample.attrs["low"], sample.arrays[0].shape, sample.attrs["interior"], strict=True)
    inside = tuple(slice(a, a + (n - 1) * (i + 1) + 1, i + 1) for a, n, i in entries)
    result = run(sample)[0]
    np.testing.assert_array_equal(result[inside], sample.arrays[0])
    rest = np.ones(result.shape, bool)
    rest[inside] = False
    assert (result[rest] == sample.attrs["value"]).all()


# -- windows -----------------------------------------------------------------------------------------------------------
def windows(shape, sides, window, stride, padding, dilation=None):
    """Yield every window's position, every position inside it, and its index in x, by plain loops."""
    for at in product(*map(range, sides)):
        for number, k in enumerate(product(*map(range, window))):
            where = tuple(
                o * s + i * d - low
                for o, s, i, d, (low, _) in zip(at, stride, k, dilation or (1,) * len(k), padding, strict=True)
            )
            if all(0 <= i < n for i, n in zip(where, shape[2:], strict=True)):
                yield at, number, k, where


def products(sample: Sample, x: tuple[int, ...], w: tuple[int, ...], g: tuple[int, ...]):
    """Yield the indices into x, w and the result of every product that a convolution sums."""
    how = dict(sample.attrs)
    groups = how.pop("groups")
    how.pop("shape", None)
    per, out = w[1], w[0] // groups
    for at, _, k, where in windows(x, g[2:], w[2:], **how):
        for n, o, c in product(range(x[0]), range(w[0]), range(per)):
            yield (n, o // out * per + c, *where), (o, c, *k), (n, o, *at)


@of("convolution", "convolution_input", "convolution_kernel")
def test_convolution_and_its_gradients_are_sums_of_products(sample):
    node = sample.graph().outputs[0]
    result, (a, b) = np.zeros(node.shape), sample.arrays
    first, second, third = {"convolution": "xwg", "convolution_input": "gwx", "convolution_kernel": "xgw"}[sample.op]
    shapes = {first: a.shape, second: b.shape, third: node.shape}
    for places in products(sample, *(shapes[name] for name in "xwg")):
        at = dict(zip("xwg", places, strict=True))
        result[at[third]] += a[at[first]] * b[at[second]]
    np.testing.assert_allclose(run(sample)[0], result, rtol=1e-12, atol=1e-12)


@of("max_pool", "pool_argmax", "sum_pool", "pool_select")
def test_pooling_reads_every_window(sample):
    x, how = sample.arrays[0], sample.attrs
    (result,) = run(sample)
    seen: dict[tuple[int, ...], dict[int, tuple[int, ...]]] = {}
    for at, number, _, where in windows(x.shape, result.shape[2:], **how):
        seen.setdefault(at, {})[number] = where
    for n, c, *at in np.ndindex(result.shape):
        inside = {number: x[(n, c, *where)] for number, where in seen[tuple(at)].items()}
        chosen = int(sample.arrays[1][(n, c, *at)]) if sample.op == "pool_select" else -1
        expected = {
            "max_pool": max(inside.values()),
            "pool_argmax": max(inside, key=inside.__getitem__),
            "sum_pool": sum(inside.values()),
            "pool_select": inside.get(chosen, 0.0),
        }[sample.op]
        assert result[(n, c, *at)] == pytest.approx(expected, rel=1e-14)


@of("pool_scatter", "sum_unpool")
def test_unpooling_adds_to_every_window(sample):
    g, how = sample.arrays[0], dict(sample.attrs)
    expected = np.zeros(how.pop("shape"))
    for at, number, _, where in windows(expected.shape, g.shape[2:], **how):
        for n, c in product(*map(range, g.shape[:2])):
            if sample.op == "sum_unpool" or sample.arrays[1][(n, c, *at)] == number:
                expected[(n, c, *where)] += g[(n, c, *at)]
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-14)


def test_the_first_of_equal_maxima_counts():
    how = {"window": (2,), "stride": (2,), "padding": ((0, 0),)}
    graph = trace(lambda x: ops.pool_argmax(x, **how), Spec((1, 1, 4)))
    assert interpret(graph, NUMPY)(np.array([[[3, 3, -1, -1]]], "float32"))[0].tolist() == [[[0, 0]]]


# -- accuracy ----------------------------------------------------------------------------------------------------------
def test_erf_is_accurate_to_the_last_digits_of_float64():
    x = np.concatenate([np.linspace(-7, 7, 20001), np.logspace(-300, 0, 500), [0.0, -0.0, np.inf, -np.inf]])
    np.testing.assert_allclose(erf(np, x), [math.erf(v) for v in x], rtol=1e-15, atol=0)
    assert np.isnan(erf(np, np.array(np.nan)))
    assert erf(np, x.astype("float32")).dtype == np.float32


# -- scans and composites ----------------------------------------------------------------------------------------------
def test_a_scan_of_additions_is_a_cumulative_sum():
    sample = samples()["scan"][0]
    start, x = sample.arrays
    final, rows = run(Sample("scan", (start, x), sample.attrs, sample.parts))
    np.testing.assert_allclose(final, start + x.sum(0), rtol=1e-14)
    assert rows.shape == (4, 3, 5)


@pytest.mark.parametrize("sample", samples()["scan"][1:], ids=str)
def test_a_scan_computes_a_recurrent_network(sample):
    h, c, x, w = sample.arrays
    outputs, before_h, before_c = ([None] * 4 for _ in range(3))
    for t in reversed(range(4)) if sample.attrs["reverse"] else range(4):
        before_h[t], before_c[t] = h, c
        new = np.tanh(x[t] @ w + h)
        outputs[t] = new * c
        h, c = new, c * 0.5 + new
    stacked = (np.stack(rows) for rows in (outputs, before_h, before_c))
    for result, expected in zip(run(sample), (h, c, *stacked), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-13)


def test_a_scan_of_zero_steps_returns_the_initial_carry_and_empty_stacks():
    body = trace(lambda carry, x: (carry + x, x), Spec((2,)), Spec((2,)))

    def walk(start: Node, x: Node) -> list[Node]:
        scan = ops.scan(start, x, body=body, carries=1, sequences=1, length=0, reverse=False)
        return [ops.part(scan, index=i, shape=shape, dtype="float32") for i, shape in enumerate([(2,), (0, 2)])]

    final, rows = interpret(trace(walk, Spec((2,)), Spec((0, 2))), NUMPY)(np.ones(2, "f4"), np.ones((0, 2), "f4"))
    assert final.tolist() == [1, 1]
    assert rows.shape == (0, 2)


def test_only_used_parts_of_a_scan_are_kept(monkeypatch):
    kept = []

    def watched(ns, *operands, wanted, **how):
        kept.append(set(wanted))
        return meaning.scan(ns, *operands, wanted=wanted, **how)

    sample = samples()["scan"][1]
    whole = sample.graph()
    monkeypatch.setitem(MEANINGS, "scan", watched)
    interpret(Graph(whole.inputs, whole.outputs[2:3]), NUMPY)(*sample.arrays)
    assert kept == [{2}]


@of("softmax", "log_softmax")
def test_softmax_is_a_distribution_for_any_offset(sample):
    axis = sample.attrs["axis"]
    exponentials = np.exp(sample.arrays[0])
    expected = exponentials / exponentials.sum(axis, keepdims=True)
    result = interpret(sample.graph(), NUMPY)(sample.arrays[0] + 500.0)[0]
    np.testing.assert_allclose(np.exp(result) if sample.op == "log_softmax" else result, expected, rtol=1e-10)


@of("softmax_cross_entropy")
def test_cross_entropy_is_minus_the_logarithm_of_the_probability_of_the_label(sample):
    scores, labels = sample.arrays
    probability = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = -np.log(np.take_along_axis(probability, labels[..., None], -1)[..., 0])
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-10, atol=1e-12)


@of("layer_norm")
def test_layer_norm_takes_mean_and_deviation_of_the_last_axis(sample):
    x, scale, shift = sample.arrays
    deviation = np.sqrt(x.var(-1, keepdims=True) + sample.attrs["epsilon"])
    expected = (x - x.mean(-1, keepdims=True)) / deviation * scale + shift
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-12)


@of("dropout")
def test_dropout_keeps_elements_whose_bits_reach_the_rate_and_scales_them(sample):
    x, rate, *key = sample.arrays
    bits = interpret(Sample("random_bits", tuple(key), {"shape": x.shape, "stream": 5}).graph(), NUMPY)(*key)[0]
    expected = np.where(bits >= rate * 2.0**32, x / (1 - rate), 0.0)
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-14)


@of("attention")
def test_attention_is_softmax_of_scaled_products_times_values(sample):
    q, k, v, *mask = sample.arrays
    scores = np.exp(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    scores = np.where(mask[0], scores, 0) if mask else scores
    scores = np.tril(scores) if sample.attrs["causal"] else scores
    totals = scores.sum(-1, keepdims=True)
    expected = scores / np.where(totals, totals, 1) @ v
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-12, atol=1e-15)


@of("attention_gradient")
def test_the_gradient_of_attention_is_that_of_finite_differences(sample):
    g, *operands = sample.arrays
    of, causal = sample.attrs["of"], sample.attrs["causal"]
    whole = np.broadcast_to(operands[of], (*g.shape[:-2], *operands[of].shape[-2:])).copy()  # before it is summed
    expected, step = np.empty_like(whole), 1e-6

    def total(moved):
        given = [*operands[:of], moved, *operands[of + 1 :]]
        return (run(Sample("attention", tuple(given), {"causal": causal}))[0] * g).sum()

    for place in np.ndindex(whole.shape):
        moved = [whole.copy(), whole.copy()]
        moved[0][place] += step
        moved[1][place] -= step
        expected[place] = (total(moved[0]) - total(moved[1])) / (2 * step)
    np.testing.assert_allclose(run(sample)[0], expected, rtol=1e-7, atol=1e-8)


# -- errors and side effects -------------------------------------------------------------------------------------------
def test_a_dtype_that_a_namespace_lacks_is_refused_by_name():
    graph = trace(lambda x: ops.cast(x, dtype="bfloat16"), Spec((2,)))
    with pytest.raises(SigmaGraphError, match=r"numpy: does not support bfloat16. Use one of: float16, float32"):
        interpret(graph, NUMPY)(np.ones(2, "f4"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_to_16_bits_that_a_namespace_lacks_names_the_argument_that_it_needs(dtype):
    graph = trace(lambda x: ops.reduce_precision(x, dtype=dtype), Spec((2,)))
    types, x = {name: getattr(np, name) for name in ("float32", "int32", "uint32", "bool")}, np.ones(2, "f4")
    with pytest.raises(SigmaGraphError, match=f"mine: cannot round to {dtype}. Give its Namespace a function `narrow`"):
        interpret(graph, Namespace("mine", np, types, np.int64))(x)
    own = Namespace("mine", np, types, np.int64, narrow=lambda ns, x, dtype: NUMPY.narrow(NUMPY, x, dtype))
    np.testing.assert_array_equal(interpret(graph, own)(x)[0], x)


def test_an_op_without_meaning_and_expansion_is_refused_by_name():
    x = symbol((2,))
    bare = Op("acme:bare", lambda x: x, lambda x: x)
    with pytest.raises(SigmaGraphError, match="acme:bare: this op has neither a meaning nor an expansion"):
        interpret(Graph((x,), (bare(x),)), NUMPY)


def test_a_plugin_can_define_the_meaning_of_its_op_only_once(monkeypatch):
    monkeypatch.setitem(OPS, "acme:cube", None)  # both tables are restored afterwards
    monkeypatch.setitem(MEANINGS, "acme:cube", None)
    del OPS["acme:cube"]
    cube = ops.op("acme:cube", shapes.same, dtypes.same, meaning=lambda ns, x: x * x * x)
    x = symbol((2,))
    assert interpret(Graph((x,), (cube(x),)), NUMPY)(np.array([2, 3], "f4"))[0].tolist() == [8, 27]
    with pytest.raises(SigmaGraphError, match="op 'acme:cube' is already defined. Choose another name."):
        ops.op("acme:cube", shapes.same, dtypes.same, meaning=lambda ns, x: x)
    assert MEANINGS["acme:cube"](None, 3) == 27


def test_interpreting_a_long_chain_frees_values_after_their_last_use():
    def chain(x: Node) -> Node:
        for _ in range(3000):
            x = x + 1.0
        return x

    assert interpret(trace(chain, Spec((2,))), NUMPY)(np.zeros(2, "f4"))[0].tolist() == [3000, 3000]


def test_overflow_and_division_by_zero_give_values_and_no_warnings():
    graph = trace(lambda x: (ops.exp(x), x / (x - x), ops.log(x - x)), Spec((1,)))
    with warnings.catch_warnings(action="error"):
        results = interpret(graph, NUMPY)(np.array([1000.0], "f4"))
    assert [x.item() for x in results] == [math.inf, math.inf, -math.inf]


def test_an_output_may_be_an_input_or_a_constant():
    x = symbol((2,))
    run = interpret(Graph((x,), (x, constant(2.0), x)), NUMPY)
    same, two, again = run(np.ones(2, "f4"))
    assert (same.tolist(), float(two), again.tolist()) == ([1, 1], 2.0, [1, 1])
    assert prod(two.shape) == 1


@frozen
class Strict:
    """An array of a library that has none of NumPy's methods."""

    numbers: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numbers


def test_indices_of_any_library_are_checked():
    check_indices("take", Strict(np.array([0, 2])), 3)
    with pytest.raises(SigmaGraphError, match=r"^take: indices must be from 0 to 2 \(got -1 to 3\)"):
        check_indices("take", Strict(np.array([3, -1])), 3)
