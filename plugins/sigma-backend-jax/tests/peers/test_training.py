"""Runs on JAX: the results of the reference, state that moves between backends, and errors that lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_backend_jax import JaxBackend
from sigma_backend_jax.program import ROOM
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
    made = Environment("on-jax", folder=folder, seed=3, precision=settings.pop("precision", "float64"))
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
    near(trained(tmp_path / "jax", "jax", name), trained(tmp_path / "numpy", "numpy", name))


@pytest.mark.parametrize(("first", "then"), [("numpy", "jax"), ("jax", "numpy")])
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
        for name in ("jax", "numpy"):
            sigma.create_trainer(
                name, data=data, network=f"{network} + output(3) + softmax_cross_entropy()", optimiser=Adam(0.01),
                batch_size=10, epochs=3, backend=name,
            )  # fmt: skip
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    for name in ("jax", "numpy"):
        one = load(folder, trainer=name)
        assert one.checkpoint.values["clock"]["epoch"] == 3
        assert one.parameters()


def test_bursts_of_many_lengths_share_one_compiled_loop() -> None:
    backend, total, row, rate = JaxBackend(), symbol(()), symbol((2,)), symbol(())
    graph = Graph((total, row, rate), (total + rate * f.sum(row), total))
    program = backend.compile(Step(graph, ("total",), ("row",), ("rate",), ("total",), ("loss",)))
    block = {"row": backend.to_device(np.arange(4, dtype="float32"))}
    for n in (1, 2, 5, ROOM):
        state = {"total": backend.to_device(np.array(0, "float32"))}
        burst = program.run(state, block, np.tile([1, 2], (n, 1)), {"rate": np.arange(n, dtype="float32")}, n)
        np.testing.assert_array_equal(burst.ring["loss"], 3 * np.cumsum([0, *range(n - 1)]))
        assert burst.done == n
    assert program._burst._cache_size() == 1


def test_the_working_memory_of_a_step_is_known_before_it_runs() -> None:
    x = symbol((64, 64), "float64")
    product = f.tanh(x @ x)
    step = Step(Graph((x,), (product, f.sum(product @ product))), ("x",), (), (), ("x",), ("loss",))
    assert 64 * 64 * 8 <= JaxBackend().compile(step).peak_bytes <= 4 * 64 * 64 * 8


def test_an_index_out_of_range_is_refused_and_the_state_stays() -> None:
    table, places = symbol((4,)), symbol((2,), "int32")
    loss = f.sum(f.take(table, places, axis=0))
    (slope,) = gradient(loss, [table])
    graph = Graph((table, places), (table - slope, loss))
    backend = JaxBackend()
    program = backend.compile(Step(graph, ("table",), ("places",), (), ("table",), ("loss",)))
    state = {"table": backend.to_device(np.ones(4, "float32"))}
    for wrong, said in ((4, "from 0 to 3 .got 0 to 4"), (-1, "from 0 to 3 .got -1 to 0")):
        block = {"places": backend.to_device(np.array([0, wrong, 0], "int32"))}
        with pytest.raises(SigmaGraphError, match=said):
            program.run(state, block, np.array([[0, 0], [0, 1]]), {}, 2)
    block = {"places": backend.to_device(np.array([0, 3], "int32"))}
    burst = program.run(state, block, np.array([[0, 1]]), {}, 1)
    np.testing.assert_array_equal(backend.to_host(burst.state["table"]), [0, 1, 1, 0])


def test_a_device_that_does_not_exist_is_refused_with_those_that_do() -> None:
    for name in ("cpu:7", "hovercraft", "cpu:x"):
        with pytest.raises(SigmaConfigError, match=f"there is no device '{name}'. Use one of: cpu:0"):
            JaxBackend(name)


def test_a_device_is_chosen_by_a_setting_and_told() -> None:
    assert JaxBackend("cpu:0").about["device"] == "cpu"
    assert set(JaxBackend().about) == {"JAX", "device"}
