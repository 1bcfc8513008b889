"""Programs and devices, and errors that lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sigma_backend_torch import TorchBackend
from sigma_backend_torch.backend import check
from sigma_kernel import functions as f
from sigma_kernel.contracts import Backend
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.graph import Graph, symbol


@pytest.mark.parametrize("name", ["cuda:7", "hovercraft", "mps"])
def test_a_device_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(SigmaConfigError, match=f"there is no device '{name}' here .* Use 'cpu', or install"):
        TorchBackend(name)


def test_float64_is_refused_for_a_device_that_lacks_it() -> None:
    x = symbol((2,), "float64")
    with pytest.raises(SigmaConfigError, match="'mps' has no float64. Use another precision, or device"):
        check(Graph((x,), (f.cast(x, dtype="float32"),)), torch.device("mps"))
    check(Graph((x,), (x,)), torch.device("cpu"))


def test_the_dtypes_are_those_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "float64" in TorchBackend("cpu").dtypes
    monkeypatch.setattr(TorchBackend, "_place", lambda self: torch.device("mps"))
    assert TorchBackend("mps").dtypes == Backend.dtypes - {"float64"}


def test_the_device_is_told() -> None:
    assert TorchBackend("cpu").runtime["device"] == "cpu"
    assert set(TorchBackend().runtime) == {"PyTorch", "device", "threads"}


def test_a_checkpoint_records_the_threads_that_products_depend_on():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert TorchBackend().runtime["threads"] == "3"
    finally:
        torch.set_num_threads(before)


def test_nothing_is_recorded_for_a_gradient_of_pytorchs_own() -> None:
    backend, x = TorchBackend(), symbol((3,))
    (result,) = backend.lower(Graph((x,), (f.exp(x),)), {})(backend.to_device(np.ones(3, "float32")))
    assert not result.requires_grad


def test_constant_arrays_are_copied_without_a_warning() -> None:
    torch.set_warn_always(True)  # else once in a process
    try:
        backend, x, numbers = TorchBackend(), symbol((3,)), np.array([1.0, 2.0, 3.0], "float32")
        (result,) = backend.lower(Graph((x,), (x * numbers,)), {})(backend.to_device(numbers))
    finally:
        torch.set_warn_always(False)
    np.testing.assert_array_equal(backend.to_host(result), numbers**2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile's own imports
def test_a_compiled_step_has_the_results_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_VEC_ISA_OK", "0")  # without vector instructions, it compiles in half the time
    x = symbol((4, 4), "float64")
    graph = Graph((x,), (f.tanh(x @ x) + x, f.sum(f.exp(x))))
    host = np.random.default_rng(0).normal(size=(4, 4))
    plain, compiled = (TorchBackend(compiled=one).lower(graph, {}) for one in (False, True))
    place = TorchBackend().to_device(host)
    for found, wanted in zip(compiled(place), plain(place), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
