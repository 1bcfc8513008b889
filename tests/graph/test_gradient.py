"""Differentiation: properties of all rules, and scans against unrolled loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ops
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.flows import unbroadcast
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, symbol, trace
from sigma_kernel.graph.ops import Op

NUMPY = numpy_namespace()
RNG = np.random.default_rng(1)


def run(function, *arrays):
    graph = trace(function, *(Spec(x.shape, x.dtype.name) for x in arrays))
    return interpret(graph, NUMPY)(*arrays)


# -- in general --------------------------------------------------------------------------------------------------------
def test_a_training_step_is_one_graph():
    def step(w, b, x, y):
        loss = f.sum(f.square(f.tanh(x @ w + b) - y))
        return loss, *(p - 0.02 * g for p, g in zip((w, b), gradient(loss, (w, b)), strict=True))

    x, w, b = RNG.normal(size=(8, 3)), RNG.normal(size=(3, 2)), RNG.normal(size=2)
    y, losses = np.tanh(x @ RNG.normal(size=(3, 2))), []
    for _ in range(200):
        loss, w, b = run(step, w, b, x, y)
        losses.append(float(loss))
    assert losses[-1] < 0.05 * losses[0]


def test_parameters_that_the_loss_does_not_depend_on_have_gradient_zero():
    x, y, z = symbol((2,)), symbol((3, 1), "float64"), symbol((4,))
    zeros = gradient(f.sum(x * x + f.sum(ops.stop(z))), (y, z))
    assert [node.spec for node in zeros] == [y.spec, z.spec]
    values = interpret(Graph((x, z), zeros), NUMPY)(np.ones(2, "f4"), np.ones(4, "f4"))
    assert not any(value.any() for value in values)


def test_gradients_can_be_taken_at_the_loss_or_an_intermediate_node():
    x = symbol((3,), "float64")
    y = x * 2.0
    loss = f.sum(y * y)
    flows = gradient(loss, (loss, y, x, x))
    one, by_y, by_x, again = interpret(Graph((x,), flows), NUMPY)(np.array([1.0, 2.0, 3.0]))
    assert (float(one), by_y.tolist(), by_x.tolist(), again.tolist()) == (1.0, [4, 8, 12], [8, 16, 24], [8, 16, 24])


@pytest.mark.parametrize(
    ("loss", "targets", "message"),
    [
        (lambda x, i: x, "x", r"the loss must be a single float \(got float32\[3\]\). Sum it up first."),
        (lambda x, i: f.sum(i), "x", r"the loss must be a single float \(got int32\[\]\)"),
        (lambda x, i: f.sum(x), "i", r"the target input int32\[3\] is not a float"),
    ],
)
def test_only_floats_have_gradients(loss, targets, message):
    nodes = {"x": symbol((3,)), "i": symbol((3,), "int32")}
    with pytest.raises(SigmaGraphError, match=message):
        gradient(loss(**nodes), [nodes[name] for name in targets])


def test_a_loss_whose_sides_are_all_one_counts_as_a_scalar():
    assert run(lambda x: gradient(ops.sum(x * x, axis=(0, 1)), [x]), np.full((2, 2), 3.0))[0].tolist() == [[6, 6]] * 2


def test_only_nodes_on_a_path_to_a_target_are_differentiated(monkeypatch):
    visited = []

    def watch(name: str) -> Op:
        rule = lambda g, z, *inputs: (visited.append(name), g)[1:]  # noqa: E731
        return Op(name, lambda x: x, lambda x: x, rule)

    for name in ("acme:on", "acme:off", "acme:above"):
        monkeypatch.setitem(OPS, name, watch(name))
    x, data = symbol((2,)), symbol((2,))
    on, off = OPS["acme:on"](x), OPS["acme:off"](data)
    OPS["acme:above"](on)
    gradient(f.sum(on * off), (x,))
    assert visited == ["acme:on"]


def test_integers_and_booleans_carry_no_gradient():
    def slopes(x, i):
        there_and_back = f.cast(f.cast(x, "int32"), "float64")
        chosen = f.where(x > f.take(x, i), there_and_back, x)
        return gradient(f.sum(chosen * x), (x,))

    x, i = np.array([1.5, 2.5, 0.5]), np.array([1, 0, 1], "int32")
    np.testing.assert_allclose(run(slopes, x, i)[0], [3.0, 2.0, 1.0])


shape = st.lists(st.sampled_from([1, 2, 3]), max_size=3).map(tuple)


@given(shape, st.data())
def test_broadcasting_is_undone(wide, data):
    lead = data.draw(st.integers(0, len(wide)))
    narrow = tuple(data.draw(st.sampled_from([1, side])) for side in wide[lead:])
    x = RNG.normal(size=narrow)
    (count,) = run(lambda x: (unbroadcast(f.ones(wide, "float64"), x.shape),), x)
    assert count.shape == narrow
    assert (count == np.prod(wide) / np.prod(narrow)).all()


def test_a_gradient_smaller_than_its_operand_is_stretched():
    assert unbroadcast(symbol(()), (2, 3)).shape == (2, 3)
    assert unbroadcast(symbol((1, 3)), (2, 3)).shape == (2, 3)


def test_a_chain_of_three_thousand_nodes_can_be_differentiated():
    def chain(x: Node) -> Node:
        y = x
        for _ in range(1500):
            y = ops.relu(y) * 1.001
        return gradient(f.sum(y), [x])[0]

    np.testing.assert_allclose(run(chain, np.array([2.0, -1.0]))[0], [1.001**1500, 0], rtol=1e-10)


# -- composites --------------------------------------------------------------------------------------------------------
@pytest.fixture
def product(monkeypatch) -> Op:
    """Return a composite of two operands without a gradient rule of its own."""
    row = Op("acme:product", lambda x, y: x, lambda x, y: x, None, lambda x, y: ops.sin(x) * y * y)
    monkeypatch.setitem(OPS, row.name, row)
    return row


def test_an_operand_used_twice_gets_the_sum_of_its_gradients(product):
    x = RNG.normal(size=4)
    (slope,) = run(lambda x: gradient(f.sum(product(x, x)), [x]), x)
    np.testing.assert_allclose(slope, np.cos(x) * x * x + 2 * x * np.sin(x))


def test_a_composite_of_dependent_operands_has_the_total_derivative(product):
    x = RNG.normal(size=4)
    (slope,) = run(lambda x: gradient(f.sum(product(x, x * x * x)), [x]), x)
    np.testing.assert_allclose(slope, np.cos(x) * x**6 + 6 * np.sin(x) * x**5)


def test_an_expansion_may_be_one_of_its_operands(monkeypatch):
    row = Op("acme:second", lambda x, y: x, lambda x, y: x, None, lambda x, y: y)
    monkeypatch.setitem(OPS, row.name, row)
    first, second = run(lambda x, y: gradient(f.sum(row(x, y)), [x, y]), np.ones(2), np.ones(2))
    assert (first.tolist(), second.tolist()) == ([0, 0], [1, 1])


# -- scan --------------------------------------------------------------------------------------------------------------
def cell(h, c, count, x, mask, w, b):
    """One step of a recurrent network with all that a scan supports: two carries, a counter, a mask, constants."""
    z = f.tanh(h @ w + x * f.cast(mask, "float64") + b)
    c = c * 0.9 + z * f.sin(c)
    return [z * c, c, count + 1], [z, f.cast(count, "float64") * h, h]


def scanned(reverse):
    def walk(h, c, x, mask, w, b):
        start = f.constant(0, "int32")
        carries, outputs = f.scan(cell, [h, c, start], [x, mask], [w, b], reverse=reverse)
        return [*carries[:2], *outputs]

    return walk


def unrolled(reverse):
    def walk(h, c, x, mask, w, b):
        steps, carries = x.shape[0], [h, c, f.constant(0, "int32")]
        rows = [None] * steps
        for t in reversed(range(steps)) if reverse else range(steps):
            read = (f.reshape(f.narrow(s, 0, t, t + 1), s.shape[1:]) for s in (x, mask))
            carries, rows[t] = cell(*carries, *read, w, b)
        return [*carries[:2], *(f.stack(*column) for column in zip(*rows, strict=True))]

    return walk


ARRAYS = [RNG.normal(size=s) for s in ((2, 3), (2, 3), (4, 2, 3))]
ARRAYS += [RNG.integers(0, 2, (4, 2, 1)) > 0, RNG.normal(size=(3, 3)), RNG.normal(size=3)]
FLOATS = [0, 1, 2, 4, 5]


def losses(walk, used):
    """Return the loss over some results of a scan, its gradients, and their gradients."""

    def build(*operands):
        results = walk(*operands)
        targets = [operands[i] for i in FLOATS]
        loss = sum((f.sum(f.sin(results[i] * (i + 1.0))) for i in used), f.constant(0.0, "float64"))
        first = gradient(loss, targets)
        second = gradient(sum((f.sum(f.cos(x)) for x in first), f.constant(0.0, "float64")), targets)
        return loss, *first, *second

    return build


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("used", [(0, 1, 2, 3, 4), (0,), (3,), (1, 4)], ids=str)
def test_a_scan_has_the_gradients_of_the_unrolled_loop(reverse, used):
    expected = run(losses(unrolled(reverse), used), *ARRAYS)
    for found, value in zip(run(losses(scanned(reverse), used), *ARRAYS), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-11, atol=1e-12)


def test_one_loop_body_supports_any_number_of_steps():
    def loss(w, x):
        (h,), _ = f.scan(lambda h, x, w: ([f.tanh(h * w + x)], []), [f.zeros((2,), "float64")], [x], [w])
        return gradient(f.sum(h), [w])

    counts = [len(list(trace(loss, Spec((2,), "float64"), Spec((steps, 2), "float64")))) for steps in (3, 300)]
    assert counts[0] == counts[1]


def test_a_scan_of_zero_steps_passes_the_gradient_through():
    def slopes(h, x):
        (last,), (rows,) = f.scan(lambda h, x: ([h + x], [h * x]), [h], [x])
        return gradient(f.sum(last * last) + f.sum(rows), [h, x])

    by_h, by_x = run(slopes, np.array([2.0, 3.0]), np.zeros((0, 2)))
    assert (by_h.tolist(), by_x.shape) == ([4.0, 6.0], (0, 2))


def test_only_requested_gradients_are_propagated():
    def body(h, x, w):
        return [f.tanh(h @ w + x)], []

    h, x, w = symbol((2, 3)), symbol((4, 2, 3)), symbol((3, 3))
    (last,), _ = f.scan(body, [h], [x], [w])
    (slope,) = gradient(f.sum(last), [w])
    walk = next(node for node in Graph((), (slope,)) if node.op == "scan" and node.attrs["reverse"])
    assert [x.shape for x in walk.attrs["body"].outputs] == [(2, 3), (2, 3)]  # of h, and a factor of that of w
    assert slope.op == "matmul"
    assert slope.inputs[1].shape == (8, 3)


def test_a_backward_pass_reads_only_what_it_needs():
    h, x, k = symbol((3,)), symbol((4, 3)), symbol((3,))
    (last,), _ = f.scan(lambda h, x, k: ([h + x * k], []), [h], [x], [k])
    (slope,) = gradient(f.sum(last), [x])
    walk = next(node for node in Graph((), (slope,)) if node.op == "scan")
    assert [operand.op for operand in walk.inputs] == ["stretch", "input"]
    assert walk.inputs[1] is k


def test_a_backward_pass_reads_outputs_and_does_not_compute_them_again():
    def walk(kept):
        def body(h, x):
            z = f.tanh(h @ w)
            return [z * x], [z] if kept else []

        (last,), _ = f.scan(body, [h], [x])
        return gradient(f.sum(f.sin(last)), [h, x, w])

    h, x, w = (symbol(s, "float64") for s in ((2, 3), (4, 2, 3), (3, 3)))
    ops = []
    for kept in (True, False):
        scan = next(n for n in Graph((), walk(kept)) if n.op == "scan" and n.attrs["reverse"])
        ops.append([node.op for node in scan.attrs["body"]])
    assert (ops[0].count("matmul"), ops[1].count("matmul")) == (1, 2)
    assert "tanh" not in ops[0]
    arrays = [RNG.normal(size=one.shape) for one in (h, x, w)]
    found = [interpret(Graph((h, x, w), walk(kept)), NUMPY)(*arrays) for kept in (True, False)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


def test_the_gradient_of_a_matrix_is_one_product_if_steps_use_it_once():
    def loss(w, twice, half, x):
        def body(h, x):
            return [f.tanh(h @ w + (x @ twice) @ twice + half @ x + f.sum(half) * 0.1)], []

        return f.sum(f.scan(body, [f.zeros((3, 3), "float64")], [x])[0][0])

    arrays = [RNG.normal(size=(3, 3)) for _ in range(3)]
    arrays.append(RNG.normal(size=(5, 3, 3)))
    symbols = [symbol(x.shape, "float64") for x in arrays]
    graph = Graph(tuple(symbols), (loss(*symbols), *gradient(loss(*symbols), symbols)))
    found = interpret(graph, NUMPY)(*arrays)
    for place, slope in enumerate(found[1:]):
        along = RNG.normal(size=slope.shape)
        up, down = (
            interpret(graph, NUMPY)(*(x + by * along if i == place else x for i, x in enumerate(arrays)))[0]
            for by in (1e-6, -1e-6)
        )
        assert np.sum(slope * along) == pytest.approx((up - down) / 2e-6, rel=1e-6, abs=1e-8)


def test_scans_nest():
    def rows(x, w):
        def row(total, x, w):
            (last,), _ = f.scan(lambda h, v, w: ([f.tanh(h * w + v)], []), [total], [x], [w])
            return [last], [last * last]

        (last,), (squares,) = f.scan(row, [f.zeros((), "float64")], [x], [w])
        return last + f.sum(squares)

    def loop(x, w):
        total = squares = f.zeros((), "float64")
        for i in range(3):
            for j in range(2):
                total = f.tanh(total * w + f.reshape(f.slice(x, (i, j), (i + 1, j + 1)), ()))
            squares = squares + total * total
        return total + squares

    x, w = RNG.normal(size=(3, 2)), np.array(0.7)
    found, expected = (run(lambda x, w, g=g: gradient(g(x, w), [x, w]), x, w) for g in (rows, loop))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.booleans())
def test_the_gradient_of_a_cumulative_sum_is_a_reversed_cumulative_sum(steps, reverse):
    def total(x):
        (_,), (rows,) = f.scan(lambda s, x: ([s + x], [s + x]), [f.zeros((), "float64")], [x], reverse=reverse)
        return gradient(f.sum(rows * f.iota((steps,), 0, "float64")), [x])

    weights = np.arange(steps, dtype=float)
    expected = weights.cumsum() if reverse else weights[::-1].cumsum()[::-1]
    np.testing.assert_allclose(run(total, np.ones(steps))[0], expected)
