"""Trained networks: of classes and of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigma_run import Trained, load
from sigma_run.launcher import main

CLASSES = """format = 1
[run]
name = "flowers"
backend = "numpy"
folder = "FOLDER"
[data]
dataset = "iris"
split = { training = 0.8, validation = 0.2 }
batch_size = 10
[data.preprocessors.scale]
type = "standardise"
[network]
architecture = "input(4) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()"
[trainer]
epochs = 30
optimiser = { type = "adam", learning_rate = 0.01 }
"""
NUMBERS = """format = 1
[run]
name = "prices"
backend = "numpy"
folder = "FOLDER"
[data]
dataset = "csv"
path = "prices.csv"
target = "price"
split = { training = 0.7, validation = 0.2, test = 0.1 }
batch_size = 20
[data.preprocessors.scale]
type = "standardise"
[data.preprocessors.scale_targets]
type = "standardise"
section = "targets"
[network]
architecture = "input(3) + output(1) + squared_difference()"
[trainer]
epochs = 60
optimiser = { type = "adam", learning_rate = 0.02 }
"""


def train(folder: Path, text: str) -> Path:
    """Train as a configuration describes, and return the run folder."""
    file = folder / "run.toml"
    file.write_text(text.replace("FOLDER", str(folder / "runs")))
    assert main(["run", str(file), "--quiet"]) == 0
    return next((folder / "runs").iterdir())


@pytest.fixture(scope="session")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("flowers"), CLASSES)


@pytest.fixture(scope="session")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, key = tmp_path_factory.mktemp("prices"), np.random.default_rng(0)
    size, age, other = key.normal(100, 20, 400), key.uniform(0, 50, 400), key.normal(0, 1, 400)
    rows = zip(size, age, other, 5 * size - 2 * age + key.normal(0, 5, 400), strict=True)
    lines = ["size,age,other,price", *(",".join(f"{value:.4f}" for value in row) for row in rows)]
    (folder / "prices.csv").write_text("\n".join(lines) + "\n")
    return train(folder, NUMBERS)


@pytest.fixture(scope="session")
def classifier(flowers: Path) -> Trained:
    return load(flowers)


@pytest.fixture(scope="session")
def estimator(prices: Path) -> Trained:
    return load(prices)
