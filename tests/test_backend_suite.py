"""The backend suite passes on the null backend, which poisons donated inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, symbol
from sigma_kernel.testing.backend import BackendSuite
from sigma_kernel.testing.null import NullBackend


class TestNull(BackendSuite):
    def make(self) -> Backend:
        return NullBackend()


@pytest.mark.parametrize(("dtype", "poison"), [("float32", np.nan), ("int32", 2**31 - 1), ("bool", True)])
def test_a_donated_input_is_poisoned_and_others_are_unchanged(dtype: str, poison: Any) -> None:
    backend, x, y = NullBackend(), symbol((3,), dtype), symbol((3,), dtype)
    given, kept = np.zeros(3, dtype), np.zeros(3, dtype)
    (result,) = backend.lower(Graph((x, y), (f.where(f.equal(x, y), x, y),)), {0: 0})(given, kept)
    np.testing.assert_array_equal(given, np.full(3, poison, dtype))
    np.testing.assert_array_equal(kept, np.zeros(3, dtype))
    np.testing.assert_array_equal(result, np.zeros(3, dtype))


# -- the suite detects faults ------------------------------------------------------------------------------------------
class Sharing(NullBackend):
    """Returns the caller's own memory."""

    def to_device(self, host: np.ndarray) -> np.ndarray:
        return host


class Forgetful(NullBackend):
    """Overwrites the results of its previous call."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run, results = super().lower(graph, donate), []

        def call(*arrays: Any) -> Sequence[Any]:
            new = run(*arrays)
            if not results:
                results.extend(new)
            for old, value in zip(results, new, strict=True):
                old[...] = value
            return results

        return call


class Imprecise(NullBackend):
    """Rounds to half precision."""

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Any]]:
        run = interpret(graph, numpy_namespace())
        return lambda *arrays: [
            np.asarray(x).astype("float16").astype(x.dtype) if x.dtype.kind == "f" else np.asarray(x)
            for x in run(*arrays)
        ]


@pytest.mark.parametrize(
    ("backend", "test"),
    [
        (Sharing, "test_arrays_on_the_device_are_copies"),
        (Forgetful, "test_results_survive_the_next_call"),
        (Imprecise, "test_every_op_agrees_with_its_meaning"),
    ],
)
def test_the_suite_fails_on_a_backend_that_breaks_the_contract(backend: type[Backend], test: str) -> None:
    class Broken(BackendSuite):
        def make(self) -> Backend:
            return backend()

    with pytest.raises(AssertionError):
        getattr(Broken(), test)()
