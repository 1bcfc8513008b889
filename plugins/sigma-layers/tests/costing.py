"""Values of costs, computed in NumPy, for the tests of this folder."""

from __future__ import annotations

import numpy as np

from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace, symbol
from sigma_testing import trace_layer


def it(layer, *arrays, weights=None):
    """Return a traced cost and its arrays."""
    given = [*arrays] if weights is None else [*arrays, weights]
    specs = [Spec(x.shape, str(x.dtype)) for x in given]
    return trace_layer(layer, specs, training=True, weighted=weights is not None), given


def cost(layer, *arrays, weights=None):
    """Return the cost of an output, or several, and targets."""
    found, given = it(layer, *arrays, weights=weights)
    return float(found.run(found.values(given))[0])


def slopes(layer, *arrays, weights=None):
    """Return the gradient of a cost in its first input."""
    found, given = it(layer, *arrays, weights=weights)
    graph = Graph(found.graph.inputs, gradient(found.output, found.graph.inputs[:1]))
    return interpret(graph, numpy_namespace())(*found.values(given))[0]


def totals(layer, *arrays, weights=None):
    """Return the weighted sum of a cost, and the sum of its weights."""
    found, given = it(layer, *arrays, weights=weights)
    run = interpret(Graph(found.graph.inputs, found.totals), numpy_namespace())
    return tuple(float(x) for x in run(*found.values(given)))


def predicted(layer, x):
    """Return the prediction of a cost for an output."""
    node = symbol(x.shape, str(x.dtype))
    return np.asarray(interpret(Graph((node,), (layer.prediction(node),)), numpy_namespace())(x)[0])
