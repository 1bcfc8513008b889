"""One of NVIDIA's GPUs, through CuPy: its memory, kernels compiled by NVRTC, cuBLAS, and recorded launches.

CuPy is imported when the first device is made. All work of a device is queued on one stream, by one thread at a time,
and is finished when the thread is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_backend_cupy.devices.device import Call
from sigma_backend_cupy.devices.gemm import Gemm, gemms
from sigma_backend_cupy.graphs.views import StridedProduct
from sigma_backend_cupy.text.kernels import Kernel
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import BYTES, MEANINGS, Namespace

OPTIONS = ("--std=c++17",)
NAMES = ("float32", "float64", "int32", "int64", "uint32")


@cache
def device(number: int, tf32: bool) -> CudaDevice:
    """Return a GPU; raises SigmaConfigError if CuPy is not installed, or there is no such GPU."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise SigmaConfigError(
            f"backend 'cupy': CuPy is not installed ({error}). Install it for your version of CUDA: "
            "pip install 'sigma-backend-cupy[cuda12]', or [cuda13]."
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # of CuPy's own kinds, before CUDA is there
        raise SigmaConfigError(
            f"backend 'cupy': there is no GPU that CUDA can use here ({error}). Install NVIDIA's driver on a machine "
            "with one of its GPUs, or choose another backend."
        ) from error
    if not 0 <= number < count:
        raise SigmaConfigError(
            f"backend 'cupy': there is no GPU {number}. Set `device` to a number from 0 to {count - 1}."
        )
    return CudaDevice(cupy, number, tf32)


@frozen(eq=False)
class CudaDevice:
    """A GPU by number; with ``tf32``, products of float32 round their operands."""

    cupy: Any
    number: int
    tf32: bool
    stream: Any = field(init=False)
    lock: Any = field(factory=threading.RLock, init=False)

    @stream.default
    def _(self) -> Any:
        with self.cupy.cuda.Device(self.number):
            return self.cupy.cuda.Stream(non_blocking=True)

    @property
    def name(self) -> str:
        """Return the name of the GPU."""
        name: bytes = self.cupy.cuda.runtime.getDeviceProperties(self.number)["name"]
        return name.decode()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Use the device in this thread alone, and wait for it at the end."""
        with self.lock, self.cupy.cuda.Device(self.number), self.stream:
            try:
                yield
            finally:
                self.stream.synchronize()

    # -- memory --------------------------------------------------------------------------------------------------------
    def memory(self, size: int) -> Any:
        """Return an array of bytes."""
        return self.cupy.zeros(size, np.uint8)

    def address(self, array: Any) -> int:
        """Return the address of an array."""
        return int(array.data.ptr)

    def array(self, address: int, shape: Sequence[int], dtype: str) -> Any:
        """Return the array at an address."""
        kind = np.dtype("uint16" if BYTES[dtype] == 2 else dtype)
        size = int(np.prod(shape)) * kind.itemsize
        held = self.cupy.cuda.UnownedMemory(address, size, self, self.number)
        return self.cupy.ndarray(tuple(shape), kind, self.cupy.cuda.MemoryPointer(held, 0))

    def empty(self, shape: Sequence[int], dtype: str) -> Any:
        """Return a new array."""
        return self.cupy.empty(tuple(shape), dtype)

    def to_contiguous(self, array: Any, dtype: str) -> Any:
        """Return an argument as an array of the device in C order."""
        return self.cupy.ascontiguousarray(self.cupy.asarray(array, dtype)).reshape(np.shape(array))

    def place(self, host: np.ndarray) -> Any:
        """Return a copy on the device."""
        return self.cupy.array(np.array(host, order="C"), order="C")

    def fetch(self, array: Any) -> np.ndarray:
        """Return a copy on the host."""
        return np.array(self.cupy.asnumpy(array), order="C")

    def copy(self, to: int, source: int, size: int) -> None:
        """Queue a copy of bytes."""
        runtime = self.cupy.cuda.runtime
        if size:
            runtime.memcpyAsync(to, source, size, runtime.memcpyDeviceToDevice, self.stream.ptr)

    # -- work ----------------------------------------------------------------------------------------------------------
    def kernels(self, kernels: Sequence[Kernel]) -> Mapping[str, Call]:
        """Compile kernels with NVRTC; CuPy keeps the result on disk, by text, options and GPU."""
        text = (files("sigma_backend_cupy.text") / "prelude.cuh").read_text()
        every = sorted(kernels, key=lambda kernel: kernel.name)
        module = self.cupy.RawModule(code=text + "\n".join(x.text for x in every), options=OPTIONS)
        return {x.name: _launcher(module.get_function(x.name), x) for x in every}

    def product(self, product: StridedProduct) -> Call:
        """Multiply with cuBLAS."""
        calls = [self._gemm(gemm, product) for gemm in gemms(product)]

        def call(addresses: Sequence[int]) -> None:
            for call in calls:
                call(addresses)

        return call

    def _gemm(self, gemm: Gemm, product: StridedProduct) -> Call:
        runtime, cublas = self.cupy.cuda.runtime, import_module("cupy_backends.cuda.libs.cublas")
        double = product.dtype == "float64"
        types = {"float32": "R_32F", "float64": "R_64F", "float16": "R_16F", "bfloat16": "R_16BF"}
        given, result = (getattr(runtime, f"CUDA_{types[x]}") for x in (product.narrow or product.dtype, product.dtype))
        fast = self.tf32 and product.dtype == "float32" and not product.narrow
        how = getattr(cublas, f"CUBLAS_COMPUTE_{'64F' if double else '32F_FAST_TF32' if fast else '32F'}")
        unit, zero = (np.array(x, product.dtype) for x in (1, 0))
        (a, b, c), (lda, ldb, ldc), (over_a, over_b, over_c) = gemm.offsets, gemm.distances, gemm.strides

        def call(addresses: Sequence[int]) -> None:
            x, y, out = addresses
            cublas.gemmStridedBatchedEx(
                self.cupy.cuda.device.get_cublas_handle(), *map(int, gemm.transposed), *gemm.sides, unit.ctypes.data,
                y + a, given, lda, over_a, x + b, given, ldb, over_b, zero.ctypes.data,
                out + c, result, ldc, over_c, gemm.count, how, cublas.CUBLAS_GEMM_DEFAULT,
            )  # fmt: skip

        return call

    def record(self, run: Callable[[], None]) -> Callable[[], None]:
        """Record launches as a CUDA graph, after a first run that prepares libraries and loads kernels."""
        run()
        self.stream.synchronize()
        self.stream.begin_capture()
        try:
            run()
        finally:
            graph = self.stream.end_capture()
        return lambda: graph.launch(self.stream)

    def namespace(self) -> Namespace:
        """Return CuPy's."""
        dtypes = {name: np.dtype(name) for name in (*NAMES, "bool")}
        own = {"argsort": partial(MEANINGS["argsort"], by=self.cupy.argsort)}  # stable, without a setting that says so
        raising = partial(import_module("cupyx").errstate, linalg="raise")  # for matrices without a result
        return Namespace("cupy", self.cupy, dtypes, np.int64, quiet=raising, own=own)


def _launcher(function: Any, kernel: Kernel) -> Call:
    grid, block = (kernel.blocks,), (kernel.threads,)

    def call(addresses: Sequence[int]) -> None:
        function(grid, block, tuple(map(np.uint64, addresses)))

    return call
