"""Runs on rare classes, with weights and with balanced minibatches."""

from __future__ import annotations

import json

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


def test_the_loss_of_another_file_is_not_weighted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(0)
    for name in ("old", "new"):
        states = np.where(draws.random(80) < 0.2, "rare", "usual")
        rows = [f"{x},{y},{state}\n" for (x, y), state in zip(draws.normal(size=(80, 2)), states, strict=True)]
        (tmp_path / f"{name}.csv").write_text("x,y,state\n" + "".join(rows))
    table = 'dataset = { type = "table", path = "old.csv", target = "state", class_weights = "balanced" }'
    text = TOML.replace('dataset = "iris"\nclass_weights = { virginica = 3.0 }', table)
    text = text.replace("input(4) + output(3)", "input(2) + output(2)").replace("[trainer]", "[trainer]\nepochs = 2")
    (tmp_path / "a.toml").write_text(text)
    assert main(["run", "a.toml", "--quiet"]) == 0
    run = next((tmp_path / "runs").iterdir())
    capsys.readouterr()
    assert main(["evaluate", str(run), "new.csv", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    shares = load(run).predict("new.csv").to_pandas()
    states = [line.rpartition(",")[2] for line in (tmp_path / "new.csv").read_text().split()[1:]]
    losses = [-np.log(shares[f"probability_{state}"][row]) for row, state in enumerate(states)]
    assert values["metrics"]["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
