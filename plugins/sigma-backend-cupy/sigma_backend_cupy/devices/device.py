"""The device interface of programs: memory, kernels, products, and replay of launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from sigma_backend_cupy.graphs.views import StridedProduct
from sigma_backend_cupy.text.kernels import Kernel
from sigma_kernel.graph import Namespace

ALIGNED = 256  # bytes; at which arrays begin
Call = Callable[[Sequence[int]], None]  # takes addresses


class Device(Protocol):
    """A device and the stream that work is queued on."""

    def active(self) -> AbstractContextManager[Any]:
        """Return a context in which this thread uses the device."""

    def memory(self, size: int) -> Any:
        """Return an array of bytes."""

    def address(self, array: Any) -> int:
        """Return the address of an array."""

    def array(self, address: int, shape: Sequence[int], dtype: str) -> Any:
        """Return the array at an address, which keeps no memory alive."""

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a new array."""

    def to_contiguous(self, array: Any, dtype: str) -> Any:
        """Return an argument as an array of the device in C order, itself if it is one."""

    def place(self, host: np.ndarray) -> Any:
        """Return a copy of an array on the device, in C order."""

    def fetch(self, array: Any) -> np.ndarray:
        """Return a copy of an array on the host, after all queued work."""

    def copy(self, to: int, source: int, size: int) -> None:
        """Queue a copy of bytes."""

    def kernels(self, kernels: Sequence[Kernel]) -> Mapping[str, Call]:
        """Compile kernels; each call takes the control words and the kernel's arrays."""

    def product(self, product: StridedProduct) -> Call:
        """Return a matrix product of two arrays into a third."""

    def record(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that replays the launches of ``run``, or calls it if the device cannot record."""

    def namespace(self) -> Namespace:
        """Return the array namespace in which meanings are computed that have no kernel."""
