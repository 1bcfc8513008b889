"""Pass constant arrays to a program as further inputs: its code, and so the cache, does not depend on their entries."""

from __future__ import annotations

import numpy as np

from sigma_backend_numba.execute.alignment import copy
from sigma_kernel.graph import Graph, lift_constants


def split_constants(graph: Graph) -> tuple[Graph, tuple[np.ndarray, ...]]:
    """Return a graph that takes its constant arrays as its last inputs, and copies of them."""
    program, arrays = lift_constants(graph)
    return program, tuple(copy(node.attrs["value"].array) for node in arrays)
