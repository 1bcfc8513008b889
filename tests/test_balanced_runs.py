"""Runs on rare classes, with weights and with balanced minibatches."""

from __future__ import annotations

import numpy as np
import pytest

import sigma_data  # noqa: F401  # the room with class weights
from sigma_run import load
from sigma_run.launcher.group import main

pytestmark = pytest.mark.rooms
TOML = """
format = 1
[data]
dataset = "iris"
class_weights = { virginica = 3.0 }
iterator = "balanced"
batch_size = 16
[network]
architecture = "input(4) + output(3) + softmax_cross_entropy()"
[trainer]
optimiser = "gradient_descent"
"""


def test_a_run_is_replayed_and_resumed_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(TOML)
    assert main(["run", "a.toml", "--set", "trainer.epochs=4", "--set", "run.name=whole", "--quiet"]) == 0
    assert main(["run", "a.toml", "--set", "trainer.epochs=2", "--set", "run.name=half", "--quiet"]) == 0
    whole, half = (next((tmp_path / "runs").glob(f"{name}-*")) for name in ("whole", "half"))
    assert main(["replay", str(whole)]) == 0
    assert main(["resume", str(half), "--set", "trainer.epochs=4", "--quiet"]) == 0
    one, other = load(whole), load(half)
    for name, values in one.parameters().items():
        assert np.array_equal(values, other.parameters()[name])
    assert one.evaluate("validation") == other.evaluate("validation")
