"""Single ops and graphs: what ONNX Runtime computes, how sizes depend on the batch, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from sigma_export_onnx.exporter import Onnx
from sigma_export_onnx.graphs import KEPT, REFUSED, TABLE
from sigma_kernel import Inference, SigmaConfigError, functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import OPS, Node, Spec, constant, ops, rewrite, trace
from sigma_testing import inference

from .running import agrees, checked, close, drawn, reference, results

X = Spec((4, 5))


def network(function: Callable[..., Any], *specs: Spec) -> Inference:
    """Return a network of inputs a, b, ... and outputs y0, y1, ..."""
    names = tuple("abc"[: len(specs)])

    def step(rows: int) -> Step:
        graph = trace(function, *(Spec((rows, *spec.shape), spec.dtype) for spec in specs))
        return Step(graph, (), names, (), (), tuple(f"y{i}" for i in range(len(graph.outputs))))

    return Inference("ops", (), {}, step, {})


def test_every_op_is_expressed_expanded_or_refused_with_a_reason() -> None:
    kernel = {name for name in OPS if ":" not in name}
    expressed = {*TABLE, "scan", "part"} - {"constant"}
    assert expressed <= kernel
    assert {*REFUSED} | expressed == {name for name in kernel if OPS[name].expansion is None} | KEPT
    assert not {*REFUSED} & expressed


VALUES = np.array([0.0, -0.0, 1e-7, -1e-7, 0.3, -0.3, 0.5, -2.5, 7.0, -30.0, 80.0, -90.0], np.float32)
EXTREMES = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40], np.float32)
BOTH = ("add", "sub", "mul", "maximum", "minimum", "equal", "greater", "greater_equal", "mod")
FLOAT = (
    "neg", "abs", "sign", "floor", "exp", "expm1", "tanh", "erf", "sin", "cos", "is_finite", "relu", "sigmoid", "gelu",
    "softplus", "silu", "stop",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*FLOAT, "log", "log1p", "sqrt"])
def test_functions_of_floats_are_those_of_the_reference_everywhere(name: str) -> None:
    values = np.abs(VALUES) if name in ("log", "sqrt") else VALUES[VALUES > -1] if name == "log1p" else VALUES
    values = values if name in ("sin", "cos", "gelu", "silu") else np.concatenate([values, EXTREMES])
    made = network(lambda a: OPS[name](a), Spec((len(values),)))
    model = Onnx().model(made)
    found, wanted = (results(model, {"a": values[None]}), reference(made, {"a": values[None]}))
    np.testing.assert_allclose(found["y0"], wanted["y0"], 1e-5, 1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", BOTH)
def test_pairs_of_numbers_are_computed_as_in_the_reference(name: str, dtype: str) -> None:
    left, right = (x.ravel() for x in np.meshgrid(np.array([-7.5, -3, -1, 1, 2, 6, 9]), np.array([-3, -2, 1, 4.5])))
    made = network(lambda a, b: OPS[name](a, b), Spec(left.shape, dtype), Spec(left.shape, dtype))
    samples = {"a": left[None].astype(dtype), "b": right[None].astype(dtype)}
    np.testing.assert_array_equal(results(Onnx().model(made), samples)["y0"], reference(made, samples)["y0"])


def several(x: Node) -> list[Node]:
    """Return what the layers of sigma-layers do not need."""
    rows, cells = x.shape[0], 20
    whole = f.cast(x * 3.0, "int32")
    flat = f.reshape(x, (rows * 4, 5))
    return [
        ops.reduce_precision(x, dtype="bfloat16"), ops.reduce_precision(x, dtype="float16"), whole % 3,
        ops.floor(whole),
        ops.where(x > 0.0, x > 1.0, x < -1.0), ops.cast(x, dtype="bool"), ops.argmax(x, axis=2),
        ops.argmax(x, axis=1), f.sum(x, axis=()), ops.log_softmax(x, axis=1), ops.softmax(x, axis=2),
        ops.iota(shape=(rows, 4, 5), axis=0, dtype="int32"), ops.iota(shape=(rows, 4, 5), axis=1, dtype="float32"),
        f.reshape(flat @ constant(np.ones((5, 2), np.float32)), (rows, 8)), f.reshape(flat, (2, rows * 2, 5))[0:1],
        ops.pad(x, low=(0, 1, 0), high=(0, 0, 2), interior=(0, 2, 1), value=-1.5),
        ops.slice(x, start=(0, 1, 0), stop=(rows, 4, 5), step=(1, 2, 3)), ops.concat(x, flat_like(x), axis=0),
        ops.scatter_add(x, f.cast(abs(x[:, :, 0]) * 0.5, "int32") * 0 + 3, updates(x), axis=2),
        ops.take(x, ops.argmax(x, axis=2)[:, 0, 0] * 0 + 2, axis=1), ops.logical_not(x > 0.0),
        f.reshape(f.reshape(x, (rows, cells))[:, 0:0], (rows, 0, 3)), f.stretch(x[:, :1], (rows, 3, 5)),
        ops.iota(shape=(rows * 2, 3), axis=0, dtype="int32"), f.stretch(f.reshape(x, (rows, 20))[0:1], (rows * 3, 20)),
    ]  # fmt: skip


def flat_like(x: Node) -> Node:
    return f.permute(f.permute(x, (1, 0, 2)), (1, 0, 2)) * 2.0


def updates(x: Node) -> Node:
    rows = x.shape[0]
    return f.stretch(f.reshape(x[:, :, 0], (rows, 4, 1, 1)), (rows, 4, rows, 4))


def test_other_ops_are_those_of_the_reference() -> None:
    agrees(network(several, X))


def orders(x: Node) -> list[Node]:
    """Return orders, running sums, products and transforms of each row alone."""
    values, places = f.top_k(x, 3)
    least, _ = f.top_k(f.floor(x), 2, axis=1, largest=False)  # of entries that are often equal
    return [
        f.sort(x), f.sort(x, 1, descending=True), f.argsort(f.floor(x)), f.argsort(f.floor(x), 1, descending=True),
        values, places, least, f.cumsum(x), f.cumsum(x, 1, reverse=True), f.prod(x, -1), f.prod(x, (1, 2)),
        f.prod(f.cast(x, "int32"), 1),
        f.einsum("bij,bkj->bik", x, x), f.einsum("bij,jk,kl->bil", x, np.ones((5, 2), "f4"), np.ones((2, 5), "f4")),
        f.rfft(x), f.rfft(x, 1), f.irfft(f.reshape(x[:, :, :4], (x.shape[0], 4, 2, 2)), 3), f.irfft(f.rfft(x, 1), 4, 1),
    ]  # fmt: skip


def test_orders_and_transforms_are_those_of_the_reference() -> None:
    agrees(network(orders, X))


def test_linear_algebra_is_refused_with_a_reason() -> None:
    for function in (lambda x: f.solve(x[:, :, :4], x), lambda x: f.cholesky(x[:, :, :4]), lambda x: f.svd(x)[1]):
        with pytest.raises(SigmaConfigError, match="cannot be exported. ONNX has no linear algebra beyond products"):
            Onnx().model(network(function, X))


def test_composites_that_onnx_has_stay_whole() -> None:
    names = ("Relu", "Sigmoid", "Gelu", "Softplus", "Softmax", "LogSoftmax", "LayerNormalization")

    def function(x: Node) -> list[Node]:
        ones = constant(np.ones(5, np.float32))
        return [
            ops.relu(x), ops.sigmoid(x), ops.gelu(x), ops.softplus(x), ops.softmax(x, axis=2),
            ops.log_softmax(x, axis=2), ops.layer_norm(x, ones, ones, epsilon=1e-5),
        ]  # fmt: skip

    assert {node.op_type for node in agrees(network(function, X)).graph.node} - {"Identity"} == {*names}


def loops(x: Node) -> list[Node]:
    """Return loops: backwards, without sequences, and one within another."""
    rows = x.shape[0]
    steps, start = f.permute(x, (1, 0, 2)), f.sum(x, axis=1) * 0.0
    (last,), (every, before) = f.scan(lambda c, s: ([f.tanh(c + s)], [c * s, c]), [start], [steps], reverse=True)
    (count,), _ = f.scan(lambda c: ([c * 2.0 + start], []), [start + 1.0], [], length=3)

    def outer(c: Node, s: Node) -> tuple[list[Node], list[Node]]:
        (inner,), _ = f.scan(lambda d, t: ([d * 0.5 + t * f.sum(c, axis=1)], []), [s[:, 0]], [f.permute(s, (1, 0))])
        return [c + f.stretch(f.reshape(inner, (rows, 1)), (rows, 5))], [s]

    (nested,), (same,) = f.scan(outer, [start], [steps])
    return [last, every, before, count, nested, same]


def test_loops_are_those_of_the_reference() -> None:
    assert [node.op_type for node in agrees(network(loops, X)).graph.node].count("Scan") == 3


# -- the number of rows ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "op"),
    [
        (lambda x: f.mean(x, axis=0) + x, "constant"),
        (lambda x: x[1:], "slice"),
        (lambda x: x + constant(np.arange(x.shape[0] * 20.0).reshape(x.shape)[:, :1, :1].tolist()), "array"),
        (lambda x: f.tanh(x) if x.shape[0] < 1500 else f.exp(x), ""),
    ],
)
def test_what_depends_on_the_number_of_rows_is_refused(function: Callable[[Node], Node], op: str) -> None:
    with pytest.raises(SigmaConfigError, match=rf"its op '{op}.*' depends on the batch size"):
        Onnx().model(network(function, X))


def test_every_number_of_rows_is_taken_even_none() -> None:
    made, model = inference(), Onnx().model(inference())
    for rows in (0, 1, 2, 300):
        samples = drawn(made.step(1), rows)
        close(results(model, samples)["2-output"], reference(made, samples)["2-output"])


# -- what cannot be expressed ------------------------------------------------------------------------------------------
def test_what_draws_random_numbers_while_it_predicts_is_refused() -> None:
    key = [constant(np.zeros(2, np.uint32), "uint32"), *(constant(0, "uint32") for _ in range(3))]

    def noisy(x: Node) -> Node:
        return x + f.cast(ops.random_bits(*key, shape=x.shape, stream=1), "float32")

    with pytest.raises(SigmaConfigError, match="the network: 'random_bits' cannot be exported. ONNX has no generator"):
        Onnx().model(network(noisy, X))


def test_the_rewritten_graph_has_no_composites_but_those_of_onnx() -> None:
    step = network(lambda x: ops.silu(x) + ops.gelu(x), X).step(2)
    assert {node.op for node in rewrite(step.graph, KEPT)} - {"input"} == {"add", "mul", "sigmoid", "gelu"}
    checked(Onnx().model(network(lambda x: x, X)))


def test_a_value_that_waits_for_another_is_itself() -> None:
    values = {"a": VALUES[None], "b": VALUES[None][:, ::-1].copy()}
    made = network(lambda a, b: OPS["tanh"](OPS["barrier"](a, b)), Spec((len(VALUES),)), Spec((len(VALUES),)))
    found, wanted = results(Onnx().model(made), values), reference(made, values)
    np.testing.assert_allclose(found["y0"], wanted["y0"], 1e-5, 1e-6)
