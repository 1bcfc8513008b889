"""Floating-point operations and bytes of a graph, against closed forms."""

from __future__ import annotations

import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Spec, gradient, symbol, trace
from sigma_step.work import operations, traffic

COUNTS = {
    "a product": (lambda x: x @ x.T, (5, 7), 2 * 5 * 7 * 5),
    "products of several matrices": (lambda x: x @ f.swap_axes(x, 1, 2), (3, 5, 7), 3 * 2 * 5 * 7 * 5),
    "an elementwise op": (lambda x: x + 1.0, (5, 7), 35),
    "a function": (lambda x: f.exp(x), (5, 7), 35),
    "a sum": (lambda x: f.sum(x, axis=1), (5, 7), 35),
    "a reshape": (lambda x: f.permute(f.reshape(x, (7, 5)), (1, 0)), (5, 7), 0),
    "a composite, by what it expands to": (lambda x: f.silu(x), (5,), 5 * (1 + 1 + 1 + 1 + 1 + 1 + 1 + 1)),
    "comparisons and choices": (lambda x: f.where(x > 0.0, x, 0.0), (5, 7), 70),
    "integers": (lambda x: f.cast(x, "int32") + 1, (5, 7), 0),
    "a loop": (lambda x: f.scan(lambda h, e: ([h * e], []), [f.ones((7,))], [x])[0][0], (5, 7), 5 * 7),
    "windows": (lambda x: f.max_pool(f.reshape(x, (1, 1, 6, 6)), 2), (6, 6), 36),
}


@pytest.mark.parametrize("name", COUNTS)
def test_operations_are_counted(name):
    function, shape, count = COUNTS[name]
    assert operations(trace(function, Spec(shape))) == count


def test_a_convolution_and_its_gradients_have_the_same_number():
    x, w = symbol((2, 6, 9, 8)), symbol((4, 3, 3, 2))
    y = f.convolution(x, w, stride=2, groups=2)
    count = 2 * (2 * 4 * 4 * 4) * (3 * 3 * 2)
    assert y.shape == (2, 4, 4, 4)
    assert operations(Graph((x, w), (y,))) == count
    for slope, operand in zip(gradient(f.sum(y), [x, w]), (x, w), strict=True):
        (node,) = (node for node in Graph((), (slope,)) if node.op.startswith("convolution_"))
        assert operations(Graph((operand,), (node,))) == count


def test_traffic_is_that_of_inputs_and_outputs():
    x, n = symbol((5, 7)), symbol((3,), "int64")
    assert traffic(Graph((x, n), (x + 1.0, f.sum(x)))) == 4 * 35 + 8 * 3 + 4 * 35 + 4
