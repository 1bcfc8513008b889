"""Runs on tiered backends: by default, in their folders, as networks that are loaded, and as they are explained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sigma_backend_numba as _numba  # the second tier
import sigma_backend_numpy as _numpy  # the first one
from sigma_kernel import Environment
from sigma_run import load
from sigma_run.launcher import main

assert _numba
assert _numpy
NETWORK = "input(4) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()"
X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = X[:, :3].argmax(axis=1)
START = 9


@pytest.fixture
def trained(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, np.ndarray]:
    """Train so many iterations on a tiered backend; return the run folder and predictions."""
    backend = {"type": "tiered", "first": "numpy", "then": "numba", "start": START}
    with Environment("small", folder=tmp_path) as sigma:
        trainer: Any = sigma.create_trainer(
            data=(X, Y), network=NETWORK, batch_size=20, backend=backend, optimiser="adam"
        )
        trainer.fit(iterations=request.param)
        assert sigma.run_folder is not None
        return sigma.run_folder, trainer.predict(X)


@pytest.mark.parametrize("trained", [START - 3, START, START + 6], indirect=True)
def test_a_network_predicts_from_its_folder_what_it_predicted_when_training_ended(trained):
    folder, predicted = trained
    np.testing.assert_array_equal(load(folder).predict(X), predicted)


@pytest.mark.parametrize("trained", [START + 6], indirect=True)
def test_a_run_is_resumed_with_the_tiers_that_it_began_with(trained, monkeypatch):
    folder, _ = trained
    assert main(["replay", str(folder), "--check", "--quiet"]) == 0
    assert load(folder).summary["backend"] == "numba"


def test_the_default_of_a_network_is_explained_with_the_iteration_of_the_change(capsys, monkeypatch):
    monkeypatch.delenv("SIGMA_BACKEND", raising=False)
    assert main(["explain", "xor", "--json"]) == 0
    tiers = json.loads(capsys.readouterr().out)["trainers"]["trainer"]["tiers"]
    assert [*tiers.values()] == ["numpy", "numba"]
    assert main(["explain", "xor"]) == 0
    start = [*tiers][1]
    assert f"numpy from iteration 0 on, then numba from iteration {int(start):,} on" in capsys.readouterr().out


@pytest.mark.parametrize("optimiser", ["random_search", "cma_es"])
def test_one_seed_is_one_network_whatever_the_backend_and_whatever_the_optimiser_draws(optimiser, monkeypatch):
    monkeypatch.delenv("SIGMA_BACKEND", raising=False)
    values = []
    for backend in ({}, {"backend": "numpy"}):
        with Environment(seed=0) as sigma:
            trainer = sigma.create_trainer(data=(X, Y), network=NETWORK, optimiser=optimiser, **backend)
            trainer.prepare()
            values.append(sigma.find("trainer.network.layers.**"))
    for address, value in values[0].items():
        np.testing.assert_array_equal(value, values[1][address], err_msg=address)


def test_a_backend_that_is_named_computes_alone(capsys):
    assert main(["explain", "xor", "--set", "run.backend=numba", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trainers"]["trainer"]["tiers"] == {"0": "numba"}


def test_a_command_does_not_wait_for_a_compiler_that_nobody_needs(tmp_path):
    code = (
        "import atexit, threading, time\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from sigma_kernel.threads import COMPILING\n"
        "from sigma_run.__main__ import leave\n"
        "ThreadPoolExecutor(1, COMPILING).submit(time.sleep, 60)\n"
        "atexit.register(print, 'cleaned')\n"
        "print('said')\n"
        "leave(3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout.split()) == (3, ["said", "cleaned"])
