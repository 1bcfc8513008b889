"""Gradients with values recomputed: the same bits, copies that wait, and no cycles."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.graph import Graph, Node, constant, gradient, numpy_namespace, ops, originating, rewrite, symbol
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.regions import RecomputedRegion
from sigma_step.recomputation import gradient_recomputing, regions_before, rewrite_with_regions

WIDTH = 4


def layers(count=3, marked=(1,)):
    """Return input, weights, the loss of a chain of two products and tanhs a layer, and the regions of marked ones."""
    x, weights = symbol((5, WIDTH)), [symbol((WIDTH, WIDTH), name=f"w{i}") for i in range(2 * count)]
    value, regions = x, []
    for i in range(count):
        with originating(f"{i}"):
            before, value = value, ops.tanh(value @ weights[2 * i])
        with originating(f"{i}.inner"):
            value = ops.tanh(value @ weights[2 * i + 1])
        regions += [RecomputedRegion(f"{i}", (before,), (value,))] if i in marked else []
    return x, weights, (value * value).sum(), regions


def values(nodes, *inputs):
    """Return the values of nodes at random inputs."""
    arrays = [np.random.default_rng(i).normal(size=node.shape).astype("f4") for i, node in enumerate(inputs)]
    return interpret(Graph(tuple(inputs), tuple(nodes)), numpy_namespace())(*arrays)


def operations(nodes, op):
    return [node for node in Graph((), tuple(nodes)) if node.op == op]


@pytest.mark.parametrize("marked", [(0,), (1,), (2,), (0, 1, 2)])
def test_gradients_are_equal_to_the_bit_and_copies_survive_simplification(marked):
    x, weights, loss, regions = layers(marked=marked)
    plain, repeated = gradient(loss, weights), gradient_recomputing(loss, weights, regions)
    for a, b in zip(values(plain, x, *weights), values(repeated, x, *weights), strict=True):
        assert a.tobytes() == b.tobytes()
    simplified = rewrite(Graph((x, *weights), repeated)).outputs
    assert len(operations(simplified, "tanh")) == 2 * 3 + len(marked)  # outputs of regions are kept, not repeated
    assert len(operations(simplified, "barrier")) == len(marked)


def test_copies_wait_for_the_gradient_of_the_output_of_their_region():
    _, weights, loss, regions = layers()
    (barrier,) = operations(gradient_recomputing(loss, weights, regions), "barrier")
    x, gate = barrier.inputs
    assert x is regions[0].inputs[0]
    later = set(Graph((), (gate,)))
    assert {weights[4], weights[5]} <= later  # the backward pass of the layer behind is computed before
    assert barrier not in later


def test_without_regions_gradients_are_those_of_the_plain_graph():
    _, weights, loss, regions = layers(marked=())
    assert regions == []
    assert Graph((), gradient_recomputing(loss, weights, [])) == Graph((), gradient(loss, weights))


def test_regions_that_a_loss_does_not_depend_on_are_left_out():
    _, _, loss, regions = layers(marked=(0, 1))
    aside = RecomputedRegion("aside", (symbol((2,)),), (ops.exp(symbol((2,))),))
    assert regions_before(loss, [*regions, aside]) == regions
    assert regions_before(loss, []) == []


def test_a_value_that_the_gradient_of_the_output_itself_depends_on_is_kept():
    """A gate outside reads a value inside, too: waiting for that gradient would be a cycle."""
    x, w = symbol((5, WIDTH)), symbol((WIDTH, WIDTH))
    with originating("marked"):
        inner = ops.tanh(x @ w)
        out = ops.sin(inner)
    loss = (ops.exp(out) * inner).sum()
    plain = gradient(loss, [w])
    repeated = gradient_recomputing(loss, [w], [RecomputedRegion("marked", (x,), (out,))])
    assert values(plain, x, w)[0].tobytes() == values(repeated, x, w)[0].tobytes()


def test_parameters_are_shared_and_keys_of_random_bits_are_not():
    x, w, rate = symbol((5, WIDTH)), symbol((WIDTH, WIDTH)), constant(0.5)
    key = (symbol((2,), "uint32"), *(constant(0, "uint32") for _ in range(3)))
    with originating("marked"):
        out = ops.tanh(ops.dropout(ops.tanh(x @ w), rate, *key, stream=1) @ w)
    repeated = gradient_recomputing((out * out).sum(), [w], [RecomputedRegion("marked", (x,), (out,))])
    assert {node.inputs[0] for node in operations(repeated, "barrier")} == {x, key[0]}


def test_regions_are_found_after_simplification():
    _, _, loss, regions = layers()
    new, (region,) = rewrite_with_regions(loss * 1.0, regions, ops.OPS)
    assert region.origin == "1"
    assert set(region.ends) <= set(Graph((), (new,)))
    assert len(region.find_inside()) > 2
    assert all(isinstance(node, Node) and node.inputs for node in region.find_inside())
