"""Runs on the backends of other frameworks: the results of the reference, and state that moves between backends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, load

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
BACKENDS = ("jax", "torch")


def environment(folder: Path, *backends: str, network: str = "dense", epochs: int = 3) -> Environment:
    """Return an environment with a trainer for each backend, of equal names wherever they train."""
    data, text = NETWORKS[network]
    made = Environment("elsewhere", folder=folder, seed=3, precision="float64")
    for number, backend in enumerate(backends):
        made.create_trainer(
            f"trainer{number}", data=data, network=f"{text} + output(3) + softmax_cross_entropy()", batch_size=10,
            optimiser={"type": "adam", "learning_rate": 0.01}, epochs=epochs, backend=backend,
        )  # fmt: skip
    return made


def trained(folder: Path, *backends: str, **settings: Any) -> Path:
    """Train, and return the run folder."""
    with environment(folder, *backends, **settings) as sigma:
        sigma.run()
        assert sigma.run_folder is not None
        return sigma.run_folder


def near(found: Path, wanted: Path, trainer: str = "trainer0") -> None:
    """Compare parameters and layer state; those without a gradient have only rounding errors."""
    results, reference = (load(run, trainer=trainer).parameters() for run in (found, wanted))
    assert results.keys() == reference.keys()
    for address, value in reference.items():
        np.testing.assert_allclose(results[address], value, rtol=1e-9, atol=1e-8, err_msg=address)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_run_has_the_results_of_the_reference(backend: str, network: str, tmp_path: Path) -> None:
    folders = [trained(tmp_path / name, name, network=network) for name in (backend, "numpy")]
    near(*folders)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("back", [False, True])
def test_a_run_goes_on_on_another_backend(backend: str, back: bool, tmp_path: Path) -> None:
    first, then = ("numpy", backend) if back else (backend, "numpy")
    folder = trained(tmp_path, first)
    resume = [
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
    assert subprocess.run(resume, check=False).returncode == 0
    near(folder, trained(tmp_path / "straight", "numpy", epochs=6))


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_trainers_of_one_environment_train_on_two_backends_at_once(backend: str, tmp_path: Path) -> None:
    both, reference = (trained(tmp_path / names[0], *names) for names in ((backend, "numpy"), ("numpy", "numpy")))
    for trainer in ("trainer0", "trainer1"):
        near(both, reference, trainer)
