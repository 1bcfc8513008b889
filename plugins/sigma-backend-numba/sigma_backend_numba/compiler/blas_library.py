"""Choose the library for matrix products: Intel MKL if its wheel is installed, else OpenBLAS.

Both run on one thread: Sigma's own threads each compute whole pieces of a product.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from attrs import frozen

SEQUENTIAL = 1  # name of MKL's layer without threads
SUFFIXES = (".so", ".dylib", ".dll")


@frozen
class Blas:
    """A BLAS library: its name, its version, and its functions for float32 and float64."""

    name: str
    version: str
    sgemm: Any
    dgemm: Any

    def __str__(self) -> str:
        """Return the name with the version."""
        return f"{self.name} {self.version}"


@cache
def blas() -> Blas:
    """Return the library for this process."""
    return _mkl() or _openblas()


def _mkl() -> Blas | None:
    """Return MKL, or None if its wheel is not installed."""
    try:
        wheel = metadata.distribution("mkl")
    except metadata.PackageNotFoundError:
        return None
    path = next((x for x in wheel.files or () if x.name.startswith(("libmkl_rt.", "mkl_rt."))), None)
    if path is None:
        return None
    library = ctypes.CDLL(str(wheel.locate_file(path)))
    library.MKL_Set_Threading_Layer(SEQUENTIAL)
    return Blas("Intel MKL", wheel.version, library.cblas_sgemm, library.cblas_dgemm)


def _openblas() -> Blas:
    folder = Path(import_module("scipy_openblas32").get_lib_dir())
    libraries = sorted(path for path in folder.iterdir() if path.name.startswith("libscipy_openblas"))
    library = ctypes.CDLL(str(next(path for path in libraries if path.suffix in SUFFIXES)))
    library.scipy_openblas_set_num_threads(1)
    library.scipy_openblas_get_config.restype = ctypes.c_char_p
    version = library.scipy_openblas_get_config().decode().split()[1]
    return Blas("OpenBLAS", version, library.scipy_cblas_sgemm, library.scipy_cblas_dgemm)
