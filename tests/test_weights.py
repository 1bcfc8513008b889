"""Evaluation with other weights than the parameters: averages that a modifier keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import Evaluate
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_layers import Dense, Input, SquaredDifference
from sigma_optimisers import Average, GradientDescent
from sigma_run import load

pytestmark = pytest.mark.rooms
X = np.random.default_rng(0).normal(size=(12, 2))
Y = X @ np.array([[2.0], [-3.0]])
LINE = "network.layers.1-dense.weights"


def average(values: list[np.ndarray], decay: float) -> np.ndarray:
    """Return the average after the last of some values; it begins with the first."""
    found = values[0]
    for value in values[1:]:
        found = decay * found + (1 - decay) * value
    return found


def trained(backend: str = "numpy", epochs: int = 3, **more: Any) -> tuple[Any, list[np.ndarray]]:
    """Return a trainer, and the weights after each of its updates; there are two in an epoch."""
    environment = Environment("averaged", precision="float64")
    trainer = environment.create_trainer(
        data={"training": (X, Y), "validation": (X, Y)}, network=Input(2) + Dense(1, bias=False) + SquaredDifference(),
        optimiser=GradientDescent(0.1, modifiers={"slow": Average(0.7)}), batch_size=6, backend=backend, **more,
    )  # fmt: skip
    seen = []
    for _ in range(2 * epochs):
        trainer.fit(iterations=1)
        seen.append(trainer.session.host(LINE))
    return trainer, seen


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_trainer_evaluates_and_predicts_with_the_average(backend: str) -> None:
    trainer, seen = trained(backend)
    slow = average(seen, 0.7)
    np.testing.assert_allclose(trainer.predict(X, weights="slow"), X @ slow, rtol=1e-12)
    np.testing.assert_allclose(trainer.predict(X), X @ seen[-1], rtol=1e-12)
    measured = trainer.evaluate("validation", weights="slow")["loss"]
    assert measured == pytest.approx(np.mean((X @ slow - Y) ** 2), rel=1e-9)
    assert measured != pytest.approx(trainer.evaluate("validation")["loss"], rel=1e-3)
    assert trainer.session.host(LINE).tolist() == seen[-1].tolist()  # evaluation leaves the parameters


def test_before_the_first_update_the_average_is_the_parameter() -> None:
    trainer, _ = trained(epochs=0)
    assert trainer.evaluate("validation", weights="slow") == trainer.evaluate("validation")


@pytest.mark.parametrize("background", [False, True])
def test_a_hook_measures_the_average_beside_the_parameters(background: bool) -> None:
    hooks = {"now": Evaluate(), "mean": Evaluate(weights="slow", background=background)}
    trainer, seen = trained(hooks=hooks)
    held = trainer.history
    assert held["validation.loss"][-1] == pytest.approx(np.mean((X @ seen[-1] - Y) ** 2))
    assert held["validation.slow.loss"][-1] == pytest.approx(np.mean((X @ average(seen, 0.7) - Y) ** 2))


def test_a_hook_with_weights_that_nobody_keeps_is_refused_before_training() -> None:
    with pytest.raises(SigmaConfigError, match=r"hooks.mean.weights: no modifier 'slwo' keeps weights .* 'slow'"):
        trained(hooks={"mean": Evaluate(weights="slwo")})


def test_weights_that_nobody_keeps_are_refused() -> None:
    trainer, _ = trained(epochs=1)
    with pytest.raises(SigmaConfigError, match="weights: no modifier 'average' keeps weights to evaluate with.*'?slow"):
        trainer.predict(X, weights="average")


TEXT = """
format = 1
[run]
name = "averaged"
backend = "numpy"
[data]
dataset = "iris"
batch_size = 40
[data.split]
training = 0.8
validation = 0.2
[network]
architecture = "input(4) + dense(3) + output(3) + softmax_cross_entropy()"
[trainer.optimiser]
type = "adam"
learning_rate = 0.05
modifiers.average = { type = "average", decay = 0.9 }
[hooks.score]
type = "accuracy"
weights = "average"
"""


@pytest.fixture
def run(sigma: Any) -> Path:
    Path("averaged.toml").write_text(TEXT)
    code, out, error = sigma("run", "averaged.toml", "--epochs", 5, "--json", "--quiet")
    assert code == 0, error
    return Path(json.loads(out)["folder"])


def loss(sigma: Any, *arguments: Any) -> Any:
    code, out, error = sigma("evaluate", *arguments, "--json")
    assert code == 0, error
    return json.loads(out)["metrics"]


def test_commands_use_the_average_of_a_run(sigma: Any, run: Path) -> None:
    plain, slow = loss(sigma, run), loss(sigma, run, "--weights", "average")
    assert plain.keys() == slow.keys() == {"validation.loss", "validation.accuracy"}
    assert plain["validation.loss"] != slow["validation.loss"]
    samples = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    model, averaged = load(run), load(run, weights="average")
    assert not np.array_equal(model.predict(samples), averaged.predict(samples))
    assert averaged.evaluate("validation")["loss"] == pytest.approx(slow["validation.loss"], rel=1e-6)
    np.save("samples.npy", samples)
    for command in (("predict", run, "samples.npy", "--output", "out.npy"), ("export", run, "model.npz")):
        assert sigma(*command, "--weights", "average")[0] == 0
    np.testing.assert_array_equal(np.load("out.npy"), averaged.predict(samples))
    exported = np.load("model.npz")
    assert {name: exported[name].tobytes() for name in exported.files if name in averaged.inference().arrays} == {
        name: value.tobytes() for name, value in averaged.inference().arrays.items()
    }


def test_commands_name_the_modifiers_that_keep_weights(sigma: Any, run: Path) -> None:
    for command in (("evaluate", run), ("export", run, "model.npz")):
        code, _, error = sigma(*command, "--weights", "mean")
        assert code == 2
        assert "weights: no modifier 'mean' keeps weights to evaluate with. There are: average" in error


def test_a_run_with_an_average_resumes_and_replays(sigma: Any, run: Path) -> None:
    assert sigma("replay", run, "--check")[0] == 0
    assert sigma("resume", run, "--epochs", 7, "--quiet")[0] == 0
    slow = loss(sigma, run, "--weights", "average")
    code, out, _ = sigma("run", "averaged.toml", "--epochs", 7, "--json", "--quiet")
    assert code == 0
    assert loss(sigma, json.loads(out)["folder"], "--weights", "average") == slow
