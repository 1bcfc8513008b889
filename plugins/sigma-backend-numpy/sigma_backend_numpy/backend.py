"""The NumPy backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from sigma_backend_numpy.duration import estimate_seconds
from sigma_backend_numpy.kernels import LOWERINGS
from sigma_backend_numpy.memory import empty
from sigma_backend_numpy.program import DTYPES, PlannedProgram
from sigma_kernel import as_numpy
from sigma_kernel.contracts import Backend, LoopProgram, Step
from sigma_kernel.graph import Graph, rewrite


@frozen
class NumpyBackend(Backend):
    """Run graphs with NumPy on the CPU."""

    dtypes: ClassVar[frozenset[str]] = DTYPES

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return the version of NumPy, and its BLAS library."""
        built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return {"NumPy": np.__version__, "BLAS": f"{built['name']} {built['version']}"}

    def estimate(self, graph: Graph) -> tuple[float, float]:
        """Return that nothing is compiled, and about how many seconds a graph is computed."""
        return 0.0, estimate_seconds(graph)

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> PlannedProgram:
        """Compile a graph to a program; SigmaGraphError for a dtype that NumPy computes slowly or not at all."""
        return PlannedProgram(rewrite(graph, keep=LOWERINGS), donate)

    def compile(self, step: Step, in_place: bool = True) -> LoopProgram:
        """Return the program of a step, with its bytes known."""
        program = self.lower(step.graph, step.donations if in_place else {})
        return LoopProgram(self, step, program, program.peak_bytes)

    def to_device(self, host: Any) -> np.ndarray:
        """Return a copy, aligned to a cache line."""
        given = as_numpy(host)
        array = empty(given.shape, given.dtype)
        array[...] = given
        return array

    def share(self, host: np.ndarray) -> np.ndarray:
        """Return the array itself if it is contiguous, else a copy."""
        return host if host.flags.c_contiguous else self.to_device(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy."""
        return np.array(array, order="C")

    def take(self, array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return copies of rows."""
        return array.take(rows, axis=0)
