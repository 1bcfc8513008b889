"""Pass constant arrays to a program as further inputs: its code, and so the cache, does not depend on their entries."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from sigma_backend_numba.execute.alignment import copy
from sigma_kernel.graph import Graph, Node, changed, symbol


def lifted(graph: Graph) -> tuple[Graph, tuple[np.ndarray, ...]]:
    """Return a graph that takes its constant arrays as its last inputs, and these arrays.

    Those in the body of a scan remain.
    """
    found = [node for node in graph if node.op == "array"]
    if not found:
        return graph, ()
    inputs = {node: symbol(node.shape, node.dtype) for node in found}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        return inputs.get(node, node) if operands == node.inputs else evolve(node, inputs=operands)

    made = changed(graph, change, lambda body: body)
    return Graph((*graph.inputs, *inputs.values()), made.outputs), tuple(copy(x.attrs["value"].array) for x in found)
