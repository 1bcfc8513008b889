"""Rewriting gives fewer nodes, and the same values bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel import functions as f
from sigma_kernel.graph import ops
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import OPS, Graph, Node, Spec, constant, symbol, trace
from sigma_kernel.graph.rewriting import rewrite
from sigma_testing.cases import samples

NUMPY = numpy_namespace()
X, Y = Spec((2, 3), "float64"), Spec((3,), "float64")
COMPOSITES = {name for name, op in OPS.items() if op.expansion}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays are equal bit for bit; all NaNs are equal."""
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    nan = np.isnan(a) if a.dtype.kind == "f" else np.zeros(a.shape, bool)
    bits = (np.where(nan, np.zeros_like(x), x).tobytes() for x in (a, b))
    return len({*bits}) == 1 and bool((nan == (b != b)).all())


def names(graph: Graph) -> list[str]:
    return [node.op for node in graph if node.op not in ("input", "constant")]


def check(graph: Graph, *arrays: np.ndarray) -> Graph:
    """Rewrite a graph, and check that its values are unchanged and that a second rewrite changes nothing."""
    simple = rewrite(graph)
    assert simple.inputs == graph.inputs
    assert rewrite(simple) == simple
    before, after = interpret(graph, NUMPY)(*arrays), interpret(simple, NUMPY)(*arrays)
    assert all(same(a, b) for a, b in zip(before, after, strict=True)), f"{graph}\n\n{simple}"
    return simple


# -- values are preserved ----------------------------------------------------------------------------------------------
UNARY = (ops.neg, ops.abs, ops.exp, ops.sqrt, ops.tanh, ops.relu, ops.sigmoid, ops.stop, ops.floor)
BINARY = (ops.add, ops.sub, ops.mul, ops.div, ops.maximum)
FORM = (
    lambda x: f.sum(x, 0, keepdims=True), lambda x: f.sum(x, -1), lambda x: f.max(x, -1, keepdims=True),
    lambda x: f.reshape(x, (1, *x.shape)), lambda x: f.reshape(x, (-1,)), lambda x: f.flatten(x, 0),
    lambda x: f.swap_axes(x, 0, -1), lambda x: f.stretch(x, (2, *x.shape)), lambda x: f.stretch(x, x.shape),
    lambda x: f.cast(x, "float64"), lambda x: f.where(x > 0.0, x, x), lambda x: f.softmax(x),
    lambda x: f.cast(f.cast(x, "float32"), "float64"),
)  # fmt: skip
NUMBERS = (0.0, -0.0, 1.0, 2.0, 0.1, -3.0)
number = st.one_of(st.sampled_from([0.0, -0.0, np.nan, np.inf, 1e-310, 1e308]), st.floats(-3, 3))


@st.composite
def programs(draw: st.DrawFn) -> list[Node]:
    """Draw nodes that are built from two inputs and earlier nodes."""
    nodes = [symbol(X.shape, X.dtype), symbol(Y.shape, Y.dtype), *(constant(v, "float64") for v in NUMBERS[:3])]
    for _ in range(draw(st.integers(1, 12))):
        x, y = (draw(st.sampled_from(nodes)) for _ in "xy")
        kind = draw(st.integers(0, 3))
        if kind == 0:
            nodes.append(draw(st.sampled_from(UNARY))(x))
        elif kind == 1:
            nodes.append(draw(st.sampled_from(BINARY))(x, draw(st.sampled_from(NUMBERS))))
        elif kind == 2 and fits(x, y):
            nodes.append(draw(st.sampled_from(BINARY))(x, y))
        elif x.shape and len(x.shape) < 4:
            nodes.append(draw(st.sampled_from(FORM))(x))
    return nodes


def fits(x: Node, y: Node) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1], strict=False))


@settings(deadline=None, max_examples=300)
@given(programs(), st.lists(number, min_size=9, max_size=9))
def test_any_graph_keeps_its_values_bit_for_bit(nodes, values):
    graph = Graph((nodes[0], nodes[1]), tuple(nodes[2:]))
    check(graph, np.array(values[:6]).reshape(2, 3), np.array(values[6:]))


@settings(deadline=None, max_examples=100)
@given(programs(), st.lists(st.floats(0.1, 2), min_size=9, max_size=9))
def test_any_gradient_keeps_its_values_bit_for_bit(nodes, values):
    flows = gradient(sum((f.sum(x) for x in nodes[2:]), constant(0.0, "float64")), nodes[:2])
    check(Graph((nodes[0], nodes[1]), flows), np.array(values[:6]).reshape(2, 3), np.array(values[6:]))


@pytest.mark.parametrize("sample", [s for rows in samples().values() for s in rows], ids=str)
def test_every_sample_keeps_its_values_bit_for_bit(sample):
    check(sample.graph(), *sample.arrays)


# -- rules -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1.0, lambda x: 1.0 * x, lambda x: x / 1.0, lambda x: x - 0.0, lambda x: x + (-0.0),
        lambda x: ops.neg(-x),
        lambda x: f.reshape(f.reshape(x, (6,)), (2, 3)), lambda x: f.permute(f.permute(x, (1, 0)), (1, 0)),
        lambda x: f.permute(x, (0, 1)), lambda x: f.stretch(x, (2, 3)), lambda x: f.cast(x, "float64"),
        lambda x: f.where(x > 0.0, x, x), lambda x: f.slice(x, (0, 0), (2, 3)), lambda x: f.pad(x, (0, 0), (0, 0)),
        lambda x: f.concat(x), lambda x: f.max(f.expand(x, 0), 0),
        lambda x: x * f.ones((2, 3), "float64"),
        lambda x: f.stretch(f.expand(x, 0), (1, 2, 3)) * f.ones((3,), "float64"),
        lambda x: x * (f.constant(3.0, "float64") - 2.0),
    ],
)  # fmt: skip
def test_operations_without_effect_are_removed(function):
    x = np.array([[0.0, -0.0, 1.0], [np.nan, -np.inf, 2.0]])
    simple = check(trace(function, X), x)
    assert names(simple) in ([], ["reshape"])


@pytest.mark.parametrize(
    "function",
    [lambda x: x + 0.0, lambda x: x - (-0.0),
     lambda x: ops.sum(f.expand(x, 0), axis=(0,)),
     lambda x: 0.0 - x, lambda x: x * 0.0, lambda x: 1.0 / x, lambda x: x - x,
     lambda x: x / x, lambda x: f.cast(f.cast(x, "float32"), "float64")],
)  # fmt: skip
def test_simplification_preserves_zeros_nans_and_rounding(function):
    graph = trace(function, X)
    assert names(rewrite(graph)) == names(graph)


def test_operations_that_determine_a_shape_or_dtype_are_kept():
    graph = trace(lambda x, y: (f.where(x > 0.0, y, y), y * f.ones((2, 3), "float64")), X, Y)
    assert names(check(graph, np.ones((2, 3)), np.ones(3))) == ["greater", "where", "stretch", "mul"]
    narrow = trace(lambda x: x * (constant(0.1, "bfloat16") + 0.2), Spec((2,), "bfloat16"))
    assert names(rewrite(narrow)) == ["add", "mul"]


def test_integers_have_a_single_zero():
    graph = trace(lambda i: (i + 0, 0 + i, i - 0, i * 1), Spec((2,), "int32"))
    assert rewrite(graph).outputs == graph.inputs * 4


def test_explicit_broadcasts_before_broadcasting_ops_are_removed():
    graph = trace(lambda x, y: x + f.stretch(f.expand(y, 0), (2, 3)), X, Y)
    assert names(check(graph, np.ones((2, 3)), np.arange(3.0))) == ["add"]
    number = trace(lambda x, y: x * f.reshape(f.full(3.0, (3,), "float64"), (1, 3)), X, Y)
    assert names(check(number, np.ones((2, 3)), np.arange(3.0))) == ["mul"]
    needed = trace(lambda x, y: f.stretch(y, (2, 3)) + y, X, Y)
    assert names(check(needed, np.ones((2, 3)), np.arange(3.0))) == ["stretch", "add"]


def test_equal_nodes_are_shared_and_dead_nodes_removed():
    def twice(x, y):
        f.exp(y)
        return f.exp(x) + f.exp(x), f.exp(x) * 0.5, f.exp(x) * 0.5

    simple = check(trace(twice, X, Y), np.ones((2, 3)), np.ones(3))
    assert names(simple) == ["exp", "add", "mul"]
    assert simple.outputs[1] is simple.outputs[2]


def test_inputs_are_never_shared():
    graph = trace(lambda x, y: x - y, (2,), (2,))
    assert rewrite(graph).outputs[0].inputs == graph.inputs


def test_inputs_that_a_simplification_uncovers_are_never_shared():
    graph = rewrite(trace(lambda x, y: f.cast(x, "float32") - f.cast(y, "float32"), Spec(()), Spec(())))
    assert graph.outputs[0].inputs == graph.inputs


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_zeros_of_different_signs_are_not_shared(zeros):
    graph = trace(lambda x: tuple(x * v for v in zeros), Spec((2,), "float64"))
    assert len(names(check(graph, np.array([1.0, -1.0])))) == 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_constants_are_folded_with_the_rounding_of_their_dtype(dtype):
    def third(x):
        a, b = constant(0.1, dtype), constant(3.0, dtype)
        return x * ((a + a * b) / b - f.sqrt(b)), f.cast(a, "float64") * f.cast(x, "float64")

    for v in (1.0, 0.7):
        simple = check(trace(third, Spec((), dtype)), np.asarray(v, dtype))
        assert [n for n in names(simple) if n != "cast"] == ["mul", "mul"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * (constant(1.0, "float32") / 0.0), lambda x: x * (constant(3e38, "float32") * 10.0),
        lambda x: x * f.sqrt(constant(-1.0, "float32")),
        lambda x: f.cast(constant(2**31 - 1, "int32") + 1, "float32") * x,
        lambda x: x * f.cast(f.cast(constant(float("nan"), "float32"), "int32"), "float32"),
        lambda x: x * f.cast(constant(2**53 + 1, "int64"), "float32"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value")
def test_operations_that_python_computes_differently_are_not_folded(function):
    graph = trace(function, (2,))
    assert len(names(check(graph, np.ones(2, "f4")))) >= 2


def test_composites_are_expanded_unless_they_are_kept():
    graph = trace(lambda x: f.softmax(f.silu(x)), X)
    assert names(rewrite(graph, keep=COMPOSITES)) == ["silu", "softmax"]
    assert "sigmoid" in names(rewrite(graph, keep={"sigmoid"}))
    assert not COMPOSITES & {*names(rewrite(graph))}
    assert names(rewrite(graph, keep={"softmax"}))[-1] == "softmax"


def test_bodies_of_scans_are_rewritten_too():
    def walk(h, x):
        (last,), _ = f.scan(lambda h, x: ([f.sigmoid(h * 1.0) + f.sigmoid(h) * x], []), [h], [x])
        return last

    graph = trace(walk, Spec((3,), "float64"), Spec((5, 3), "float64"))
    simple = check(graph, np.ones(3), np.ones((5, 3)))
    body = next(node for node in simple if node.op == "scan").attrs["body"]
    assert names(body).count("exp") == 1
    kept = next(node for node in rewrite(graph, keep={"sigmoid"}) if node.op == "scan").attrs["body"]
    assert names(kept) == ["sigmoid", "mul", "add"]


def test_softmax_and_the_gradient_of_its_cross_entropy_share_their_exponentials():
    def step(x, labels):
        loss = f.mean(f.softmax_cross_entropy(x, labels))
        return loss, *gradient(loss, [x])

    simple = check(
        trace(step, Spec((4, 3), "float64"), Spec((4,), "int32")), np.ones((4, 3)), np.array([0, 1, 2, 0], "int32")
    )
    assert names(simple).count("exp") == names(simple).count("max") == 1


def test_pooling_moves_before_a_relu_without_other_readers():
    images = Spec((1, 2, 4, 4), "float64")
    x = np.random.default_rng(0).normal(size=images.shape)
    x[0, 0, 0, 0], x[0, 1, :2, :2] = np.nan, -np.inf
    assert names(check(trace(lambda x: f.max_pool(f.relu(x), 2), images), x)) == ["max_pool", "maximum"]
    both = trace(lambda x: (f.max_pool(f.relu(x), 2), f.relu(x)), images)
    assert names(check(both, x)).index("max_pool") == 0
    shared = trace(lambda x: [y := f.relu(x), f.max_pool(y, 2)], images)
    assert names(check(shared, x)) == ["maximum", "max_pool"]


def test_pooling_before_the_gradient_gives_the_same_gradient():
    images, x = Spec((2, 1, 6, 6), "float64"), np.random.default_rng(0).normal(size=(2, 1, 6, 6))
    graph = trace(lambda x: f.sum(f.square(f.max_pool(f.relu(x), 3, stride=1, padding=1))), images)
    slopes = [Graph(g.inputs, gradient(g.outputs[0], g.inputs)) for g in (graph, rewrite(graph))]
    a, b = (interpret(g, NUMPY)(x)[0] for g in slopes)
    np.testing.assert_allclose(a, b, rtol=1e-15)


def test_pooling_stays_after_a_maximum_if_moving_it_would_change_gradients_at_ties():
    images, x = Spec((1, 1, 1, 2), "float64"), np.array([[[[-1.0, 0.0]]]])
    graph = trace(lambda x: f.sum(f.max_pool(f.maximum(x, 0.0), (1, 2))), images)
    assert names(check(graph, x)).index("maximum") == 0
    slopes = [Graph(g.inputs, gradient(g.outputs[0], g.inputs)) for g in (graph, rewrite(graph))]
    assert [interpret(g, NUMPY)(x)[0].tolist() for g in slopes] == [[[[[0.0, 0.0]]]]] * 2  # the first zero is chosen


def test_depth_costs_no_recursion():
    def chain(x: Node) -> Node:
        for i in range(3000):
            x = ops.relu(x) if i % 2 else f.reshape(x, (6,) if i % 4 else (2, 3)) * 1.0
        return x

    graph = trace(chain, X)
    assert rewrite(graph).outputs[0].shape == graph.outputs[0].shape
