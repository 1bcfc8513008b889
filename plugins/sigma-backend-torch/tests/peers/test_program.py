"""Programs and devices, and errors that lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sigma_backend_torch import TorchBackend
from sigma_backend_torch.backend import check
from sigma_kernel import functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.errors import SigmaConfigError, SigmaGraphError
from sigma_kernel.graph import Graph, gradient, symbol


def test_an_index_out_of_range_is_refused_and_the_state_stays() -> None:
    table, places = symbol((4,)), symbol((2,), "int32")
    loss = f.sum(f.take(table, places, axis=0))
    (slope,) = gradient(loss, [table])
    graph = Graph((table, places), (table - slope, loss))
    backend = TorchBackend()
    program = backend.compile(Step(graph, ("table",), ("places",), (), ("table",), ("loss",)))
    state = {"table": backend.to_device(np.ones(4, "float32"))}
    for wrong, said in ((4, "from 0 to 3 .got 0 to 4"), (-1, "from 0 to 3 .got -1 to 0")):
        block = {"places": backend.to_device(np.array([0, wrong, 0], "int32"))}
        with pytest.raises(SigmaGraphError, match=said):
            program.run(state, block, np.array([[0, 0], [0, 1]]), {}, 2)
    block = {"places": backend.to_device(np.array([0, 3], "int32"))}
    burst = program.run(state, block, np.array([[0, 1]]), {}, 1)
    np.testing.assert_array_equal(backend.to_host(burst.state["table"]), [0, 1, 1, 0])


@pytest.mark.parametrize("name", ["cuda:7", "hovercraft", "mps"])
def test_a_device_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(SigmaConfigError, match=f"there is no device '{name}' here .* Use 'cpu', or install"):
        TorchBackend(name)


def test_float64_is_refused_for_a_device_that_lacks_it() -> None:
    x = symbol((2,), "float64")
    with pytest.raises(SigmaConfigError, match="'mps' has no float64. Use another precision, or device"):
        check(Graph((x,), (f.cast(x, dtype="float32"),)), torch.device("mps"))
    check(Graph((x,), (x,)), torch.device("cpu"))


def test_the_device_is_told() -> None:
    assert TorchBackend("cpu").about["device"] == "cpu"
    assert set(TorchBackend().about) == {"PyTorch", "device"}


def test_nothing_is_recorded_for_a_gradient_of_pytorchs_own() -> None:
    backend, x = TorchBackend(), symbol((3,))
    (result,) = backend.lower(Graph((x,), (f.exp(x),)), {})(backend.to_device(np.ones(3, "float32")))
    assert not result.requires_grad


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile's own imports
def test_a_compiled_step_has_the_results_of_the_others() -> None:
    x = symbol((4, 4), "float64")
    graph = Graph((x,), (f.tanh(x @ x) + x, f.sum(f.exp(x))))
    host = np.random.default_rng(0).normal(size=(4, 4))
    plain, compiled = (TorchBackend(compiled=one).lower(graph, {}) for one in (False, True))
    place = TorchBackend().to_device(host)
    for found, wanted in zip(compiled(place), plain(place), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
