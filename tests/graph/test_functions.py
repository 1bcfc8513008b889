"""The functions that layers are written in agree with NumPy and closed forms."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Spec, symbol, trace

NUMPY = numpy_namespace()
RNG = np.random.default_rng(3)
X = RNG.normal(size=(2, 3, 4))
SCORES = np.array([[0.1, 0.9, 0.5], [3.0, 3.0, 2.0], [np.nan, np.nan, np.nan]])
LABELS = np.array([2, 1, 0], "int32")


def run(function, *arrays):
    results = interpret(trace(function, *(Spec(x.shape, x.dtype.name) for x in arrays)), NUMPY)(*arrays)
    return results[0] if len(results) == 1 else results


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: f.sum(x), X.sum()),
        (lambda x: f.sum(x, -1), X.sum(-1)),
        (lambda x: f.sum(x, (0, -1), keepdims=True), X.sum((0, 2), keepdims=True)),
        (lambda x: f.mean(x, 1), X.mean(1)),
        (lambda x: f.mean(x), X.mean()),
        (lambda x: f.max(x, [0, 1]), X.max((0, 1))),
        (lambda x: f.min(x, -2, keepdims=True), X.min(-2, keepdims=True)),
        (lambda x: f.variance(x, -1), X.var(-1)),
        (lambda x: f.variance(x, correction=1.0), X.var(ddof=1)),
        (lambda x: f.argmax(x), X.argmax(-1)),
        (lambda x: f.argmax(x, 1, keepdims=True), X.argmax(1, keepdims=True)),
        (lambda x: f.norm(x, -1), np.linalg.norm(X, axis=-1)),
        (lambda x: f.log_sum_exp(x, (0, 2)), np.log(np.exp(X).sum((0, 2)))),
        (lambda x: f.softmax(x, 1), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
        (lambda x: f.log_softmax(x), X - np.log(np.exp(X).sum(-1, keepdims=True))),
        (lambda x: f.clip(x, -0.5, 0.25), X.clip(-0.5, 0.25)),
        (lambda x: f.square(x), X**2),
        (lambda x: f.leaky_relu(x, 0.2), np.where(X > 0, X, 0.2 * X)),
        (lambda x: f.elu(x, 0.7), np.where(X > 0, X, 0.7 * np.expm1(X))),
        (lambda x: f.less(x, 0.0), X < 0),
        (lambda x: f.less_equal(x, x), X <= X),
        (lambda x: f.not_equal(x, 0.0), X != 0),
        (lambda x: f.cast(x, "int32"), X.astype("int32")),
        (lambda x: f.reshape(x, (-1, 2)), X.reshape(-1, 2)),
        (lambda x: f.reshape(x, [24]), X.reshape(24)),
        (lambda x: f.flatten(x), X.reshape(2, 12)),
        (lambda x: f.flatten(x, start=0), X.reshape(24)),
        (lambda x: f.permute(x, (-1, 0, 1)), X.transpose(2, 0, 1)),
        (lambda x: f.swap_axes(x, 0, -1), X.swapaxes(0, -1)),
        (lambda x: f.stretch(f.expand(x, 1), (2, 5, 3, 4)), np.broadcast_to(X[:, None], (2, 5, 3, 4))),
        (lambda x: f.expand(x, -1), X[..., None]),
        (lambda x: f.squeeze(f.expand(f.expand(x, 0), -1)), X),
        (lambda x: f.squeeze(f.expand(x, 1), 1), X),
        (lambda x: f.slice(x, (0, 1, 0), (2, 3, 4), (1, 1, 3)), X[:, 1:3, ::3]),
        (lambda x: f.slice(x, (1, 0, 0), (2, 3, 1)), X[1:, :, :1]),
        (lambda x: f.narrow(x, -1, 1, 4, 2), X[..., 1:4:2]),
        (lambda x: f.split(x, 2)[1], X[..., 2:]),
        (lambda x: f.split(x, (1, 2), axis=1)[1], X[:, 1:]),
        (lambda x: f.concat(x, x, axis=1), np.concatenate([X, X], 1)),
        (lambda x: f.stack(x, x, x, axis=-1), np.stack([X] * 3, -1)),
        (lambda x: f.stack(x, x), np.stack([X, X])),
        (lambda x: f.pad(x, (0, 1, 0), (2, 0, 0), value=7.0), np.pad(X, ((0, 2), (1, 0), (0, 0)), constant_values=7)),
        (lambda x: f.iota((2, 3), 0), [[0, 0, 0], [1, 1, 1]]),
        (lambda x: f.zeros((2,)) + f.ones([2]), [1, 1]),
        (lambda x: f.full(3, (2, 1), "int64"), [[3], [3]]),
    ],
)
def test_functions_agree_with_numpy(function, expected):
    result = run(function, X)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-15)


def test_take_and_scatter_add_accept_negative_axes():
    places = np.array([2, 0, 2], "int64")
    np.testing.assert_array_equal(run(lambda x, i: f.take(x, i, -1), X, places), X[..., places])
    np.testing.assert_array_equal(run(f.take, X, LABELS[1:]), X[[1, 0]])
    added = run(lambda x, i, u: f.scatter_add(x, i, u, axis=-1), X, places, np.ones((2, 3, 3)))
    np.testing.assert_allclose(added, X + np.array([1, 0, 2, 0]), rtol=1e-15)


def test_one_hot_marks_each_label():
    assert run(lambda labels: f.one_hot(labels, 3), LABELS).tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert run(lambda labels: f.one_hot(labels, 3, "bool"), LABELS[None]).shape == (1, 3, 3)


@pytest.mark.parametrize("offset", [1e4, 1e5, 1e6])
def test_the_variance_of_numbers_far_from_zero_is_that_of_their_deviations(offset):
    x = (RNG.normal(size=(3000, 4)) + offset).astype("float32")
    wide = x.astype("float64")
    np.testing.assert_allclose(run(lambda x: f.variance(x, 0), x), wide.var(0), rtol=5e-6)
    np.testing.assert_allclose(run(lambda x: f.variance(x, 1, correction=1.0), x), wide.var(1, ddof=1), rtol=5e-6)
    slopes = run(lambda x: gradient(f.sum(f.variance(x, 0)), [x]), x)
    np.testing.assert_allclose(slopes, 2 * (wide - wide.mean(0)) / len(x), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("k", "expected"), [(1, [False, True, False]), (2, [True, True, False])])
def test_a_label_counts_as_correct_unless_k_classes_score_higher_and_never_for_nan(k, expected):
    assert run(lambda scores, labels: f.hits(scores, labels, k), SCORES, LABELS).tolist() == expected


def test_top_k_accuracy_agrees_with_sorting():
    scores, labels = RNG.normal(size=(50, 7)), RNG.integers(0, 7, 50)
    for k in range(1, 8):
        expected = (np.argsort(-scores, -1)[:, :k] == labels[:, None]).any(-1)
        assert (run(lambda s, t, k=k: f.hits(s, t, k), scores, labels) == expected).all()


def test_layer_norm_has_mean_zero_and_variance_one():
    result = run(lambda x: f.layer_norm(x, f.ones((4,), "float64"), f.zeros((4,), "float64"), epsilon=0.0), X)
    np.testing.assert_allclose(result.mean(-1), 0, atol=1e-15)
    np.testing.assert_allclose(result.var(-1), 1, rtol=1e-13)


def test_log_sum_exp_handles_extreme_values():
    x = np.array([[1000.0, 1000.0], [-1000.0, -1000.0], [-np.inf, -np.inf], [0.0, -np.inf], [np.inf, 0.0]])
    expected = [1000 + np.log(2), -1000 + np.log(2), -np.inf, 0.0, np.inf]
    np.testing.assert_allclose(run(lambda x: f.log_sum_exp(x, -1), x), expected, rtol=1e-15)


def test_the_gradient_of_the_norm_of_zeros_is_zero():
    slope = run(lambda x: gradient(f.sum(f.norm(x, -1)), [x]), np.array([[0.0, 0.0], [3.0, 4.0]]))
    np.testing.assert_allclose(slope, [[0, 0], [0.6, 0.8]])


def test_windows_take_one_setting_for_all_sides_or_one_for_each():
    x, w = symbol((2, 4, 9, 8)), symbol((6, 2, 3, 3))
    node = f.convolution(x, w, stride=(2, 1), padding=1, groups=2)
    assert node.shape == (2, 6, 5, 8)
    assert node.attrs == {"stride": (2, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 2}
    assert f.convolution(x, w, padding=[(0, 2), 1], dilation=2, groups=2).shape == (2, 6, 7, 6)
    assert f.max_pool(x, 2).attrs == {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0))}
    assert f.sum_pool(x, (3, 2), stride=1, padding=1).shape == (2, 4, 9, 9)


def test_a_transposed_convolution_inverts_the_shapes_of_a_convolution():
    how = {"stride": (2, 3), "padding": [(0, 1), 1], "dilation": (1, 2), "groups": 2}
    x, w = symbol((2, 6, 4, 3)), symbol((6, 2, 3, 2))
    node = f.convolution_transpose(x, w, **how, output_padding=(1, 2))
    assert node.shape == (2, 4, 3 * 2 + 3 - 1 + 1, 2 * 3 + 3 - 2 + 2)
    assert f.convolution(node, w, **how).shape == x.shape
    with pytest.raises(SigmaGraphError, match=r"it must have the shape of the result, \(2, 6, 5, 3\)"):
        f.convolution_transpose(x, w, **how, output_padding=(2, 2))


def test_a_transposed_convolution_adds_filters():
    x, w = np.array([[[1.0, 2.0]]]), np.array([[[1.0, 10.0, 100.0]]])
    np.testing.assert_array_equal(f.convolution_transpose(x, w, stride=2), [[[1, 10, 102, 20, 200]]])


def test_a_scan_iterates_over_the_leading_axis():
    def body(total, x, factor):
        total = total + x * factor
        return [total], [total, x]

    def walk(x, factor):
        (last,), (totals, same) = f.scan(body, [f.zeros((3, 4), "float64")], [x], [factor])
        (_,), (backwards, _) = f.scan(body, [f.zeros((3, 4), "float64")], [x], [factor], reverse=True)
        return last, totals, same, backwards

    last, totals, same, backwards = run(walk, X, np.array(2.0))
    np.testing.assert_allclose(totals, 2 * X.cumsum(0))
    np.testing.assert_allclose(backwards, 2 * X[::-1].cumsum(0)[::-1])
    np.testing.assert_allclose(last, 2 * X.sum(0))
    np.testing.assert_allclose(same, X)


def test_arrays_in_the_body_of_a_scan_are_its_constants():
    factors, offset = np.array([1.0, 2.0, 3.0]), [0.5, 0.0, -0.5]

    def inner(y):
        return f.scan(lambda c, x: ([c + x * factors[::-1]], []), [y], [y[None] * np.ones((2, 1))])[0][0]

    def outer(c, xs):
        return f.scan(lambda c, x: ([inner(c * factors) + x + offset], [c]), [c], [xs])

    graph = trace(lambda c, xs: outer(c, xs)[0], Spec((3,), "float64"), Spec((2, 3), "float64"))
    bodies = [node.attrs["body"] for node in graph if node.op == "scan"]
    bodies += [node.attrs["body"] for body in bodies for node in body if node.op == "scan"]
    assert len(bodies) == 2
    assert not [node for body in bodies for node in body if node.op == "array"]
    c, xs = np.array([1.0, -1.0, 2.0]), np.array([[0.1, 0.2, 0.3], [1.0, 1.0, 1.0]])
    expected = c
    for x in xs:
        expected = expected * factors * (1 + 2 * factors[::-1]) + x + offset
    np.testing.assert_allclose(f.evaluate(lambda c, xs: outer(c, xs)[0][0], c, xs), expected, rtol=1e-12)


def test_the_body_of_a_scan_may_use_nodes_of_the_surrounding_graph():
    def build(h, x, w, scale):
        def body(h, x):
            (inner,), _ = f.scan(lambda c: ([c + h * scale], []), [x], [], length=2)
            return [f.tanh(h @ (w * scale) + inner)], [scale, w]

        (last,), (scales, weights) = f.scan(body, [h], [x])
        return [last, scales, weights]

    random = np.random.default_rng(0)
    h, x, w, scale = (random.normal(size=s) for s in ((2, 3), (4, 2, 3), (3, 3), ()))
    last, scales, weights = run(build, h, x, w, scale)
    for row in x:
        h = np.tanh(h @ (w * scale) + row + 2 * h * scale)
    np.testing.assert_allclose(last, h, rtol=1e-12)
    np.testing.assert_array_equal(scales, np.full(4, scale))
    np.testing.assert_array_equal(weights, np.stack([w] * 4))


def test_what_a_loop_need_not_repeat_is_computed_before_it():
    def build(h, x, w):
        def body(h, x):
            return [h @ (f.tanh(w) @ f.concat(w, np.ones((3, 3)), axis=0)[:3] * 2.0) + x * 3.0], []

        return f.scan(body, [h], [x])[0][0]

    graph = trace(build, (2, 3), (4, 2, 3), (3, 3))
    (scan,) = (node for node in graph if node.op == "scan")
    inside = [node.op for node in scan.attrs["body"] if node.op != "input"]
    assert sorted(inside) == ["add", "constant", "matmul", "mul"]
    assert len(scan.inputs) == 3  # carry, sequence and product


def test_a_scan_without_sequences_needs_a_length():
    def powers(x):
        return f.scan(lambda p, x: ([p * x], [p]), [f.ones((), "float64")], [], [x], length=5)[1]

    np.testing.assert_allclose(run(powers, np.array(3.0)), [1, 3, 9, 27, 81])
    with pytest.raises(SigmaGraphError, match="the number of steps is unknown"):
        f.scan(lambda p: ([p], []), [symbol(())], [])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda x: f.sum(x, 3), r"axis 3 of shape \(2, 3, 4\): the rank is 3"),
        (lambda x: f.softmax(x, -4), r"axis -4 of"),
        (lambda x: f.expand(x, 4), r"axis 4 of"),
        (lambda x: f.squeeze(x, 1), r"squeeze\(\(2, 3, 4\)\): axes \(1,\) have sides other than 1. Use reshape."),
        (lambda x: f.reshape(x, (5, -1)), r"shape \(5, 4\) holds 20 elements, not 24"),
        (lambda x: f.split(x, 3), r"split\(\(2, 3, 4\)\): 3 does not divide a side of 4"),
        (lambda x: f.split(x, (1, 2)), r"\(1, 2\) does not divide a side of 4"),
        (lambda x: f.convolution(x, symbol((1, 3, 2)), stride=(1, 1)), r"stride \(1, 1\) must have 1 entries"),
        (
            lambda x: f.scan(lambda h, x: ([], []), [x], [x]),
            r"body must return \(\[1 new carries\], \[outputs\]\), not \(",
        ),
        (lambda x: f.scan(lambda h, x: (h, x), [x], [x]), r"not \(input float32\[2, 3, 4\], input"),
        (lambda x: f.scan(lambda h, x: h, [x], [x]), "not input float32"),
        (lambda x: f.scan(lambda h, x: ([h], []), x, [x]), "scan: carry must be a list of nodes"),
    ],
)
def test_functions_refuse_invalid_operands(build, message):
    with pytest.raises(SigmaGraphError, match=message):
        build(symbol((2, 3, 4)))


def test_reshape_infers_a_side_of_an_empty_array():
    assert f.reshape(symbol((0, 4)), (-1, 4)).shape == (0, 4)
    assert prod(f.flatten(symbol((0, 3, 4))).shape) == 0
