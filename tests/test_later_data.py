"""Data that are given to a loaded network: read like those of its training, evaluated, and trained on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Arrays, Frame
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_run import load

DRAW = np.random.default_rng(3)
X = (DRAW.normal(size=(60, 3)) * [1, 10, 100] + [0, 5, -50]).astype(np.float32)
WORDS = np.array(["ant", "bee", "cat"])[np.argmax(X / [1, 10, 100], axis=1)]
FRAME = pd.DataFrame(X.astype(float), columns=["a", "b", "c"]).assign(y=WORDS)
SOME = np.flatnonzero(WORDS != "ant")[:7]  # without the first class, on another scale


def trainer(data: Any, folder: Path | None = None, **settings: Any) -> Any:
    network = "input(3) + dense(8, activation='tanh') + output(3) + softmax_cross_entropy()"
    chosen = {"network": network, "batch_size": 20, "optimiser": {"type": "adam", "learning_rate": 0.05}, "epochs": 4}
    chosen["hooks"] = {"score": {"type": "accuracy", "on": "training", "every": "1 epoch"}}
    steps = ["standardise"]
    return Environment("later", seed=1, folder=folder).create_trainer(
        data=data, preprocessors=steps, **{**chosen, **settings}
    )


@pytest.fixture(params=["run", "saved"])
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Path]:
    made = trainer(Frame(FRAME, "y"), tmp_path / "runs")
    made.fit()
    return made, next((tmp_path / "runs").iterdir()) if request.param == "run" else made.save(tmp_path / "model")


def loss(made: Any, rows: Any) -> float:
    """Return the mean cross-entropy of rows, from the predictions."""
    chosen = np.searchsorted(["ant", "bee", "cat"], WORDS[rows])
    return float(-np.log(made.predict(X[rows])[range(len(chosen)), chosen]).mean())


LATER: dict[str, Any] = {
    "pair": (X[SOME], WORDS[SOME]),
    "sections": {"inputs": X[SOME], "targets": WORDS[SOME].tolist()},
    "Arrays": Arrays(inputs=X[SOME], targets=WORDS[SOME]),
    "frame": Frame(FRAME.iloc[SOME][["c", "y", "b", "a"]], "y"),
    "pair of frames": (FRAME.iloc[SOME][["c", "b", "a"]], FRAME["y"].iloc[SOME]),
}


@pytest.mark.parametrize("name", LATER)
def test_other_data_are_evaluated_with_the_classes_columns_and_statistics_of_the_training(
    name: str, trained: tuple[Any, Path]
) -> None:
    made, path = trained
    model = load(path)
    wanted, chosen = loss(made, SOME), made.classify(X[SOME]) == WORDS[SOME]
    found = model.evaluate(LATER[name], {"accuracy": "accuracy"})
    assert found == {"loss": pytest.approx(wanted, rel=1e-5), "accuracy": pytest.approx(chosen.mean())}
    model = load(path)
    model.trainer.data, model.trainer.batch_size = LATER[name], 7
    assert model.evaluate("training") == {"loss": pytest.approx(wanted, rel=1e-5)}


def test_hooks_on_a_split_that_other_data_lack_do_not_matter(tmp_path: Path) -> None:
    hooks = {"score": {"type": "accuracy", "on": "validation", "every": "1 epoch"}}
    made = trainer((X, WORDS), validation_split=0.2, hooks=hooks)
    made.fit()
    assert load(made.save(tmp_path / "model")).evaluate((X, WORDS))["loss"] > 0


def test_the_data_of_the_training_give_the_same_bits(trained: tuple[Any, Path]) -> None:
    made, path = trained
    model, metrics = load(path), {"accuracy": "accuracy"}
    assert model.evaluate(Frame(FRAME, "y"), metrics) == made.evaluate("training", metrics)
    assert model.evaluate((X, WORDS)) == made.evaluate("training")


def test_weights_of_other_data_count(tmp_path: Path) -> None:
    made = trainer((X, WORDS, np.ones(60)))
    made.fit()
    model, weights = load(made.save(tmp_path / "model")), np.arange(60.0)
    losses = -np.log(made.predict(X)[range(60), np.searchsorted(["ant", "bee", "cat"], WORDS)])
    assert model.evaluate((X, WORDS, weights))["loss"] == pytest.approx(np.average(losses, weights=weights), rel=1e-5)
    assert model.evaluate((X, WORDS))["loss"] == pytest.approx(losses.mean(), rel=1e-5)


@pytest.mark.parametrize(("data", "message"), [
    ((X, ["cow"] * 60), "holds the class 'cow', which the training split does not have: 'ant', 'bee', 'cat'"),
    ((X[:, :2], WORDS), r"cannot take section 'inputs', float32 of shape \(60, 2\)"),
    (X, "not data"),
    (FRAME, "a frame does not say what to predict"),
    (Frame(FRAME.drop(columns="b"), "y"), "there is no column 'b'"),
    ((X[:0], WORDS[:0]), "there is no row"),
])  # fmt: skip
def test_other_data_that_do_not_fit_are_refused(data: Any, message: str, trained: tuple[Any, Path]) -> None:
    with pytest.raises(SigmaDataError, match=message):
        load(trained[1]).evaluate(data)


def test_targets_as_a_second_argument_are_told_where_they_belong(trained: tuple[Any, Path]) -> None:
    with pytest.raises(SigmaConfigError, match=r"metrics are a table by name. For other data, write evaluate\(\(x, y"):
        load(trained[1]).evaluate(X, WORDS)


# -- training on -------------------------------------------------------------------------------------------------------
def test_a_loaded_trainer_has_the_state_and_trains_on_to_the_same_bits(trained: tuple[Any, Path]) -> None:
    made, path = trained
    model = load(path)
    model.trainer.data = Frame(FRAME, "y")
    assert np.array_equal(model.trainer.predict(X), made.predict(X))
    assert model.trainer.classify(X).tolist() == made.classify(X).tolist()
    made.fit(epochs=3)
    model.trainer.fit(epochs=3)
    assert model.trainer.session.moment.iteration == made.session.moment.iteration == 21
    assert np.array_equal(model.trainer.predict(X), made.predict(X))
    whole = trainer(Frame(FRAME, "y"))
    whole.fit(epochs=7)
    assert np.array_equal(model.trainer.predict(X), whole.predict(X))


def test_the_loaded_network_stays_as_it_was_when_its_trainer_trains_on(trained: tuple[Any, Path]) -> None:
    _, path = trained
    model = load(path)
    model.trainer.data = Frame(FRAME, "y")
    before, predictions = model.evaluate("training"), model.predict(X)
    model.trainer.fit(epochs=2)
    assert model.evaluate("training") == before != model.trainer.evaluate("training")
    assert np.array_equal(model.predict(X), predictions)


def test_training_goes_on_with_other_data_from_the_middle_of_an_epoch(tmp_path: Path) -> None:
    made = trainer((X, WORDS))
    made.fit(iterations=4)  # one of three batches into the second epoch
    model = load(made.save(tmp_path / "model"))
    model.trainer.data, model.trainer.batch_size = (X[SOME], WORDS[SOME]), 7
    model.trainer.fit(epochs=20)
    assert loss(model.trainer, SOME) < loss(model, SOME)
    statistics = {name: value for name, value in model.checkpoint.arrays.items() if "standardise" in name}
    now = model.trainer.session.snapshot().arrays
    assert all(np.array_equal(now[name], value) for name, value in statistics.items())


def test_a_network_for_other_shapes_is_not_trained_on(trained: tuple[Any, Path]) -> None:
    model = load(trained[1])
    model.trainer.data, model.trainer.preprocessors = (X[:, :2], WORDS), {}
    with pytest.raises(SigmaNetworkError):
        model.trainer.fit(epochs=1)
