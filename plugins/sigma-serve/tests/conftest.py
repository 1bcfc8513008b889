"""Runs that are served, trained once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from sigma_kernel import catalogue
from sigma_run import Trained, load
from sigma_run.config import build, load as read
from sigma_serve.application import PredictionApplication
from sigma_serve.batching import Batcher
from sigma_serve.model import ServedNetwork

BASE = "http://127.0.0.1:8470"
END = """
[run]
seed = 1
backend = "numpy"
[trainer]
optimiser = "adam"
[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""
FLOWERS = """
format = 1
[data]
dataset = "csv"
path = "flowers.csv"
target = "name"
encode = ["kind"]
split = { training = 1.0 }
[network]
architecture = 'input(4) + dense(8, activation="tanh") + output(3) + softmax_cross_entropy()'
"""
PRICES = """
format = 1
[data]
dataset = "csv"
path = "prices.csv"
target = "price"
targets = "numbers"
split = { training = 1.0 }
[network]
architecture = 'input(2) + output(1) + squared_difference()'
"""
PICTURES = """
format = 1
[data]
dataset = "npy"
inputs = "pictures.npy"
targets = "classes.npy"
split = { training = 1.0 }
[network]
architecture = 'input(3, 4) + flatten() + dense(16, activation="relu") + output(2) + softmax_cross_entropy()'
"""
NAMES = ("iris", "lily", "rose")


def train(folder: Path, text: str) -> Path:
    """Train on the files of a folder, and return the run folder."""
    for name in ("flowers.csv", "prices.csv", "pictures.npy", "classes.npy"):
        text = text.replace(f'"{name}"', f'"{folder / name}"')
    with build(read(text + END), catalogue(), folder) as environment:
        environment.run()
    assert environment.run_folder is not None
    return environment.run_folder


@pytest.fixture(scope="session")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flowers")
    rows = "".join(f"{i}.5,{'ab'[i % 2]},{i % 3},{NAMES[i % 3]}\n" for i in range(30))
    (folder / "flowers.csv").write_text(f"length,kind,width,name\n{rows}")
    return train(folder, FLOWERS)


@pytest.fixture(scope="session")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prices")
    rows = "".join(f"{i},{i % 7},{3 * i + i % 7}.25\n" for i in range(30))
    (folder / "prices.csv").write_text(f"length,width,price\n{rows}")
    return train(folder, PRICES)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, draw = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    np.save(folder / "pictures.npy", draw.random((40, 3, 4)).astype(np.float32))
    np.save(folder / "classes.npy", np.arange(40) % 2)
    return train(folder, PICTURES)


@pytest.fixture
def model(flowers: Path) -> Trained:
    return load(flowers)


@contextmanager
def _serve(model: Trained, **settings: Any) -> Iterator[TestClient]:
    network = ServedNetwork(model, "flowers")
    batcher = Batcher(network.predict)
    batcher.begin()
    guarded = PredictionApplication(network, batcher, **settings).guard_application()
    with TestClient(guarded, base_url=BASE, raise_server_exceptions=False) as client:
        yield client
    batcher.end()


@pytest.fixture
def served() -> Callable[..., AbstractContextManager[TestClient]]:
    """Return a function whose context is a client of a server of a network."""
    return _serve


@pytest.fixture
def client(model: Trained) -> Iterator[TestClient]:
    with _serve(model, most_rows=100, most_bytes=100_000) as client:
        yield client
