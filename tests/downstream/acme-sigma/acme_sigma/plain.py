"""A minimal backend."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sigma_kernel import Backend
from sigma_kernel.graph import Graph, interpret, numpy_namespace


class Plain(Backend):
    """Call numpy op by op, and copy everything."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[np.ndarray]]:
        """Return the graph as a function of arrays."""
        run = interpret(graph, numpy_namespace())
        return lambda *arrays: [np.array(result) for result in run(*arrays)]

    def to_device(self, host: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(host)

    def to_host(self, array: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(array)
