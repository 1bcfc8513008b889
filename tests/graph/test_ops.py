"""The table of ops: derivatives against finite differences, limits, and errors of each rule."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from attrs import evolve

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import dtypes, ops, shapes
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import FLOATS, MEANINGS, OPS, Graph, Node, Spec, constant, symbol, trace
from sigma_testing.cases import Sample, samples

NUMPY = numpy_namespace()
STRICT = evolve(NUMPY, quiet=partial(np.errstate, over="raise", divide="raise", invalid="raise"))


def smooth(nodes: tuple[Node, ...], graph: Graph) -> Graph:
    """Return a scalar that depends nonlinearly on every element of some nodes."""
    return Graph(graph.inputs, (sum((f.sum(ops.sin(x * 1.3 + 0.5)) for x in nodes), constant(0.0, "float64")),))


UNSMOOTH = ("stop", "part", "reduce_precision", "mixed_matmul")  # rounding has steps; its gradient passes through


def differentiable() -> list[Sample]:
    """Return the samples with a float operand and a float result."""
    every = (sample for name, rows in samples().items() if name not in UNSMOOTH for sample in rows)
    return [s for s in every if any(x.dtype in FLOATS for x in s.graph().outputs) and places(s)]


def places(sample: Sample) -> list[int]:
    """Return the operands to differentiate by; a rate of 0 is on the boundary of its range."""
    return [i for i, x in enumerate(sample.arrays) if x.dtype == np.float64 and (x.shape or x)]


def slope(graph: Graph, arrays: tuple[np.ndarray, ...], along: dict[int, np.ndarray], step: float = 1e-4) -> float:
    """Return the derivative along a direction by central differences of fourth order."""
    run = interpret(graph, NUMPY)

    def at(offset: float) -> float:
        return float(run(*(x + offset * step * along[i] if i in along else x for i, x in enumerate(arrays)))[0])

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("sample", differentiable(), ids=str)
def test_derivatives_equal_finite_differences(sample, order):
    graph = sample.graph()
    loss = smooth(tuple(x for x in graph.outputs if x.dtype in FLOATS), graph)
    if order == 2:
        loss = smooth(gradient(loss.outputs[0], [graph.inputs[i] for i in places(sample)]), graph)
    flows = gradient(loss.outputs[0], [graph.inputs[i] for i in places(sample)])
    values = interpret(Graph(graph.inputs, flows), NUMPY)(*sample.arrays)
    assert [(x.shape, x.dtype) for x in values] == [(sample.arrays[i].shape, np.float64) for i in places(sample)]
    rng = np.random.default_rng(0)
    for _ in range(2):
        along = {i: np.asarray(rng.normal(size=x.shape)) for i, x in enumerate(sample.arrays) if i in places(sample)}
        along = {i: v / np.sqrt(v.size) for i, v in along.items()}
        expected = slope(loss, sample.arrays, along)
        found = sum(float((x * v).sum()) for x, v in zip(values, along.values(), strict=True))
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_every_differentiable_op_is_covered_by_these_tests():
    tested = {sample.op for sample in differentiable()}
    whole = {"equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_not", "is_finite", "argmax",
             "pool_argmax", "argsort", "array", "iota", "random_bits", "cast", *UNSMOOTH}  # fmt: skip
    assert tested == set(samples()) - whole


def run(function, *arrays):
    """Run a function of nodes on arrays; overflow and division by zero raise."""
    graph = trace(function, *(Spec(x.shape, x.dtype.name) for x in arrays))
    results = interpret(graph, STRICT)(*arrays)
    return results[0] if len(results) == 1 else results


def slopes(function, *arrays):
    """Return the gradient of the sum of a function with respect to its first operand."""
    return run(lambda x, *rest: gradient(f.sum(function(x, *rest)), [x]), *arrays)


# -- limits ------------------------------------------------------------------------------------------------------------
FAR = np.array([-1000.0, -800.0, -0.0, 0.0, 800.0, 1000.0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("op", "values", "gradients"),
    [
        (ops.sigmoid, [0, 0, 0.5, 0.5, 1, 1], [0, 0, 0.25, 0.25, 0, 0]),
        (ops.softplus, [0, 0, np.log(2), np.log(2), 800, 1000], [0, 0, 0.5, 0.5, 1, 1]),
        (ops.silu, [0, 0, 0, 0, 800, 1000], [0, 0, 0.5, 0.5, 1, 1]),
        (ops.gelu, [0, 0, 0, 0, 800, 1000], [0, 0, 0.5, 0.5, 1, 1]),
        (ops.relu, [0, 0, 0, 0, 800, 1000], [0, 0, 0, 0, 1, 1]),
    ],
)
def test_activations_neither_overflow_nor_lose_their_gradient(op, values, gradients, dtype):
    np.testing.assert_allclose(run(op, FAR.astype(dtype)), values, rtol=1e-6)
    np.testing.assert_allclose(slopes(op, FAR.astype(dtype)), gradients, rtol=1e-6, atol=1e-30)


def test_softmax_and_cross_entropy_are_stable_for_scores_of_a_thousand():
    scores = np.array([[1000.0, -1000.0, 0.0], [-1000.0, -1000.0, -1000.0]])
    labels = np.array([1, 2], "int32")
    loss = run(ops.softmax_cross_entropy, scores, labels)
    np.testing.assert_allclose(loss, [2000.0, np.log(3)], rtol=1e-14)
    expected = [[1, -1, 0], [1 / 3, 1 / 3, -2 / 3]]
    np.testing.assert_allclose(slopes(ops.softmax_cross_entropy, scores, labels), expected, rtol=1e-14)
    np.testing.assert_allclose(run(partial(f.log_softmax, axis=-1), scores)[0], [0, -2000, -1000])
    np.testing.assert_allclose(run(partial(f.softmax, axis=-1), scores)[1], [1 / 3] * 3)


def test_small_probabilities_keep_their_precision():
    x = np.array([-40.0, -700.0])
    np.testing.assert_allclose(run(ops.sigmoid, x), np.exp(x), rtol=1e-15)
    np.testing.assert_allclose(run(ops.softplus, x), np.exp(x), rtol=1e-15)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x**3.0, 0.0), (lambda x: x**1.0, 1.0), (lambda x: x**0.0, 0.0),
        (lambda x: x ** (x * 0.0 + 2.0), 0.0), (lambda x: x ** (x * 0.0), 0.0), (lambda x: 0.0**x, 0.0),
        (lambda x: ops.abs(x), 0.0), (lambda x: ops.maximum(x, 0.0), 0.5),
    ],
)  # fmt: skip
def test_derivatives_at_zero_have_the_expected_values(function, expected):
    assert slopes(function, np.zeros(1)).tolist() == [expected]


def test_equal_largest_entries_share_the_gradient():
    x = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    np.testing.assert_allclose(slopes(lambda x: ops.max(x, axis=(1,)), x), [[0.5, 0, 0.5], [1 / 3] * 3])


def test_stop_passes_values_but_no_gradient():
    assert slopes(lambda x: x * ops.stop(x), np.array([3.0])).tolist() == [3.0]


def test_a_gradient_takes_the_dtype_back_through_a_cast():
    result = slopes(lambda x: f.cast(x, "float64") * 3.0, np.ones(2, "float32"))
    assert (result.dtype, result.tolist()) == (np.dtype("float32"), [3.0, 3.0])


def test_dropout_drops_everything_at_a_rate_that_rounds_to_one():
    key = np.array([1, 2], "uint32"), *(np.array(0, "uint32"),) * 3
    result = run(lambda *operands: ops.dropout(*operands, stream=0), np.ones(999), np.array(1 - 1e-12), *key)
    assert not result.any()


def test_nan_passes_through_rectifiers_and_pools():
    x = np.array([[[np.nan, 1.0, -1.0, 2.0]]])
    how = {"window": (2,), "stride": (2,), "padding": ((0, 0),)}
    graph = trace(lambda x: (ops.relu(x), ops.max_pool(x, **how)), Spec(x.shape, "float64"))
    rectified, pooled = interpret(graph, NUMPY)(x)
    assert np.isnan(rectified[0, 0, 0])
    assert np.isnan(pooled[0, 0, 0])
    assert pooled[0, 0, 1] == 2.0


# -- errors of rules ---------------------------------------------------------------------------------------------------
X, V, B, N, W = symbol((2, 3)), symbol((3,)), symbol((2, 3), "bool"), symbol((2,), "int32"), symbol((2,), "uint32")
IMAGE, KERNEL = symbol((2, 4, 8, 8)), symbol((6, 4, 3, 3))
CONVOLVE = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
POOL = {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}
SCAN = f.scan(lambda h, x: ([h + x], []), [V], [X])[0][0].inputs[0]
BODY = SCAN.attrs["body"]
LOOP = {"body": BODY, "carries": 1, "sequences": 1, "length": 2, "reverse": False}


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "message"),
    [
        ("add", (X, N), {}, r"add\(\(2, 3\), \(2,\)\): sides 3 and 2 do not broadcast"),
        ("where", (X, X, X), {}, "it takes bool, not float32"),
        ("where", (B, X, N), {}, "do not broadcast"),
        ("logical_and", (B, X), {}, "dtypes bool and float32 do not mix"),
        ("logical_not", (X,), {}, "it takes bool"),
        ("greater", (B, B), {}, "it takes numbers, not bool"),
        ("is_finite", (N,), {}, "it takes floats, not int32"),
        ("cast", (X,), {"dtype": "float8"}, "there is no dtype 'float8'"),
        ("sum", (X,), {"axis": (2,)}, r"sum\(\(2, 3\)\): there is no axis 2: the rank is 2"),
        ("sum", (X,), {"axis": (-1,)}, "there is no axis -1"),
        ("max", (symbol((0, 3)),), {"axis": (0,)}, "an empty side has no maximum"),
        ("argmax", (symbol((0,)),), {"axis": 0}, "an empty side has no maximum"),
        ("reshape", (X,), {"shape": (4,)}, r"shape \(4,\) holds 4 elements, not 6"),
        ("permute", (X,), {"axes": (0, 0)}, r"axes \(0, 0\) must name each of the 2 axes once"),
        ("stretch", (X,), {"shape": (3,)}, r"it does not broadcast to \(3,\)"),
        ("stretch", (X,), {"shape": (2, 4)}, "do not broadcast"),
        ("slice", (X,), {"start": (0,), "stop": (1,), "step": (1,)}, r"start \(0,\) must have 2 entries"),
        ("slice", (V,), {"start": (0,), "stop": (4,), "step": (1,)}, "0:4:1 is not a slice of a side of 3"),
        ("slice", (V,), {"start": (0,), "stop": (3,), "step": (0,)}, "0:3:0 is not a slice"),
        ("pad", (V,), {"low": (-1,), "high": (0,), "interior": (0,), "value": 0.0}, "padding cannot be negative"),
        ("concat", (X, V), {"axis": 0}, "the sides must be equal, except along axis 0"),
        ("concat", (), {"axis": 0}, "at least one operand is needed"),
        ("iota", (), {"shape": (2,), "axis": 1, "dtype": "int32"}, "there is no axis 1"),
        ("take", (X, V), {"axis": 0}, "it takes places that are int32 or int64, not float32"),
        ("take", (X, N), {"axis": 2}, "there is no axis 2"),
        ("scatter_add", (X, N, V), {"axis": 0}, r"the updates must have shape \(2, 3\)"),
        ("matmul", (X, V), {}, "both operands need at least two axes. Reshape the vector."),
        ("matmul", (B, B), {}, "inner sides differ"),
        ("convolution", (X, KERNEL), CONVOLVE, "need equally many sides"),
        ("convolution", (IMAGE, KERNEL), {**CONVOLVE, "groups": 3}, r"4 channels in 3 group\(s\) do not fit 6 kernels"),
        ("convolution", (IMAGE, KERNEL), {**CONVOLVE, "stride": (1,)}, r"stride \(1,\) must have 2 entries"),
        ("convolution", (IMAGE, KERNEL), {**CONVOLVE, "dilation": (4, 1)}, "a window of 9 does not fit a side of 8"),
        ("convolution", (IMAGE, KERNEL), {**CONVOLVE, "stride": (0, 1)}, "windows, strides and dilations start at 1"),
        ("convolution_input", (IMAGE, KERNEL), {**CONVOLVE, "shape": (2, 4, 8, 8)}, "it must have the shape of"),
        ("convolution_kernel", (IMAGE, IMAGE), {**CONVOLVE, "shape": (6, 4, 3, 3)}, "it must have the shape of"),
        ("max_pool", (X,), POOL, "samples need a batch axis, a channel axis and sides to pool"),
        ("max_pool", (IMAGE,), {**POOL, "padding": ((2, 0), (0, 0))}, "must be smaller than the window"),
        ("sum_unpool", (IMAGE,), {**POOL, "shape": (2, 4, 8, 8)}, r"the result, \(2, 4, 4, 4\)"),
        ("pool_select", (IMAGE, N), POOL, "it must have the shape of the result"),
        ("random_bits", (W, N, N, N), {"shape": (2,), "stream": 0}, r"the key has shape \(2,\)"),
        ("scan", (V,), LOOP, "the body takes 2 values, not 1"),
        ("scan", (V, V), LOOP, r"operand 1 must have shape \(2, 3\) for this body"),
        ("scan", (V, symbol((2, 3), "float64")), LOOP, "operand 1 is float64; the body takes float32"),
        ("part", (X,), {"index": 0, "shape": (), "dtype": "float32"}, "only a scan has parts"),
        ("neg", (SCAN,), {}, "a scan has several results. Select one of them with part."),
        ("softmax", (X,), {"axis": 2}, "there is no axis 2"),
        ("softmax_cross_entropy", (X, V), {}, r"scores \(..., classes\) need labels of shape \(2,\)"),
        ("softmax_cross_entropy", (X, symbol((2,))), {}, "it takes labels that are integers, not float32"),
        ("layer_norm", (X, V, X), {"epsilon": 1e-5}, r"scale and shift must have shape \(3,\)"),
        ("attention", (X, X, V), {"causal": False}, "the operands must be queries"),
        ("attention", (X, X, X, symbol((3, 2, 2), "bool")), {"causal": False}, r"a mask must fit \(2, 2\)"),
        ("attention", (X, symbol((5, 3)), symbol((5, 3))), {"causal": True}, "causal attention is of a sequence"),
        ("attention", (X, X, X, symbol((2, 2))), {"causal": False}, "it takes bool, not float32"),
        ("dropout", (X, V, W, W, W, W), {"stream": 0}, "the rate is a scalar"),
    ],
    ids=str,
)  # fmt: skip
def test_an_ops_rule_reports_what_is_wrong(op, operands, attrs, message):
    with pytest.raises(SigmaGraphError, match=message):
        OPS[op](*operands, **attrs)


def test_a_scan_whose_carry_changes_shape_or_dtype_is_refused():
    with pytest.raises(SigmaGraphError, match=r"carry 0 has shape \(\) before a step and \(3,\) after it"):
        f.scan(lambda h, x: ([h + x], []), [symbol(())], [X])
    with pytest.raises(SigmaGraphError, match="operand 0 is float32; the body takes float32 and returns int32"):
        f.scan(lambda h, x: ([f.cast(h, "int32")], []), [V], [X])


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "shape"),
    [
        ("add", ((0, 3), (1, 3)), {}, (0, 3)),
        ("sum", ((0, 3),), {"axis": (0,)}, (1, 3)),
        ("matmul", ((2, 0), (0, 3)), {}, (2, 3)),
        ("convolution", ((0, 4, 8, 8), (6, 4, 3, 3)), CONVOLVE, (0, 6, 6, 6)),
        ("slice", ((3,),), {"start": (1,), "stop": (1,), "step": (1,)}, (0,)),
        ("pad", ((0,),), {"low": (1,), "high": (2,), "interior": (3,), "value": 0.0}, (3,)),
    ],
)
def test_an_axis_of_length_zero_is_allowed_where_it_is_meaningful(op, operands, attrs, shape):
    graph = Graph(*zip(*((x, x) for x in map(symbol, operands)), strict=True))
    node = OPS[op](*graph.inputs, **attrs)
    result = interpret(Graph(graph.inputs, (node,)), NUMPY)(*(np.ones(s, "float32") for s in operands))[0]
    assert node.shape == result.shape == shape


def test_a_fact_that_no_row_has_and_a_word_that_is_none_of_a_facts_are_refused():
    with pytest.raises(SigmaGraphError, match="op 'acme:odd': there is no fact 'rundung'"):
        ops.op("acme:odd", shapes.same, dtypes.floating, rundung="once")
    with pytest.raises(SigmaGraphError, match=r"op 'acme:odd': there is no fact 'entrys'\..*entries"):
        ops.op("acme:odd", shapes.same, dtypes.floating, entrys="apart")
    with pytest.raises(SigmaGraphError, match="op 'acme:odd': rounding is one of exact, once, function .got 'twice'."):
        ops.op("acme:odd", shapes.same, dtypes.floating, rounding="twice")
    assert "acme:odd" not in OPS


def test_an_op_of_a_plugin_may_name_its_function_of_the_array_api():
    try:
        cosh = ops.op("acme:cosh", shapes.same, dtypes.floating, standard="cosh")
        assert cosh(np.array([0.0, 1.0])) == pytest.approx([1.0, 1.5430806348152437])
    finally:
        OPS.pop("acme:cosh", None)
        MEANINGS.pop("acme:cosh", None)


def test_zeros_keep_their_sign_in_elementwise_ops_and_moves_but_for_the_documented_ones():
    other = {row.name for row in ops.elementwise() if not row.signed and row.expansion is None}
    assert other == {"pow", "maximum", "minimum", "sign"}
    assert {"reshape", "pad", "concat", "take", "slice", "stretch"} <= ops.select_ops(signed=True)
    assert not ops.select_ops(signed=True) & {"sum", "max", "relu", "softmax"}


def test_a_graph_takes_indices_if_an_op_or_the_body_of_a_scan_does():
    places = np.array([0, 2])

    def repeat(add):
        return trace(lambda x: f.scan(lambda c: ([c + add(c)], []), [x], [], length=2)[0][0], Spec((3,)))

    assert ops.takes_indices(trace(lambda x: f.take(x, places), Spec((3,))))
    assert ops.takes_indices(trace(lambda x: f.scatter_add(x, places, np.ones(2, "float32"), axis=0), Spec((3,))))
    assert ops.takes_indices(repeat(lambda c: f.sum(f.take(c, places))))
    assert not ops.takes_indices(repeat(f.sum))
