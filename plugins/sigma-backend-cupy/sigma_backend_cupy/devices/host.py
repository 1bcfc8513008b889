"""The processor as a device: the text of the kernels, compiled by a C++ compiler. For tests, not for speed."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.lib.stride_tricks import as_strided

from sigma_backend_cupy.devices.device import ALIGNED, Call
from sigma_backend_cupy.graphs.views import StridedProduct, StridedView
from sigma_backend_cupy.text.kernels import Kernel
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import BYTES, Namespace, numpy_namespace

FLAGS = ("-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w")


@frozen
class HostDevice:
    """The processor; with ``reverse``, the threads of a block and the blocks of a kernel run in reverse order."""

    reverse: bool = False

    def active(self) -> AbstractContextManager[Any]:
        """Return a context that does nothing."""
        return nullcontext()

    def memory(self, size: int) -> np.ndarray:
        """Return an array of bytes, filled with what no result may depend on."""
        room = np.full(size + ALIGNED, 0xA5, np.uint8)
        start = -room.ctypes.data % ALIGNED
        return room[start : start + size]

    def address(self, array: np.ndarray) -> int:
        """Return the address of an array."""
        return int(array.ctypes.data)

    def array(self, address: int, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Return the array at an address; 16 bits are held as integers."""
        kind = "uint16" if BYTES[dtype] == 2 else dtype
        count = int(np.prod(shape))
        held: Any = (ctypes.c_char * (count * BYTES[dtype])).from_address(address)
        return np.frombuffer(held, kind, count).reshape(shape)

    def empty(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Return a new array."""
        return np.empty(tuple(shape), dtype)

    def to_contiguous(self, array: Any, dtype: str) -> np.ndarray:
        """Return an argument as an array in C order."""
        return np.asarray(array, dtype, order="C")

    def place(self, host: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(host, order="C")

    def fetch(self, array: np.ndarray) -> np.ndarray:
        """Return a copy."""
        return np.array(array, order="C")

    def copy(self, to: int, source: int, size: int) -> None:
        """Copy bytes."""
        ctypes.memmove(to, source, size)

    def kernels(self, kernels: Sequence[Kernel]) -> Mapping[str, Call]:
        """Compile all kernels in one call of the compiler."""
        if not kernels:
            return {}
        library = _library("\n".join(f"{x.text}{_entry(x)}" for x in sorted(kernels, key=lambda x: x.name)))
        return {x.name: self._call(getattr(library, f"run_{x.name}"), x.blocks) for x in kernels}

    def _call(self, function: Any, blocks: int) -> Call:
        def call(addresses: Sequence[int]) -> None:
            function(blocks, int(self.reverse), (ctypes.c_void_p * len(addresses))(*addresses))

        return call

    def product(self, product: StridedProduct) -> Call:
        """Multiply with NumPy."""

        def call(addresses: Sequence[int]) -> None:
            x, y = (
                self._read(a, operand, product) for a, operand in zip(addresses, (product.x, product.y), strict=False)
            )
            with np.errstate(all="ignore"):
                np.matmul(x, y, out=self.array(addresses[2], product.shape, product.dtype))

        return call

    def _read(self, address: int, one: StridedView, product: StridedProduct) -> np.ndarray:
        dtype = product.narrow or product.dtype
        last = sum((side - 1) * stride for side, stride in zip(one.shape, one.strides, strict=True))
        flat = self.array(address, (last + 1,), dtype)
        if dtype == "bfloat16":
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        if dtype == "float16":
            flat = flat.view(np.float16).astype(np.float32)
        return as_strided(flat, one.shape, [stride * flat.itemsize for stride in one.strides])

    def record(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return the function itself."""
        return run

    def namespace(self) -> Namespace:
        """Return NumPy's."""
        return numpy_namespace()


def source(name: str) -> str:
    """Return the text of a header of this package."""
    return (files("sigma_backend_cupy.text") / name).read_text()


def _entry(kernel: Kernel) -> str:
    """Return a function that runs all blocks of a kernel."""
    types = ["const int*", *(x.text for x in kernel.parameters)]
    given = ", ".join(f"({text})a[{k}]" for k, text in enumerate(types))
    return (
        f'extern "C" void run_{kernel.name}(int blocks, int reverse, void** a)\n{{\n    sigma_reverse_ = reverse;\n'
        f"    for (int b = 0; b < blocks; ++b) {{\n        sigma_block_ = reverse ? blocks - 1 - b : b;\n"
        f"        {kernel.name}({given});\n    }}\n}}\n"
    )


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="sigma-cupy-"))


@cache
def _library(text: str) -> ctypes.CDLL:
    """Compile a text; raises SigmaConfigError if there is no compiler."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise SigmaConfigError("backend 'cupy': no C++ compiler was found for the host. Install g++ or clang++.")
    whole = f"{source('host.hpp')}{source('prelude.cuh')}{text}"
    path = _folder() / f"{hashlib.sha256(whole.encode()).hexdigest()[:16]}.cpp"
    path.write_text(whole)
    library = path.with_suffix(".so")
    process = subprocess.run(
        [compiler, *FLAGS, str(path), "-o", str(library)], capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise SigmaConfigError(f"backend 'cupy': the kernels in {path} do not compile: {process.stderr[:2000]}")
    return ctypes.CDLL(str(library))
