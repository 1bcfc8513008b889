"""Pass constant arrays to a program as further inputs: its code, and so the cache, does not depend on their entries."""

from __future__ import annotations

import numpy as np

from sigma_backend_numba.execute.alignment import copy
from sigma_kernel.graph import Graph, replace_nodes, symbol


def split_constants(graph: Graph) -> tuple[Graph, tuple[np.ndarray, ...]]:
    """Return a graph that takes its constant arrays as its last inputs, and copies of them; those of scans stay."""
    inputs = {node: symbol(node.shape, node.dtype) for node in graph if node.op == "array"}
    if not inputs:
        return graph, ()
    program = Graph((*graph.inputs, *inputs.values()), replace_nodes(graph.outputs, inputs))
    return program, tuple(copy(node.attrs["value"].array) for node in inputs)
