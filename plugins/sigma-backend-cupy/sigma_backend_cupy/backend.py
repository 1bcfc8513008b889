"""The CUDA backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from sigma_backend_cupy.devices import cuda
from sigma_backend_cupy.devices.device import Device
from sigma_backend_cupy.runs.program import CupyProgram, function
from sigma_kernel.contracts import Array, Backend, Step
from sigma_kernel.graph import Graph


@frozen
class CupyBackend(Backend):
    """Compute training steps on one of NVIDIA's GPUs; ``backend = "cupy"`` is all that changes.

    Args:
        device: The number of the GPU. Raises SigmaConfigError if CuPy is not installed, or there is no such GPU.
        tf32: Let products of float32 round their operands to 10 bits after the point, as tensor cores do.
    """

    device: int = 0
    tf32: bool = False

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if the device cannot be used."""
        self.open_device()

    def open_device(self) -> Device:
        """Return the device."""
        return cuda.device(self.device, self.tf32)

    @property
    def runtime(self) -> Mapping[str, str]:
        """Return the versions of CuPy and CUDA, and the GPU."""
        device = cuda.device(self.device, self.tf32)
        version = device.cupy.cuda.runtime.runtimeGetVersion()
        return {
            "CuPy": device.cupy.__version__,
            "CUDA": f"{version // 1000}.{version % 1000 // 10}",
            "device": device.name,
        }

    def lower(self, graph: Graph, donate: Mapping[int, int]) -> Callable[..., Sequence[Array]]:
        """Return a function of arrays; its results are new arrays."""
        return function(graph, self.open_device())

    def compile(self, step: Step, in_place: bool = True) -> CupyProgram:
        """Return the program of a step, whose bursts stay on the device."""
        return CupyProgram(step, self.open_device(), in_place)

    def to_device(self, host: np.ndarray) -> Array:
        """Return a copy on the device."""
        device = self.open_device()
        with device.active():
            return device.place(host)

    def to_host(self, array: Any) -> np.ndarray:
        """Return a copy on the host, when it is computed."""
        device = self.open_device()
        with device.active():
            return device.fetch(array)
