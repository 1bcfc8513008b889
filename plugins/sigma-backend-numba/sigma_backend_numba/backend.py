"""The backend's interface to the kernel: compile graphs and steps, copy arrays to and from the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from sigma_backend_numba.compiler.blas_library import blas
from sigma_backend_numba.compiler.processor import mixed_form
from sigma_backend_numba.duration import estimate_compilation
from sigma_backend_numba.execute import orders
from sigma_backend_numba.execute.alignment import copy
from sigma_backend_numba.execute.program import CompiledProgram, LoweredFunction, graph_job, machine, step_job
from sigma_backend_numba.lower.canonical import DTYPES
from sigma_kernel import as_numpy
from sigma_kernel.contracts import Backend, Step
from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph import ALIGNMENT, Graph
from sigma_kernel.settings import ge, whole


@frozen
class NumbaBackend(Backend):
    """Compile graphs to machine code for this processor, and steps to one function that runs bursts.

    Args:
        threads: Most threads of one burst; 0 means all available processors. It never changes a bit.
        approximate: Whether float32 exponentials, logarithms and hyperbolic tangents may have a relative error of 1e-4.
    """

    threads: int = field(default=0, validator=[whole, ge(0)])
    approximate: bool = False

    dtypes: ClassVar[frozenset[str]] = DTYPES

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return the library for matrix products, with its version, and how products of bfloat16 are computed."""
        return {"BLAS": str(blas()), "bfloat16": mixed_form() or "rounded, multiplied in float32"}

    @property
    def function_error(self) -> float:
        """Return the relative error that ``approximate`` allows."""
        return 1e-4 if self.approximate else 0.0

    def estimate(self, graph: Graph) -> tuple[float, float]:
        """Return about how many seconds it takes to compile a graph; how long it computes is not known beforehand."""
        return estimate_compilation(graph), 0.0

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> LoweredFunction:
        """Return a graph as a function.  A dtype or an op without code is a SigmaGraphError."""
        _check(graph, donate)
        return LoweredFunction(machine(graph_job(graph, donate, self.approximate), self.threads), dict(donate))

    def compile(self, step: Step, in_place: bool = True) -> CompiledProgram:
        """Return a step as a program that runs whole bursts by itself."""
        _check(step.graph, step.donations)
        return CompiledProgram(step, machine(step_job(step, self.approximate), self.threads), in_place)

    def to_device(self, host: Any) -> np.ndarray:
        """Return a copy that is aligned to a cache line, in huge pages if it is large."""
        return copy(as_numpy(host))

    def share(self, host: np.ndarray) -> np.ndarray:
        """Return the array itself if it is contiguous and aligned to a cache line, else a copy."""
        fits = host.flags.c_contiguous and host.ctypes.data % ALIGNMENT == 0
        return host if fits else self.to_device(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy."""
        return np.array(array, order="C")

    def take(self, array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return copies of rows."""
        return array.take(rows, axis=0)

    def permutation(self, seed: int, stream: int, epoch: int, rows: int) -> np.ndarray:
        """Return the order of rows in an epoch, drawn in compiled code without the interpreter's lock."""
        return orders.permutation(seed, stream, epoch, rows)


def _check(graph: Graph, donate: Mapping[int, int]) -> None:
    """Refuse donations that do not fit."""
    if len(set(donate.values())) < len(donate):
        raise SigmaGraphError(f"numba: two outputs cannot take the storage of one input: {dict(donate)}.")
    for out, place in donate.items():
        if graph.outputs[out].spec != graph.inputs[place].spec:
            raise SigmaGraphError(
                f"numba: output {out}, {graph.outputs[out].spec}, does not fit the storage of input {place}, "
                f"{graph.inputs[place].spec}. Donate an input of the same shape and dtype."
            )
