"""Which library computes matrix products."""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace

import pytest

from sigma_backend_numba.compiler import blas_library


@pytest.fixture(autouse=True)
def _asked_anew():
    blas_library.blas.cache_clear()
    yield
    blas_library.blas.cache_clear()


def _absent(name: str) -> None:
    raise metadata.PackageNotFoundError(name)


def test_openblas_is_always_available(monkeypatch):
    monkeypatch.setattr(metadata, "distribution", _absent)
    assert str(blas_library.blas()).startswith("OpenBLAS 0.")


def test_an_mkl_wheel_without_its_library_is_skipped(monkeypatch):
    monkeypatch.setattr(metadata, "distribution", lambda name: SimpleNamespace(files=[], version="1"))
    assert blas_library.blas().name == "OpenBLAS"


def test_mkl_is_used_with_one_thread_if_its_wheel_is_installed(monkeypatch, tmp_path):
    layers = []
    library = SimpleNamespace(cblas_sgemm="s", cblas_dgemm="d", MKL_Set_Threading_Layer=layers.append)
    opened = []
    wheel = SimpleNamespace(
        files=[tmp_path / "mkl.h", tmp_path / "libmkl_rt.so.3"], version="2026.2.0", locate_file=lambda path: path
    )
    monkeypatch.setattr(metadata, "distribution", lambda name: wheel)
    monkeypatch.setattr(blas_library.ctypes, "CDLL", lambda path: opened.append(path) or library)
    found = blas_library.blas()
    assert (str(found), found.sgemm, found.dgemm) == ("Intel MKL 2026.2.0", "s", "d")
    assert (opened, layers) == ([str(tmp_path / "libmkl_rt.so.3")], [blas_library.SEQUENTIAL])
