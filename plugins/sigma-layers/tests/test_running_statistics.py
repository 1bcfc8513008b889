"""Runs of networks with batch norm: evaluation, shards, resume and replay to the bit."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_layers import BatchNorm, Conv2d, Dense, Flatten, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_run import load
from sigma_run.launcher import main

RUN = """
format = 1
[run]
name = "normed"
backend = "{backend}"
[data]
dataset = "iris"
batch_size = 13
[network]
architecture = "input(4) + dense(8) + batch_norm(name='bn') + activation('relu') + output(3) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
operator = {{ type = "local", shards = {shards} }}
[hooks.end]
type = "stop"
when = "{end}"
every = "1 iteration"
"""
DRAW = np.random.default_rng(0)
X = DRAW.normal(2.0, 3.0, size=(7, 4))
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "numba"])


def state(folder: str) -> bytes:
    """Return the newest state of a run: parameters, layer state, slots of the optimiser."""
    files = sorted(Path(folder).glob("checkpoints/trainer/*/state.safetensors"), key=lambda p: p.stat().st_mtime_ns)
    return files[-1].read_bytes()


@BACKENDS
@pytest.mark.parametrize("shards", [1, 2])
def test_a_run_resumes_in_the_middle_of_an_epoch_and_replays_to_the_same_bits(
    backend: str, shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def done(*arguments: str) -> str:
        assert main([*arguments, "--json", "--quiet"]) == 0
        return str(json.loads(capsys.readouterr().out)["folder"])

    for name, end in {"whole": "iteration reaches 19", "first": "iteration reaches 7"}.items():
        Path(f"{name}.toml").write_text(RUN.format(backend=backend, shards=shards, end=end))
    whole, run = done("run", "whole.toml"), done("run", "first.toml")
    assert state(run) != state(whole)
    assert done("resume", run, "--set", "hooks.end.when=iteration reaches 19") == run
    assert state(run) == state(whole)
    assert b"bn.variance" in state(run)
    assert main(["replay", whole, "--check", "--quiet"]) == 0


def trainer(network: Any, data: Any, **settings: Any) -> Any:
    sigma = Environment("normed", seed=0, precision="float64")
    how = {"type": "gradient_descent", "learning_rate": 0.1}
    return sigma.create_trainer(network=network, data=data, optimiser=how, **settings)


def running(made: Any, name: str) -> np.ndarray:
    return np.asarray(made.session.snapshot().arrays[f"network.layers.1-batch_norm.{name}"])


@BACKENDS
def test_each_shard_has_statistics_of_its_own_and_the_running_ones_are_their_mean(backend: str) -> None:
    """There are 35 ways to divide seven rows into four and three; one of them explains all that is measured."""
    network = Input(4) + BatchNorm(momentum=0.5, epsilon=2.0) + SquaredDifference()
    data = {"inputs": X, "targets": np.zeros((7, 4))}
    made = trainer(network, data, batch_size=7, backend=backend, operator=LocalOperator(shards=2))
    made.fit(epochs=1)
    np.testing.assert_allclose(running(made, "mean"), 0.5 * X.mean(0), rtol=1e-12)
    found = []
    for four in combinations(range(7), 4):
        shards = X[list(four)], np.delete(X, four, axis=0)
        running_variance = 0.5 + 0.5 * sum(len(x) / 7 * x.var(0, ddof=1) for x in shards)
        if np.allclose(running(made, "variance"), running_variance, rtol=1e-12):
            found += [sum(len(x) / 7 * (x.var(0) / (x.var(0) + 2.0)).mean() for x in shards)]
    assert made.history["training.loss"][-1] == pytest.approx(found[0], rel=1e-12)
    assert len(found) == 1


@BACKENDS
def test_predictions_use_the_running_statistics_and_do_not_depend_on_the_batch(backend: str) -> None:
    images = DRAW.normal(size=(20, 2, 5, 5))
    network = Input(2, 5, 5) + BatchNorm() + Conv2d(2, 3) + BatchNorm() + Flatten() + Output(3) + SoftmaxCrossEntropy()
    made = trainer(network, (images, DRAW.integers(0, 3, 20)), batch_size=8, backend=backend)
    made.fit(epochs=2)
    before = {name: x.copy() for name, x in made.session.snapshot().arrays.items()}
    whole = made.predict(images)
    np.testing.assert_allclose(made.predict(images[3:4]), whole[3:4], rtol=1e-12)
    made.evaluate("training")
    after = made.session.snapshot().arrays
    assert all(np.array_equal(x, after[name]) for name, x in before.items())
    assert (running(made, "variance") != 1).all()


def test_a_saved_network_keeps_its_running_statistics(tmp_path: Path) -> None:
    made = trainer(Input(4) + BatchNorm() + Output(3) + SoftmaxCrossEntropy(), (X, [0, 1, 2, 0, 1, 2, 0]), batch_size=4)
    made.fit(epochs=3)
    made.save(tmp_path / "normed")
    np.testing.assert_array_equal(load(tmp_path / "normed").predict(X), made.predict(X))
    assert (running(made, "mean") != 0).all()


def test_layers_share_weights_and_scales() -> None:
    body = Conv2d(2, 3, padding=1, name="first") + BatchNorm(name="bn")
    again = Conv2d(2, 3, padding=1, share={"weights": "first.weights"}) + BatchNorm(share={"scale": "bn.scale"})
    images = DRAW.normal(size=(8, 2, 5, 5))
    network = Input(2, 5, 5) + body + again + Flatten() + Output(2) + SoftmaxCrossEntropy()
    made = trainer(network, (images, DRAW.integers(0, 2, 8)), batch_size=4)
    made.fit(epochs=1)
    names = {name for name in made.session.snapshot().arrays if name.startswith("network.layers.")}
    assert {"network.layers.3-conv2d.biases", "network.layers.4-batch_norm.mean"} <= names
    assert not names & {"network.layers.3-conv2d.weights", "network.layers.4-batch_norm.scale"}


def test_an_epoch_may_end_in_a_batch_of_one_row() -> None:
    made = trainer(
        Input(4) + BatchNorm() + Dense(2) + Output(3) + SoftmaxCrossEntropy(), (X, [0, 1, 2, 0, 1, 2, 0]), batch_size=3
    )
    made.fit(epochs=4)
    assert all(np.isfinite(x).all() for name, x in made.session.snapshot().arrays.items() if name.startswith("network"))


# -- frozen ------------------------------------------------------------------------------------------------------------
def normalising(backend: str, *frozen: str, affine: bool = True, shards: int = 1) -> Any:
    """Return a trainer that normalises, with rules that freeze what matches patterns."""
    environment = Environment("frozen", seed=0)
    rules = {f"rule{number}": {"match": match, "frozen": True} for number, match in enumerate(frozen)}
    trainer = environment.create_trainer(
        data=(X, np.zeros((len(X), 1))), batch_size=len(X), backend=backend, operator=LocalOperator(shards=shards),
        optimiser={"type": "adam", "learning_rate": 0.01, "settings": rules},
    )  # fmt: skip
    trainer.network = Input(4) + BatchNorm(name="bn", affine=affine) + Output(1, name="out") + SquaredDifference()
    return trainer


def statistics(trainer: Any) -> list[np.ndarray]:
    return [trainer.session.host(f"network.layers.bn.{name}").copy() for name in ("mean", "variance")]


@BACKENDS
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(("match", "affine"), [("bn.*", True), ("bn.*", False), ("**", True)])
def test_a_frozen_batch_norm_computes_with_its_statistics_and_keeps_them(
    backend: str, shards: int, match: str, affine: bool
) -> None:
    trainer = normalising(backend, match, affine=affine, shards=shards)
    trainer.prepare()
    weights, biases = (trainer.session.host(f"network.layers.out.{name}").copy() for name in ("weights", "biases"))
    trainer.fit(epochs=1)
    loss = np.mean((X / np.sqrt(1 + 1e-5) @ weights + biases) ** 2)  # of a mean of 0 and a variance of 1
    np.testing.assert_allclose(trainer.history["training.loss"][0], loss, rtol=1e-5)
    trainer.fit(epochs=2)
    np.testing.assert_array_equal(statistics(trainer), [np.zeros(4), np.ones(4)])


@BACKENDS
def test_frozen_statistics_leave_scale_and_shift_to_training(backend: str) -> None:
    trainer = normalising(backend, "bn.mean", "bn.variance")
    trainer.fit(epochs=2)
    np.testing.assert_array_equal(statistics(trainer), [np.zeros(4), np.ones(4)])
    assert (trainer.session.host("network.layers.bn.scale") != 1).all()


def test_statistics_move_while_a_part_of_a_batch_norm_is_trained_and_when_it_is_released() -> None:
    with Environment("frozen", seed=0) as sigma:
        trainer = sigma.create_trainer(data=(X, np.zeros((len(X), 1))), optimiser="adam", backend="numpy")
        trainer.network = Input(4) + BatchNorm(name="bn") + Output(1) + SquaredDifference()
        trainer.fit(epochs=1)
        sigma.set("trainer.optimiser.bn.scale.frozen", True)
        before = statistics(trainer)
        trainer.fit(epochs=1)
        assert (np.array(statistics(trainer)) != before).all()
        sigma.set("trainer.optimiser.bn.shift.frozen", True)
        before = statistics(trainer)
        trainer.fit(epochs=1)
        np.testing.assert_array_equal(statistics(trainer), before)
        sigma.set("trainer.optimiser.bn.*.frozen", False)
        trainer.fit(epochs=1)
        assert (np.array(statistics(trainer)) != before).all()


def test_a_rule_for_statistics_that_no_layer_has_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match=r"'bn.median' matches no parameter. There are bn.scale, .*bn.mean"):
        normalising("numpy", "bn.median").fit(epochs=1)
