"""Matrix products by the address of a C function, so that programs that call it can be kept on disk.

The library is asked for one thread: threads are ours, and take whole pieces of a product.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from sigma_backend_numba.runtime.libraries import llvm, openblas, types
from sigma_backend_numba.runtime.memory import driver


def _library() -> ctypes.CDLL:
    folder = Path(openblas.get_lib_dir())
    found = sorted(path for path in folder.iterdir() if path.name.startswith("libscipy_openblas"))
    library = ctypes.CDLL(str(next(path for path in found if path.suffix in (".so", ".dylib", ".dll"))))
    library.scipy_openblas_set_num_threads(1)
    return library


LIBRARY = _library()


def _product(name: str, kind: Any) -> Any:
    """Return a C function as one that compiled code can call."""
    address = ctypes.cast(getattr(LIBRARY, f"scipy_cblas_{name}"), ctypes.c_void_p).value
    llvm.add_symbol(f"sigma_{name}", address)
    size, matrix = types.intc, types.CPointer(kind)
    operands = (kind, matrix, size, matrix, size, kind, matrix, size)
    return types.ExternalFunction(f"sigma_{name}", types.void(*[size] * 6, *operands))


_sgemm, _dgemm = _product("sgemm", types.float32), _product("dgemm", types.float64)
_i = np.int32
BY_ROWS, AS_IT_IS, TURNED = 101, 111, 112


def _wrapped(function: Any) -> Any:
    @driver
    def gemm(
        ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Any, lda: Any, b: Any, ldb: Any, beta: Any,
        c: Any, ldc: Any,
    ) -> None:  # fmt: skip
        """Write ``c = alpha * a @ b + beta * c``; ``ta`` and ``tb`` say which operands lie transposed."""
        if m > 0 and n > 0:
            function(
                _i(BY_ROWS), _i(TURNED if ta else AS_IT_IS), _i(TURNED if tb else AS_IT_IS), _i(m), _i(n), _i(k),
                alpha, a, _i(lda), b, _i(ldb), beta, c, _i(ldc),
            )  # fmt: skip

    return gemm


sgemm, dgemm = _wrapped(_sgemm), _wrapped(_dgemm)
