"""The null backend for tests: slow, simple, and poisons donated arrays, so that any later read shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sigma_kernel.contracts import Backend
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import Namespace, numpy_namespace
from sigma_kernel.graph.node import Graph


class NullBackend(Backend):
    """Compute with the reference meanings, then poison every donated input with NaN, the largest integer, or True."""

    namespace: Namespace = numpy_namespace()  # a subclass may have another

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        """Return a function that computes, copies its results, and poisons the donated inputs."""
        run = interpret(graph, self.namespace)

        def call(*arrays: Any) -> list[np.ndarray]:
            results = [np.array(value) for value in run(*arrays)]
            for position in donate.values():
                poison(arrays[position])
            return results

        return call

    def to_device(self, host: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy."""
        return np.array(array)


def poison(array: np.ndarray) -> None:
    """Overwrite an array with values that show up in any result computed from them."""
    if array.dtype.kind == "f":
        array.fill(np.nan)
    else:
        array.fill(True if array.dtype == bool else np.iinfo(array.dtype).max)
