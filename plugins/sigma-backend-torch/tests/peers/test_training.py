"""Runs on PyTorch: the results of the reference, state that moves between backends, and errors that lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_backend_torch import TorchBackend
from sigma_kernel import Environment, functions as f, load
from sigma_kernel.contracts import Step
from sigma_kernel.errors import SigmaConfigError, SigmaGraphError
from sigma_kernel.graph import Graph, gradient, symbol
from sigma_optimisers import Adam

DRAW = np.random.default_rng(0)
IMAGES = {"inputs": DRAW.normal(size=(60, 2, 8, 7)), "targets": DRAW.integers(0, 3, 60)}
ROWS = {"inputs": DRAW.normal(size=(60, 5, 3)), "targets": DRAW.integers(0, 3, 60)}
WORDS = {"inputs": DRAW.integers(0, 9, (60, 6)), "targets": DRAW.integers(0, 3, 60)}
NETWORKS = {
    "dense": (ROWS, "input(5, 3) + flatten() + dense(7, activation='tanh') + dropout(0.3)"),
    "convolution": (
        IMAGES,
        "input(2, 8, 7) + conv2d(4, 3, activation='relu') + max_pool(2) + batch_norm() + flatten()",
    ),
    "recurrent": (ROWS, "input(5, 3) + lstm(4, sequence=true) + gru(3)"),
    "attention": (WORDS, "input(6, dtype='int32') + embedding(9, 4) + attention(2) + layer_norm() + flatten()"),
}


def environment(folder: Path | None, backend: Any, name: str = "dense", **settings: Any) -> Environment:
    data, network = NETWORKS[name]
    made = Environment("on-torch", folder=folder, seed=3, precision=settings.pop("precision", "float64"))
    made.create_trainer(
        data=data, network=f"{network} + output(3) + softmax_cross_entropy()", optimiser=Adam(0.01), batch_size=10,
        backend=backend, **{"epochs": 3, **settings},
    )  # fmt: skip
    return made


def trained(folder: Path, backend: Any, name: str = "dense", **settings: Any) -> dict[str, np.ndarray]:
    """Return the parameters and the layer state at the end of a run."""
    with environment(folder, backend, name, **settings) as sigma:
        sigma.run()
        assert sigma.run_folder is not None
        return load(sigma.run_folder).parameters()


def near(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert found.keys() == wanted.keys()
    for address, value in wanted.items():
        np.testing.assert_allclose(found[address], value, rtol=1e-9, atol=1e-8, err_msg=address)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_run_has_the_results_of_the_reference(name: str, tmp_path: Path) -> None:
    near(trained(tmp_path / "torch", "torch", name), trained(tmp_path / "numpy", "numpy", name))


@pytest.mark.parametrize(("first", "then"), [("numpy", "torch"), ("torch", "numpy")])
def test_a_run_goes_on_on_another_backend(first: str, then: str, tmp_path: Path) -> None:
    with environment(tmp_path, first) as sigma:
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    command = [
        sys.executable,
        "-m",
        "sigma_kernel",
        "resume",
        str(folder),
        "--backend",
        then,
        "--epochs",
        "6",
        "--quiet",
    ]
    assert subprocess.run(command, check=False).returncode == 0
    near(load(folder).parameters(), trained(tmp_path / "straight", "numpy", epochs=6))


def test_two_trainers_of_one_environment_train_on_two_backends_at_once(tmp_path: Path) -> None:
    data, network = NETWORKS["dense"]
    with Environment("both", folder=tmp_path, seed=3, precision="float64") as sigma:
        for name in ("torch", "numpy"):
            sigma.create_trainer(
                name, data=data, network=f"{network} + output(3) + softmax_cross_entropy()", optimiser=Adam(0.01),
                batch_size=10, epochs=3, backend=name,
            )  # fmt: skip
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    for name in ("torch", "numpy"):
        one = load(folder, trainer=name)
        assert one.checkpoint.values["clock"]["epoch"] == 3
        assert one.parameters()


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
