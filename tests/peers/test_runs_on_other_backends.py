"""Runs on the backends of other frameworks: the results of the reference, and state that moves between backends."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, catalogue
from sigma_kernel.graph import Graph, ops, symbol
from sigma_run import load
from sigma_run.launcher import main

DRAW = np.random.default_rng(0)
IMAGES = {"inputs": DRAW.normal(size=(60, 2, 8, 7)), "targets": DRAW.integers(0, 3, 60)}
ROWS = {"inputs": DRAW.normal(size=(60, 5, 3)), "targets": DRAW.integers(0, 3, 60)}
WORDS = {"inputs": DRAW.integers(0, 9, (60, 6)), "targets": DRAW.integers(0, 3, 60)}
NETWORKS = {
    "dense": (ROWS, "input(5, 3) + flatten() + dense(7, activation='tanh') + dropout(0.3)"),
    "convolution": (IMAGES, "input(2, 8, 7) + conv2d(4, 3) + max_pool(2) + batch_norm() + flatten()"),
    "recurrent": (ROWS, "input(5, 3) + lstm(4, sequence=true) + gru(3)"),
    "attention": (WORDS, "input(6, dtype='int32') + embedding(9, 4) + attention(2) + layer_norm() + flatten()"),
}
STATEFUL = (  # layer state, dropout, and an optimiser that adds up gradients of three batches
    "input(2, 8, 7) + conv2d(4, 3) + batch_norm() + flatten() + dropout(0.3) + dense(5)"
)
OPTIMISER = {"type": "adam", "learning_rate": 0.01}
ADDING = {**OPTIMISER, "transforms": {"add": {"type": "accumulate", "batches": 4}}}
BACKENDS = ("jax", "torch")
EVERY = ("numpy", "numba", *BACKENDS)


def environment(
    folder: Path, *backends: str, network: str = "dense", epochs: int = 3, precision: str = "float64"
) -> Environment:
    """Return an environment with a trainer for each backend, of equal names wherever they train."""
    data, text = (IMAGES, STATEFUL) if network == "stateful" else NETWORKS[network]
    made = Environment("elsewhere", folder=folder, seed=3, precision=precision)
    for number, backend in enumerate(backends):
        made.create_trainer(
            f"trainer{number}", data=data, network=f"{text} + output(3) + softmax_cross_entropy()", batch_size=10,
            optimiser=ADDING if network == "stateful" else OPTIMISER, epochs=epochs, backend=backend,
        )  # fmt: skip
    return made


def trained(folder: Path, *backends: str, **settings: Any) -> Path:
    """Train, and return the run folder."""
    with environment(folder, *backends, **settings) as sigma:
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


def near(found: Path, wanted: Path, trainer: str = "trainer0", within: float = 1e-8) -> None:
    """Compare parameters and layer state; those without a gradient have only rounding errors."""
    results, reference = (load(run, trainer=trainer).parameters() for run in (found, wanted))
    assert results.keys() == reference.keys()
    for address, value in reference.items():
        np.testing.assert_allclose(results[address], value, rtol=within / 10, atol=within, err_msg=address)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_run_has_the_results_of_the_reference(backend: str, network: str, tmp_path: Path) -> None:
    folders = [trained(tmp_path / name, name, network=network) for name in (backend, "numpy")]
    near(*folders)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("precision", ["mixed", "float32"])
def test_a_run_in_less_precision_ends_near_the_reference(backend: str, precision: str, tmp_path: Path) -> None:
    folders = [trained(tmp_path / name, name, precision=precision) for name in (backend, "numpy")]
    near(*folders, within=2e-2 if precision == "mixed" else 1e-4)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return runs of one epoch with all kinds of state; the optimiser stops between two updates."""
    return {name: trained(tmp_path_factory.mktemp(name), name, network="stateful", epochs=1) for name in EVERY}


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an uninterrupted run on the reference."""
    return trained(tmp_path_factory.mktemp("straight"), "numpy", network="stateful", epochs=2)


@pytest.mark.parametrize(("first", "then"), [*permutations(EVERY, 2)])
def test_a_run_goes_on_on_another_backend(
    first: str, then: str, begun: dict[str, Path], straight: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(begun[first], tmp_path / "run")
    assert main(["resume", str(folder), "--backend", then, "--epochs", "2", "--quiet"]) == 0
    near(folder, straight)


@pytest.mark.parametrize("backend", EVERY)
def test_initial_values_and_dropout_masks_have_the_same_bits(backend: str, tmp_path: Path) -> None:
    for found, wanted in zip(drawn(backend, tmp_path), drawn("numpy", tmp_path), strict=True):
        np.testing.assert_array_equal(found, wanted)


def drawn(name: str, folder: Path) -> list[np.ndarray]:
    """Return initial values, and masks of dropout whose rows are multiples of a block of four words, and are not."""
    with environment(folder / name, name, network="stateful") as made:
        made.trainers["trainer0"].prepare()
        values = made.trainers["trainer0"].session.snapshot().arrays
    return [*(values[address] for address in sorted(values)), masked(name, (30, 7)), masked(name, (9, 8))]


def masked(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return which values dropout keeps, with words of the key and the counter that have all 32 bits."""
    backend: Any = catalogue().load("backend", name)
    words = [np.array([7, 2**32 - 3], "uint32"), *(np.array(i, "uint32") for i in (2**32 - 9, 2**31 + 2, 5))]
    inputs = (x, *key) = [symbol(shape), *(symbol(np.shape(word), "uint32") for word in words)]
    step = backend().lower(Graph(tuple(inputs), (ops.dropout(x, 0.3, *key, stream=4),)), {})
    (kept,) = step(*map(backend().to_device, (np.ones(shape, "float32"), *words)))
    return np.asarray(backend().to_host(kept) != 0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_trainers_of_one_environment_train_on_two_backends_at_once(backend: str, tmp_path: Path) -> None:
    both, reference = (trained(tmp_path / names[0], *names) for names in ((backend, "numpy"), ("numpy", "numpy")))
    for trainer in ("trainer0", "trainer1"):
        near(both, reference, trainer)
