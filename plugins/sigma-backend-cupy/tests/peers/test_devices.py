"""What can be tested of a GPU without one: the errors, and the arguments of cuBLAS."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from sigma_backend_cupy import CupyBackend
from sigma_backend_cupy.devices import cuda, host
from sigma_backend_cupy.devices.gemm import Gemm, gemms
from sigma_backend_cupy.graphs.views import product
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import ops, symbol


@pytest.fixture(autouse=True)
def _forget() -> Any:
    cuda.device.cache_clear()
    yield
    cuda.device.cache_clear()


def machine(count: Any) -> Any:
    """Return a CuPy that finds so many GPUs, or raises an error."""

    def devices() -> int:
        if isinstance(count, Exception):
            raise count
        return int(count)

    return SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=devices)))


def test_without_cupy_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SigmaConfigError, match=r"CuPy is not installed .*pip install 'sigma-backend-cupy\[cuda12\]'"):
        CupyBackend()


def test_without_a_gpu_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", machine(RuntimeError("no driver")))
    with pytest.raises(SigmaConfigError, match=r"there is no GPU that CUDA can use here \(no driver\). Install NVIDIA"):
        CupyBackend()


@pytest.mark.parametrize("number", [2, -1])
def test_a_gpu_that_does_not_exist_is_refused_by_number(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setitem(sys.modules, "cupy", machine(2))
    with pytest.raises(SigmaConfigError, match=rf"there is no GPU {number}. Set `device` to a number from 0 to 1"):
        CupyBackend(number)


def test_without_a_compiler_for_the_host_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(host.shutil, "which", lambda name: None)
    with pytest.raises(SigmaConfigError, match=r"no C\+\+ compiler was found .* Install g\+\+ or clang\+\+"):
        host._library("a text that was never compiled")


# -- products ----------------------------------------------------------------------------------------------------------
def columns(flat: np.ndarray, offset: int, rows: int, count: int, distance: int) -> np.ndarray:
    """Return a matrix in columns, as cuBLAS reads it."""
    size = flat.itemsize
    return as_strided(flat[offset // size :], (rows, count), (size, distance * size))


def computed(one: Gemm, y: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Do what the documentation of cublasGemmStridedBatchedEx says."""
    (m, n, k), size = one.sides, x.itemsize
    for i in range(one.count):
        a, b, c = (place + i * stride * size for place, stride in zip(one.offsets, one.strides, strict=True))
        first = columns(y, a, *((k, m) if one.transposed[0] else (m, k)), one.distances[0])
        second = columns(x, b, *((n, k) if one.transposed[1] else (k, n)), one.distances[1])
        columns(out, c, m, n, one.distances[2])[...] = (first.T if one.transposed[0] else first) @ (
            second.T if one.transposed[1] else second
        )


SHAPES = [
    ((3, 5), (5, 4)), ((5, 3), (5, 4)), ((3, 5), (4, 5)), ((5, 3), (4, 5)), ((1, 5), (5, 1)), ((4, 1), (1, 6)),
    ((2, 3, 5), (2, 5, 4)), ((2, 3, 5), (5, 4)), ((3, 5), (2, 5, 4)), ((2, 1, 3, 5), (2, 4, 5, 6)), ((1, 1), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("first", SHAPES, ids=str)
def test_the_arguments_of_cublas_compute_the_product(first: Any) -> None:
    draw = np.random.default_rng(0)
    x, y = (symbol(shape) for shape in first)
    views = [x if x.shape[-1] == y.shape[-2] or x.shape[-1] in y.shape else ops.swap_axes(x), y]
    views[0] = x if x.shape[-1] in y.shape[-2:] else ops.swap_axes(x)
    views[1] = y if views[0].shape[-1] == y.shape[-2] else ops.swap_axes(y)
    found = product(ops.matmul(*views))
    assert found is not None
    arrays = [draw.normal(size=shape).astype(np.float32) for shape in first]
    out = np.zeros(found[1].shape, np.float32)
    for one in gemms(found[1]):
        computed(one, arrays[1].reshape(-1), arrays[0].reshape(-1), out.reshape(-1))
    turned = [a if node.op == "input" else np.swapaxes(a, -1, -2) for a, node in zip(arrays, views, strict=True)]
    np.testing.assert_allclose(out, turned[0] @ turned[1], rtol=1e-6, atol=1e-6)
