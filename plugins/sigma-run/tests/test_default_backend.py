"""The backend of a run that names none: the preferred one here, which the run folder names."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_run import load
from sigma_run.launcher import main

FILE = """
format = 1
[data]
dataset = "xor"
[network]
architecture = "input(2) + output(2) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
epochs = 1
"""


TIERED, NUMPY = "sigma-training:tiered", "sigma-backend-numpy:numpy"


@pytest.fixture(params=[("", TIERED), ("numba", "sigma-backend-numba:numba"), ("numpy", NUMPY)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Set SIGMA_BACKEND in an empty directory; return the full name of the backend that is then the default."""
    chosen, found = request.param
    monkeypatch.setenv("SIGMA_BACKEND", chosen)
    monkeypatch.chdir(tmp_path)
    return str(found)


def stored(run: Path) -> str:
    """Return the backend that a run folder names, and change the default."""
    table = tomllib.loads((run / "config.toml").read_text())
    named = table["run"].get("backend") or table["trainer"]["backend"]
    return str(named if isinstance(named, str) else named["type"])


def name_of(backend: str) -> str:
    """Return the name of the backend that computes a short run."""
    return (NUMPY if backend == TIERED else backend).partition(":")[2]


def test_a_file_without_a_backend_names_it_in_its_run_folder(backend, monkeypatch):
    Path("small.toml").write_text(FILE)
    assert main(["run", "small.toml", "--quiet"]) == 0
    [run] = Path("runs").iterdir()
    assert stored(run) == backend
    monkeypatch.setenv("SIGMA_BACKEND", "no-such-backend")
    assert main(["replay", str(run), "--check", "--quiet"]) == 0
    assert load(run).summary["backend"] == name_of(backend)


def test_a_run_from_python_without_a_backend_names_it_in_its_run_folder(backend):
    with Environment("small", folder="runs") as sigma:
        trainer = sigma.create_trainer(
            network="input(2) + output(2) + softmax_cross_entropy()",
            data=(np.eye(2), np.array([0, 1])), optimiser="adam",
        )  # fmt: skip
        trainer.fit(epochs=1)
        assert sigma.summary().backend == name_of(backend)
        assert stored(sigma.run_folder) == backend


def test_an_unknown_default_is_refused_with_a_suggestion(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGMA_BACKEND", "nump")
    Path("small.toml").write_text(FILE)
    assert main(["check", "small.toml"]) == 2
    assert "backend 'nump': no plugin offers it. Did you mean 'numpy'?" in capsys.readouterr().err
