"""Attention and layer normalisation as fused calls, and results in the storage of operands, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_backend_numpy import NumpyBackend
from sigma_backend_torch import TorchBackend
from sigma_backend_torch.program import simplify
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, gradient, symbol

DRAW = np.random.default_rng(1)
FUSED = {"torch:attend", "torch:attend_back", "torch:norm", "torch:norm_back"}


def agree(graph: Graph) -> None:
    arrays = [DRAW.normal(size=x.shape) if x.dtype != "bool" else DRAW.random(x.shape) < 0.7 for x in graph.inputs]
    found, wanted = (
        [backend.to_host(x) for x in backend.lower(graph, {})(*map(backend.to_device, arrays))]
        for backend in (TorchBackend(), NumpyBackend())
    )
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def fused(graph: Graph) -> dict[str, int]:
    called = [x.op for x in simplify(graph)]
    return {op: called.count(op) for op in FUSED.intersection(called)}


def attended(*shapes: tuple[int, ...], mask: bool = False, causal: bool = False) -> Graph:
    """Return a graph of attention and of the gradients of its operands."""
    operands = [symbol(shape, "float64") for shape in shapes]
    masks = [symbol((shapes[0][-2], shapes[1][-2]), "bool")] if mask else []
    found = f.attention(*operands, *masks, causal=causal)
    g = symbol(found.shape, "float64")
    return Graph((g, *operands, *masks), (found, *gradient(f.sum(g * found), operands)))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_one_call_and_its_gradients_another(causal: bool) -> None:
    graph = attended(*[(2, 3, 5, 4)] * 3, causal=causal)
    assert fused(graph) == {"torch:attend": 1, "torch:attend_back": 1}
    agree(graph)
    agree(attended((2, 3, 70, 4), *[(2, 3, 70 if causal else 40, 4)] * 2, causal=causal))


def test_attention_takes_operands_in_any_order_of_storage() -> None:
    stored = [symbol((2, 4, 5, 3), "float64") for _ in range(4)]
    g, *operands = (f.permute(x, axes=(0, 3, 2, 1)) for x in stored)
    found = f.attention(*operands)
    graph = Graph((*stored,), (found, *gradient(f.sum(g * found), stored[1:])))
    assert fused(graph) == {"torch:attend": 1, "torch:attend_back": 1}
    agree(graph)


@pytest.mark.parametrize(
    "graph",
    [
        attended(*[(2, 3, 5, 4)] * 3, mask=True),
        attended(*[(3, 5, 4)] * 3),
        attended(*[(2, 3, 5, 4)] * 2, (2, 3, 5, 6)),
        attended((2, 3, 5, 4), *[(1, 3, 5, 4)] * 2),
    ],
    ids=["mask", "rank 3", "wider values", "shared keys"],
)
def test_other_attention_is_expanded(graph: Graph) -> None:
    assert not fused(graph)
    agree(graph)


# -- layer normalisation -----------------------------------------------------------------------------------------------
def gradients(whole: Node, g: Node, *operands: Node) -> Graph:
    return Graph((g, *operands), (whole, *gradient(f.sum(g * whole), operands)))


@pytest.mark.parametrize("epsilon", [1e-5, 0.3])
def test_layer_normalisation_and_its_gradient_are_single_calls(epsilon: float) -> None:
    x, g, scale, shift = (symbol(shape, "float64") for shape in ((4, 3, 8), (4, 3, 8), (8,), (8,)))
    graph = gradients(f.layer_norm(x, scale, shift, epsilon=epsilon), g, x, scale, shift)
    assert fused(graph) == {"torch:norm": 1, "torch:norm_back": 1}
    assert not {"sqrt", "div", "neg"} & {node.op for node in simplify(graph)}
    agree(graph)


def test_each_layer_normalisation_has_its_own_call() -> None:
    x, g, scale, shift = (symbol(shape, "float64") for shape in ((4, 8), (4, 8), (8,), (8,)))
    once = f.tanh(f.layer_norm(x, scale, shift, epsilon=1e-5) * f.layer_norm(x, scale, shift, epsilon=0.5))
    graph = gradients(f.layer_norm(once, scale, shift, epsilon=1e-3) + once, g, x, scale, shift)
    assert fused(graph)["torch:norm"] == 3
    agree(graph)


def test_what_is_almost_layer_normalisation_is_computed_as_it_is_written() -> None:
    x, g = symbol((4, 8), "float64"), symbol((4, 8), "float64")
    mean = f.sum(x, axis=1, keepdims=True) / 8.0
    deviation = f.sqrt(f.sum((x - mean) * (x - mean), axis=1, keepdims=True) / 7.0 + 1e-5)
    variance = f.sum((x - mean) * (x - mean), axis=1, keepdims=True) / 8.0
    varying = (x - mean) / f.sqrt(variance + f.exp(mean))
    for whole in (varying, (x - mean) / deviation, x / f.sqrt(f.sum(x * x, axis=1, keepdims=True) / 8.0 + 1e-5)):
        graph = gradients(whole, g, x)
        assert not fused(graph)
        agree(graph)


# -- storage -----------------------------------------------------------------------------------------------------------
def test_a_result_takes_the_storage_of_an_operand_only_if_nothing_reads_that_again() -> None:
    x, y = symbol((3, 3), "float64"), symbol((3, 3), "float64")
    a = x * y
    turned, b = f.permute(a, axes=(1, 0)), a + 1.0
    cases = {
        "dropped": (f.exp(b) * 2.0,), "read later": (b * 2.0 - a,), "a view is read later": (b * 2.0, turned + y),
        "a view is a result": (b, turned), "a result itself": (a, b), "with its own view": (a + turned,),
        "twice": (a * a, b), "narrower": (f.sum(b, axis=1, keepdims=True) + b,),
    }  # fmt: skip
    for outputs in cases.values():
        agree(Graph((x, y), outputs))
