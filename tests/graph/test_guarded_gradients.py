"""Gradients of ``where``: what is not selected has none, whatever its slopes are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel import functions as f
from sigma_kernel.graph import dtypes, ops, shapes
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.node import OPS, Graph, symbol
from sigma_kernel.graph.ops import Op
from sigma_kernel.graph.rewriting import rewrite

INF, NAN = np.inf, np.nan


def slopes(function, *arrays, argument=0):
    """Return the gradient of the sum of a function's entries."""
    return f.gradient(lambda *nodes: f.sum(function(*nodes)), argument)(*map(np.array, arrays))


def guarded(chain, good=lambda x: x > 0.0):
    return lambda x: f.where(good(x), chain(x), 0.0)


# -- closed forms ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (guarded(f.log), [-1.0, 0.0, 2.0], [0, 0, 0.5]),
        (guarded(f.sqrt), [-1.0, 0.0, 4.0], [0, 0, 0.25]),
        (guarded(f.log1p, lambda x: x > -1.0), [-1.0, 1.0], [0, 0.5]),
        (guarded(lambda x: x**-1.5), [0.0, 1.0], [0, -1.5]),
        (guarded(lambda x: x**x), [-1.0, 0.0, 1.0], [0, 0, 1]),
        (guarded(lambda x: 3.0 / x), [0.0, 2.0], [0, -0.75]),
        (guarded(lambda x: 1.0 % x), [0.0, 2.0], [0, 0]),
        (guarded(f.exp, lambda x: x < 9.0), [0.0, 1e9, INF], [1, 0, 0]),
        (guarded(f.sin, f.is_finite), [0.0, INF, NAN], [1, 0, 0]),
        (guarded(lambda x: x * x * x, f.is_finite), [2.0, INF, NAN], [12, 0, 0]),
        (guarded(lambda x: x * f.log(x)), [0.0, 1.0], [0, 1]),
        (guarded(lambda x: f.tanh(f.log(f.sqrt(x)))), [-1.0, 0.0, 1.0], [0, 0, 0.5]),
        (guarded(lambda x: f.silu(f.log(x))), [-1.0, 0.0, 1.0], [0, 0, 0.5]),
        (lambda x: f.where(x > 0.5, x, f.sqrt(-x)), [-4.0, 1.0], [-0.25, 1]),
        (lambda x: f.where(x > 0.0, f.where(x < 9.0, f.log(x), f.exp(x)), x), [-1.0, 0.0, 4.0], [1, 1, 0.25]),
        (lambda x: f.where(x == 0.0, 1.0, f.sin(x) / x), [0.0, np.pi], [0, -1 / np.pi]),
        (lambda x: f.where(x > 0.0, f.sqrt(f.where(x < 9.0, x, 1.0)), 0.0), [-1.0, 0.0, 4.0, 9.0], [0, 0, 0.25, 0]),
        (guarded(lambda x: x / 0.0, lambda x: x > 9.0), [1.0], [0]),
        (guarded(lambda x: x * INF, lambda x: x > 9.0), [1.0], [0]),
        (lambda x: 5.0 * f.where(x > 0.0, f.log(x), 0.0) + x, [0.0, 1.0], [1, 6]),
    ],
)  # fmt: skip
def test_what_is_not_selected_has_no_gradient(function, at, expected):
    np.testing.assert_allclose(slopes(function, at), expected, rtol=1e-14)


def test_roots_behind_a_guard_have_no_gradient_at_zero():
    def length(x):
        squares = f.sum(x * x, axis=1)
        return f.where(squares > 0.0, f.sqrt(squares), 0.0)

    np.testing.assert_allclose(slopes(length, [[3.0, 4.0], [0.0, 0.0]]), [[0.6, 0.8], [0, 0]], rtol=1e-14)


def test_the_logarithm_of_no_exponentials_has_no_gradient_behind_a_guard():
    def total(x):
        found = f.log_sum_exp(x, axis=1)
        return f.where(f.is_finite(found), found, 0.0)

    x = [[-INF, -INF], [0.0, np.log(3.0)]]
    np.testing.assert_allclose(slopes(total, x), [[0, 0], [0.25, 0.75]], rtol=1e-14)


@pytest.mark.parametrize("function", [f.softmax, f.log_softmax, lambda x: f.layer_norm(x, np.ones(2), np.ones(2))])
def test_rows_that_are_not_selected_have_no_gradient(function):
    def chosen(x):
        return f.where(f.is_finite(f.sum(x, 1, keepdims=True)), function(f.exp(x)) ** 2.0, 0.0)

    x = np.array([[0.0, 0.5], [NAN, 0.0], [-INF, -INF], [1.0, -0.5]])
    found = slopes(chosen, x)
    np.testing.assert_array_equal(found[1:3], 0)
    np.testing.assert_allclose(found[::3], slopes(lambda x: function(f.exp(x)) ** 2.0, x[::3]), rtol=1e-12)
    assert found[::3].all()


def test_missing_targets_are_left_out_of_a_mean_of_squares():
    x, w, known = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]), np.array([0.5, -1.0]), np.array([True, False, True])
    y = np.where(known, [1.0, 0.0, 2.0], NAN)
    found = slopes(lambda w: f.where(f.is_finite(f.constant(y, "float64")), (x @ w - y) ** 2, 0.0), w)
    np.testing.assert_allclose(found, 2 * x[known].T @ (x[known] @ w - y[known]), rtol=1e-14)


# -- users and forms ---------------------------------------------------------------------------------------------------
def test_a_guard_holds_for_all_users_of_a_value():
    def pieces(x):
        h = f.sqrt(x)
        return f.where(x > 1.0, h, f.where(x > 0.0, 3.0 * h, 0.0)) + f.where(x > 2.0, h * h, 7.0)

    expected = [0, 0, 3 / (2 * np.sqrt(0.5)), 1 / 4 + 1]
    np.testing.assert_allclose(slopes(pieces, [-1.0, 0.0, 0.5, 4.0]), expected, rtol=1e-14)


def test_a_user_without_a_guard_keeps_the_slope():
    for order in (1, -1):
        found = slopes(
            lambda x, order=order: f.add(*[(h := x * x * x) * 1.0, f.where(x > 0.0, h, 0.0)][::order]), [-1.0, 2.0]
        )
        assert found.tolist() == [3, 24]
    assert slopes(lambda x: (h := f.sqrt(x)) + f.where(x > 0.0, h, 0.0), [0.0, 4.0]).tolist() == [INF, 0.5]


def test_a_guard_holds_where_operands_broadcast():
    total, count = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0], [4.0]])

    def mean(count):
        return f.where(count > 0.0, total / f.sqrt(count), 0.0)

    np.testing.assert_allclose(slopes(mean, count), [[0], [-7 / 16]], rtol=1e-14)
    found = slopes(lambda s: f.where([True, False, False], s * f.constant([3.0, INF, NAN], "float64"), 0.0), 2.0)
    assert found == 3
    np.testing.assert_allclose(slopes(lambda s: f.where(total > 9.0, f.log(s) * total, 0.0), 0.0), 0)
    found = slopes(lambda s: f.where([True, False], total / f.sqrt(s), 0.0), [4.0, 0.0])
    np.testing.assert_allclose(found, [-4 / 16, 0], rtol=1e-14)


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x.T,
        lambda x: f.reshape(x, (3, 2)),
        lambda x: x[:, 1:],
        lambda x: f.pad(x, (1, 0), (0, 1)),
        lambda x: f.concat(x, x, axis=0),
        lambda x: f.take(x, np.array([2, 0], "int32"), 1),
        lambda x: f.stretch(f.sum(x, 1, keepdims=True), (2, 3)),
        lambda x: f.max(x, 1),
    ],
)
def test_a_guard_holds_where_entries_move(move):
    x = np.array([[0.0, -1.0, 0.0], [4.0, 9.0, 16.0]])

    def chosen(x, root):
        return f.where(move(x) > 1.0, f.log(move(root(x))), 0.0)

    found = slopes(lambda x: chosen(x, f.sqrt), x)
    np.testing.assert_array_equal(found[0], 0)
    np.testing.assert_allclose(found, slopes(lambda x: chosen(x, lambda x: f.sqrt(f.where(x > 0.0, x, 0.1))), x))
    assert found[1].any()


def test_a_guard_in_the_body_of_a_loop_holds():
    def last(x):
        def body(h, x):
            return [h + f.where(x > 0.0, f.log(x), 0.0)], [f.where(x > 0.0, f.sqrt(x), x)]

        (h,), (rows,) = f.scan(body, [f.zeros((2,), "float64")], [x])
        return f.sum(h) + f.sum(rows)

    found = f.gradient(last)(np.array([[0.0, 4.0], [-1.0, 1.0]]))
    np.testing.assert_allclose(found, [[1, 0.25 + 0.25], [1, 1 + 0.5]], rtol=1e-14)
    found = slopes(lambda x: f.scan(lambda h, x: ([h + guarded(f.log)(x)], []), [x[0] * 0.0], [x])[0][0], [0.0, 4.0])
    assert found.tolist() == [0, 0.25]


def test_a_guard_of_what_a_loop_returns_holds():
    def roots(x):
        (_,), (sums,) = f.scan(lambda h, x: ([h + x], [h + x]), [f.zeros((), "float64")], [x])
        return guarded(f.log)(sums) + guarded(f.sqrt)(sums)

    assert slopes(roots, [0.0, 4.0]).tolist() == [0.5, 0.5]


def test_a_guard_in_the_expansion_of_a_composite_holds(monkeypatch):
    def expansion(x):
        return f.where(x > 0.0, f.log(x), 0.0)

    row = Op("test:log", OPS["exp"].shape, OPS["exp"].dtype, None, expansion)
    monkeypatch.setitem(OPS, "test:log", row)
    assert slopes(row, [-1.0, 0.0, 2.0]).tolist() == [0, 0, 0.5]
    assert slopes(lambda x: f.where(x < 3.0, row(f.sqrt(x)), x), [0.0, 1.0, 4.0]).tolist() == [0, 0.5, 1]


def test_an_op_along_an_axis_that_it_does_not_name_has_guards(monkeypatch):
    monkeypatch.setitem(OPS, "centre", Op(
        "centre", shapes.same, dtypes.floating, lambda g, z, x: g - f.mean(g, axis=-1, keepdims=True),
        lambda x: x - f.mean(x, axis=-1, keepdims=True), entries="along",
    ))  # fmt: skip
    found = slopes(lambda x: f.where(x > 0.0, OPS["centre"](f.log(x)) * [1.0, 2.0, 3.0], 0.0), [[1.0, 2.0, 4.0]])
    np.testing.assert_allclose(found, [[-1.0, 0.0, 0.25]])


def test_second_derivatives_have_guards_too():
    product = f.hessian_vector_product(lambda x: f.sum(f.where(x > 0.0, x * f.log(x), 0.0)))
    np.testing.assert_allclose(product(np.array([-1.0, 0.0, 4.0]), vector=np.ones(3)), [0, 0, 0.25], rtol=1e-14)

    def penalty(x):
        (slope,) = gradient(f.sum(f.where(x > 0.0, f.sqrt(x), 0.0)), [x])
        return f.where(x > 0.0, 1.0 / slope, 0.0)  # 2 sqrt(x)

    np.testing.assert_allclose(slopes(penalty, [0.0, 4.0]), [0, 0.5], rtol=1e-14)


# -- what stays as it was ----------------------------------------------------------------------------------------------
def count_choices(function, *shape):
    """Return how many times the gradient of a function of positive numbers selects."""
    x = symbol(shape or (3,))
    graph = rewrite(Graph((x,), gradient(f.sum(function(f.exp(x))), [x])))
    return sum(node.op == "where" for node in graph)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: f.sqrt(x) * f.log(x) / x, 0),
        (lambda x: f.sum(f.relu(x)) * x, 1),
        (f.leaky_relu, 2),
        (lambda x: f.clip(x, -1.0, 2.0), 9),
        (f.elu, 4),
    ],
)
def test_gradients_that_need_no_guard_get_none(function, count):
    assert count_choices(function) == count


def test_the_gradient_of_dropout_selects_once():
    key = [symbol((2,), "uint32"), *(symbol((), "uint32") for _ in range(3))]
    x, rate = symbol((4, 3)), symbol(())
    (slope,) = gradient(f.sum(ops.dropout(f.exp(x), rate, *key, stream=1)), [x])
    graph = rewrite(Graph((x, rate, *key), (slope,)))
    assert [node.op for node in graph].count("where") == 1


def test_the_slope_of_a_rate_of_dropout_is_that_of_its_scale():
    x, key = np.arange(1.0, 9.0), [np.array([1, 2], "uint32"), *(np.array(k, "uint32") for k in (3, 4, 5))]

    def total(rate, *key):
        return f.sum(ops.dropout(f.constant(x, "float64"), rate, *key, stream=1))

    found = f.gradient(total)(np.array(0.5), *key)
    kept = ops.dropout(x, np.array(0.5), *key, stream=1) != 0
    np.testing.assert_allclose(found, x[kept].sum() / 0.25, rtol=1e-14)


# -- at random ---------------------------------------------------------------------------------------------------------
STEPS = {  # smooth on positive numbers, and positive there
    "exp": lambda x: f.exp(-x),
    "log": lambda x: f.square(f.log(x)) + 0.1,
    "log1p": f.log1p,
    "sqrt": f.sqrt,
    "power": lambda x: x**0.3,
    "own power": lambda x: x ** (x * 0.5),
    "inverse": lambda x: 1.0 / (x + x * x),
    "product": lambda x: x * f.sqrt(x),
    "hyperbolic": lambda x: f.tanh(x) + 0.1,
    "normal": lambda x: f.gelu(x) + 0.2,
    "softplus": f.softplus,
    "softmax": lambda x: f.softmax(x) + 0.1,
    "norm": lambda x: x / f.sqrt(f.sum(x * x, -1, keepdims=True)),
    "mean": lambda x: x / f.mean(x, -1, keepdims=True),
    "largest": lambda x: x + f.max(x, -1, keepdims=True),
    "turned": lambda x: f.sqrt(x.T).T,
    "reversed": lambda x: f.take(x, np.arange(x.shape[-1])[::-1].astype("int32"), -1) * x,
    "cut": lambda x: f.concat(x[:, 1:], f.log1p(x[:, :1])),
}
BAD = st.sampled_from([0.0, -0.0, -1.0, 1e308, -1e308, INF, -INF, NAN])


@settings(max_examples=150)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5), st.data())
def test_the_gradient_is_that_of_the_selected_rows_alone(names, data):
    rows = data.draw(st.lists(st.booleans(), min_size=1, max_size=4), "selected")
    smooth, bad = st.floats(0.3, 2.0), st.lists(BAD, min_size=3, max_size=3)
    x = np.array([data.draw(st.lists(smooth, min_size=3, max_size=3) if row else bad) for row in rows])
    selected = np.array(rows)

    def chain(x):
        for name in names:
            x = STEPS[name](x)
        return x

    found = slopes(lambda x: f.where(selected[:, None], chain(x), 0.0), x)
    assert not found[~selected].any()
    np.testing.assert_allclose(found[selected], slopes(chain, x[selected]), rtol=1e-9, atol=1e-300)


# -- products ----------------------------------------------------------------------------------------------------------
ROWS = np.array([[1.0, 2.0], [NAN, INF], [3.0, -1.0]])  # the second is missing
KNOWN = np.array([[True], [False], [True]])


@pytest.mark.parametrize("batched", [False, True])
def test_rows_that_are_missing_leave_the_weights_of_a_product_finite(batched):
    x, known = (f.constant([one] if batched else one, dtype) for one, dtype in ((ROWS, "float64"), (KNOWN, "bool")))
    found = slopes(lambda w: f.where(known, f.square(x @ w), 0.0), [[[1.0], [1.0]]] if batched else [[1.0], [1.0]])
    assert found.ravel().tolist() == [2 * (3 * 1 + 2 * 3), 2 * (3 * 2 + 2 * -1)]  # of 2 (x . w) x, added


def test_rows_that_are_not_selected_have_no_gradient_before_a_product():
    found = slopes(lambda x: f.where(x[:, :1] > 0.0, f.log(x) @ np.ones((2, 3)), 0.0), [[1.0, 2.0], [0.0, 0.0]])
    assert found.tolist() == [[3.0, 1.5], [0.0, 0.0]]


def test_a_row_of_which_one_entry_is_selected_counts_as_a_whole():
    x, some = f.constant(ROWS, "float64"), f.constant([[True, False], [True, False], [False, False]], "bool")
    assert np.isnan(slopes(lambda w: f.where(some, x @ w, 0.0), np.ones((2, 2)))).any()


def test_a_cross_entropy_under_a_guard_leaves_rows_that_are_not_selected_alone():
    labels, known = f.constant([0, 1, 1], "int32"), f.constant(KNOWN[:, 0], "bool")
    found = slopes(lambda x: f.where(known, f.softmax_cross_entropy(x, labels), 0.0), ROWS)
    share = 1 / (1 + np.exp(-1.0)), 1 / (1 + np.exp(-4.0))  # of the greater number in a row
    np.testing.assert_allclose(found, [[-share[0], share[0]], [0, 0], [share[1], -share[1]]], rtol=1e-14)


def test_what_is_missing_has_to_be_replaced_before_a_convolution():
    signal, known = f.constant(ROWS[:, None, None, :], "float64"), f.constant(KNOWN[:, :, None, None], "bool")
    kernel = np.ones((1, 1, 1, 2))
    assert np.isnan(slopes(lambda w: f.where(known, f.convolution(signal, w), 0.0), kernel)).all()
    found = slopes(lambda w: f.where(known, f.convolution(f.where(known, signal, 0.0), w), 0.0), kernel)
    assert found.ravel().tolist() == [4.0, 1.0]
