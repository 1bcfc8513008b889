"""Values that share storage or a loop and are read in several ways; each case is a regression test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Node, gradient, interpret, numpy_namespace, ops, symbol

Built = Callable[..., Sequence[Node]]
AROUND: dict[str, Any] = {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}
PAIRS: dict[str, Any] = {"stride": (1,), "padding": ((0, 0),), "window": (1,)}


def turned(x: Node) -> Node:
    return f.swap_axes(x, -1, -2)


def accumulated(x: Node, u: Node) -> Node:
    """Return a carry to which transposed products are added."""
    (end,), _ = f.scan(lambda total, part, u: ([total + turned(part @ u)], []), [u], [x], [u])
    return end


def slopes_of_slopes(x: Node, u: Node) -> tuple[Node, ...]:
    """Return second-order gradients through a scan."""
    (end,), _ = f.scan(lambda h, part, u: ([f.tanh(h @ u + part)], []), [u], [x], [u])
    (first,) = gradient(f.sum(f.square(end)), [u])
    return gradient(f.sum(f.square(first)), [x, u])


def attended(q: Node, k: Node, v: Node) -> tuple[Node, ...]:
    """Return the gradients of attention: those of the keys are transposed scores times queries."""
    return gradient(f.sum(f.square(f.attention(q, k, v))), [q, k, v])


def first_sample(x: Node) -> Node:
    """Pool the parts of one sample, of which there are as many as samples."""
    whole = ops.sum_pool(f.tanh(x), window=(1, 1), stride=(1, 1), padding=((0, 0), (0, 0)))
    return ops.max_pool(f.reshape(f.narrow(whole, 0, 0, 1), (3, 3, 3)), **PAIRS)


def crossed(x: Node, y: Node, z: Node) -> list[Node]:
    """Return values of two batches, each plus a sum over the other, so that the two regions depend on each other."""
    a, b, c = (ops.sum_pool(part, **PAIRS) for part in (x, y, z))
    over_a, over_b = f.sum(a, 0, keepdims=True), f.sum(ops.sum_pool(b, **PAIRS), 0, keepdims=True)
    last = [ops.sum_pool(part, **PAIRS) for part in (a + over_b, b + over_a, ops.sum_pool(c, **PAIRS))]
    return [*last[:2], last[2] * f.sum(c)]


def again_by_rows(x: Node) -> list[Node]:
    """Return the new value of an input, and that value minus its row sum, which needs a first pass over the row."""
    new = f.tanh(x) * 0.5
    return [new, new * (x - f.sum(x, 1, keepdims=True))]


def product_by_rows(x: Node, y: Node) -> list[Node]:
    """Return a product doubled in place, and the product minus its row sums."""
    z = x @ y
    return [z * 2.0, z - f.sum(z, 1, keepdims=True)]


def rearranged(x: Node) -> list[Node]:
    """Return a value plus its own elements in another order, which requires a copy."""
    doubled = x * 2.0
    return [doubled + f.reshape(f.permute(doubled, (1, 2, 0)), x.shape)]


def repeated(x: Node) -> list[Node]:
    """Return a sum that is repeated along an axis of the loop that computes it, and is stored in memory."""
    total = f.stretch(f.sum(x), (3,)) * 2.0
    return [f.concat(total, total), f.sum(x)]


def spread(x: Node) -> list[Node]:
    """Return squares of differences, added up over samples, plus the first difference, and products of all of them."""
    difference = x - f.sum(x, 0)
    total = f.sum(difference * difference, 0)
    return [total + difference[0], difference * f.sum(total)]


GRAPHS: dict[str, tuple[Built, tuple[tuple[int, ...], ...]]] = {
    "a square product, transposed": (lambda x, y: [turned(x @ y)], ((3, 4), (4, 3))),
    "a square product, scaled and transposed": (lambda x, y: [turned(x @ y) * 2.0], ((3, 4), (4, 3))),
    "a large square product, transposed": (lambda x, y: [turned(x @ y) * 2.0], ((200, 200), (200, 200))),
    "a product, read again in the next walk over its rows": (product_by_rows, ((4, 3), (3, 5))),
    "products in a batch, transposed": (lambda x, y: [turned(x @ y)], ((2, 3, 4), (2, 4, 3))),
    "products in a batch, the batch moved": (lambda x, y: [f.swap_axes(x @ y, 0, 1)], ((3, 3, 4), (3, 4, 3))),
    "the slope of a square matrix that is transposed": (
        lambda x, w: gradient(f.sum(f.tanh(x @ turned(w))), [x, w]), ((5, 3), (3, 3))),
    "a matrix times itself, transposed": (lambda x: gradient(f.sum(f.square(x @ turned(x))), [x]), ((4, 4),)),
    "attention": (attended, ((2, 6, 3), (2, 3, 3), (2, 3, 4))),
    "a convolution whose samples and channels change places": (
        lambda x, w: [f.tanh(f.swap_axes(ops.convolution(x, w, **AROUND), 0, 1))], ((4, 2, 5, 5), (4, 2, 3, 3))),
    "a convolution that is pooled with its samples and channels changed": (
        lambda x, w: [ops.max_pool(f.reshape(f.tanh(f.swap_axes(ops.convolution(x, w, **AROUND), 0, 1)), (4, 4, 25)),
                                   **PAIRS)],
        ((4, 2, 5, 5), (4, 2, 3, 3))),
    "the parts of one sample pooled": (lambda x: [first_sample(x)], ((3, 3, 3, 3),)),
    "regions that wait for each other": (crossed, ((4, 2, 5),) * 3),
    "a sum in a scan": (lambda x, u: [accumulated(x, u)], ((4, 3, 3), (3, 3))),
    "second slopes through a scan": (slopes_of_slopes, ((4, 3, 3), (3, 3))),
    "a value and its transpose": (lambda x: [x * 2.0 + turned(x * 2.0)], ((3, 3),)),
    "a costly value and its transpose": (lambda x: [f.tanh(x) + turned(f.tanh(x))], ((3, 3),)),
    "rows of a value, added to it in another order": (
        lambda x: [ops.scatter_add(f.tanh(x), 2 - f.iota((2,), 0), f.tanh(x)[:2], axis=0)], ((3, 3),)),
    "rows added to a value that nothing else reads": (
        lambda x: [ops.scatter_add(f.tanh(x), 2 - f.iota((3,), 0), x, axis=0) * 2.0], ((3, 3),)),
    "all pairs of a vector": (lambda x: [f.expand(x * 2.0, 1) + f.expand(x * 2.0, 0)], ((3,),)),
    "all pairs of sums": (lambda x: [f.expand(f.sum(x, 1), 1) + f.expand(f.sum(x, 1), 0)], ((3, 4),)),
    "a value and its elements in another order": (rearranged, ((4, 2, 2),)),
    "a sum, repeated": (repeated, ((3, 5),)),
    "a sum of squares, and the first of what is squared": (spread, ((6, 3),)),
    "only a sum of squares, and the first of what is squared": (lambda x: spread(x)[:1], ((3, 3),)),
    "one count": (lambda x: [x + f.cast(f.iota((1,), 0), "float64") + 1.0], ((3,),)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_a_value_may_be_read_through_any_view(name: str) -> None:
    build, shapes = GRAPHS[name]
    inputs = tuple(symbol(shape, "float64") for shape in shapes)
    graph, draw = Graph(inputs, tuple(build(*inputs))), np.random.default_rng(0)
    arrays = [draw.normal(size=shape) / shape[-1] for shape in shapes]
    wanted = interpret(graph, numpy_namespace())(*arrays)
    for found, expected in zip(NumbaBackend(threads=1).lower(graph, {})(*arrays), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


REPLACED: dict[str, tuple[Built, tuple[int, int]]] = {
    "read again in the next walk over its row": (again_by_rows, (3, 5)),
    "read along both axes": (lambda x: [f.tanh(x + turned(x))], (3, 3)),
    "a factor of the product that replaces it": (lambda x: [f.tanh(x @ x)], (200, 200)),
    "what a product is taken off": (lambda x: [x - (x * 2.0) @ f.tanh(x)], (3, 3)),
    "looked up in": (lambda x: [f.take(x, f.argmax(turned(x), axis=1), 0) * 2.0], (3, 3)),
}


@pytest.mark.parametrize("name", REPLACED)
def test_an_overwritten_input_may_be_read_through_any_view(name: str) -> None:
    build, shape = REPLACED[name]
    given = symbol(shape, "float64")
    graph, array = Graph((given,), tuple(build(given))), np.random.default_rng(0).normal(size=shape) / shape[-1]
    wanted = interpret(graph, numpy_namespace())(array)
    backend = NumbaBackend(threads=1)
    results = backend.lower(graph, {0: 0})(backend.to_device(array))
    for found, expected in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_an_input_is_not_overwritten_by_one_thread_while_the_sums_of_another_still_read_it() -> None:
    weights, x, y = (symbol(shape, "float64") for shape in ((256,), (256, 256), (64, 16, 16)))
    rows = weights - f.reshape(f.sum(y, 0), (256,))  # computed again where it is multiplied and where it is added up
    graph = Graph((weights, x, y), (rows * f.sum(x * f.expand(rows, 1), 0),))
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=given.shape) for given in graph.inputs]
    (wanted,) = interpret(graph, numpy_namespace())(*arrays)
    backend = NumbaBackend(threads=1)
    (found,) = backend.lower(graph, {0: 0})(*map(backend.to_device, arrays))
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def _flat(x: Node) -> Node:
    return f.reshape(x, (-1,))


JOINED: dict[str, Callable[[Node, Node], list[Node]]] = {
    "products": lambda x, y: [_flat(x @ y), _flat(turned(x) @ turned(y)), _flat((x @ y) * 0.5)],
    "a product and its rows": lambda x, y: [_flat(x @ y), _flat((x @ y) * 2.0)],
    "a transposed product": lambda x, y: [_flat(turned(x @ y) * 2.0), _flat(x)],
    "sums": lambda x, y: [f.sum(x, 0), f.sum(y, 1) * 0.5, f.expand(f.sum(x), 0)],
    "elements": lambda x, y: [_flat(f.tanh(x)), _flat(f.tanh(y))[1:], _flat(f.exp(x))],
    "a value twice": lambda x, y: [_flat(f.tanh(x)), _flat(f.tanh(x)), _flat(y)],
    "nothing": lambda x, y: [_flat(f.tanh(x))[:0], _flat(f.tanh(y))],
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("side", [3, 70])
@pytest.mark.parametrize("name", JOINED)
def test_values_are_joined_in_an_input_that_nothing_reads(name: str, side: int, threads: int) -> None:
    x, y = symbol((side, side + 2), "float64"), symbol((side + 2, side), "float64")
    joined = f.concat(*JOINED[name](x, y))
    vector = symbol(joined.shape, "float64")
    graph, draw = Graph((vector, x, y), (joined, f.sum(f.tanh(x)))), np.random.default_rng(0)
    backend = NumbaBackend(threads=threads)
    given = backend.to_device(np.full(joined.shape, np.nan))
    arrays = [draw.normal(size=node.shape) / side for node in (x, y)]
    wanted = interpret(graph, numpy_namespace())(given, *arrays)
    found = backend.lower(graph, {0: 0})(given, *arrays)
    assert np.shares_memory(found[0], given)
    for result, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-11)


def test_parts_of_a_vector_take_no_memory_besides() -> None:
    x, y = symbol((200, 300), "float32"), symbol((300, 400), "float32")
    joined = f.concat(_flat((x @ y) * 0.5), f.sum(x, 0), _flat(f.tanh(y)))
    vector = symbol(joined.shape, "float32")
    function = NumbaBackend(threads=1).lower(Graph((vector, x, y), (joined,)), {0: 0})
    assert function.machine.needs["arena"] < 10_000  # the vector has 808,000 bytes


def test_a_place_in_a_vector_is_reserved_from_the_first_part_on() -> None:
    x, w, v, z = (symbol(shape) for shape in ((5, 3), (3, 16), (3, 16), (5, 16)))
    graph = Graph((x, w, v, z), (f.tanh(f.concat(_flat((x @ w) + (x @ v)), _flat(z + 1.0))),))
    draw = np.random.default_rng(0)
    arrays = [draw.normal(size=node.shape).astype(np.float32) for node in graph.inputs]
    (wanted,) = interpret(graph, numpy_namespace())(*arrays)
    for threads in (1, 2):
        (found,) = NumbaBackend(threads=threads).lower(graph, {})(*arrays)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
