"""What the estimators learn, keep and refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError, SigmaStateError
from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import Adam
from sigma_run import load
from sigma_sklearn import SigmaClassifier, SigmaRegressor, network

PAGES = [Path(__file__).parents[2] / "README.md", Path(__file__).parents[4] / "docs" / "how-to" / "scikit-learn.md"]
X, Y = load_iris(return_X_y=True)
WORDS = np.array(["setosa", "versicolor", "virginica"])[Y]
DRAW = np.random.default_rng(5)


def classifier(**settings: Any) -> SigmaClassifier:
    return SigmaClassifier(**{"epochs": 5, "random_state": 0, "backend": "numpy", **settings})


def regressor(**settings: Any) -> SigmaRegressor:
    return SigmaRegressor(**{"epochs": 5, "random_state": 0, "backend": "numpy", **settings})


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- what is learned ---------------------------------------------------------------------------------------------------
def test_a_linear_classifier_finds_what_logistic_regression_finds() -> None:
    rows, words = X[50:, :2] - X[50:, :2].mean(axis=0), WORDS[50:]  # of which the classes overlap
    model = classifier(network="", epochs=1000, learning_rate=0.1).fit(rows, words)
    known = LogisticRegression(C=np.inf, max_iter=10_000, tol=1e-10).fit(rows, words)
    assert np.allclose(model.predict_proba(rows), known.predict_proba(rows), atol=1e-4)


def test_a_linear_regressor_finds_least_squares_with_weights_and_several_outputs() -> None:
    inputs, weights = DRAW.normal(size=(40, 3)), DRAW.integers(0, 4, 40)
    targets = inputs @ DRAW.normal(size=(3, 2)) + DRAW.normal(size=(40, 2))
    model = regressor(network="", epochs=2000, learning_rate=0.03).fit(inputs, targets, weights)
    known = LinearRegression().fit(inputs, targets, weights)
    assert np.allclose(model.predict(inputs), known.predict(inputs), atol=1e-4)
    assert model.n_outputs_ == 2


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_weights_count_rows_as_repeating_them_does(backend: str) -> None:
    weights = DRAW.integers(0, 4, len(X))
    one = classifier(backend=backend, epochs=20).fit(X, Y, weights)
    other = classifier(backend=backend, epochs=20).fit(X.repeat(weights, axis=0), Y.repeat(weights))
    assert np.allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)
    assert not np.allclose(one.predict_proba(X), classifier(epochs=20).fit(X, Y).predict_proba(X), rtol=1e-3)


def test_a_thousand_rows_are_one_batch_and_more_are_several() -> None:
    rows = DRAW.normal(size=(1001, 2))
    counts = [len(regressor(epochs=1).fit(rows[:n], rows[:n, 0]).history_["training.loss"]) for n in (1000, 1001)]
    assert counts == [1, 6]


@pytest.mark.parametrize("shape", [(30,), (30, 1), (30, 3)])
def test_predictions_have_the_shape_of_the_targets(shape: tuple[int, ...]) -> None:
    assert regressor().fit(X[:30], np.ones(shape)).predict(X[:7]).shape == (7, *shape[1:])


def test_early_stopping_restores_the_best_and_measures_on_rows_of_every_class() -> None:
    model = classifier(early_stopping=True, patience=3, epochs=1000, learning_rate=0.05, validation_fraction=0.2)
    model.fit(X, WORDS)
    losses = model.history_["validation.loss"]
    assert losses.argmin() + 4 == model.n_iter_ == len(losses)
    from_best = classifier(
        early_stopping=True, epochs=int(losses.argmin()) + 1, learning_rate=0.05, validation_fraction=0.2
    )
    assert np.array_equal(from_best.fit(X, WORDS).predict_proba(X), model.predict_proba(X))


def test_predictions_do_not_depend_on_the_number_of_rows() -> None:
    model, rows = classifier().fit(X, Y), DRAW.normal(size=(531, 4))
    whole = model.predict_proba(rows)
    for count in (1, 2, 16, 17, 256, 257, 512):
        assert np.allclose(model.predict_proba(rows[:count]), whole[:count], rtol=1e-12)


# -- bits --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_same_seed_gives_the_same_bits_and_another_one_others(backend: str) -> None:
    one, other, third = (
        classifier(backend=backend, random_state=seed).fit(X, WORDS).predict_proba(X) for seed in (0, 0, 1)
    )
    assert np.array_equal(one, other)
    assert not np.array_equal(one, third)


def test_a_generator_as_random_state_draws_a_new_seed_for_every_fit() -> None:
    one, other = (np.random.RandomState(3) for _ in range(2))
    first, again = (classifier(random_state=one).fit(X, Y).predict_proba(X) for _ in range(2))
    assert np.array_equal(classifier(random_state=other).fit(X, Y).predict_proba(X), first)
    assert not np.array_equal(first, again)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_steps_on_the_whole_table_give_the_bits_of_a_fit(backend: str) -> None:
    network = "dense(8, activation='tanh') + dropout(0.3)"
    whole = classifier(network=network, backend=backend, batch_size=40).fit(X, WORDS)
    steps = classifier(network=network, backend=backend, batch_size=40)
    for _ in range(5):
        steps = pickle.loads(pickle.dumps(steps.partial_fit(X, WORDS, classes=np.unique(WORDS))))
    assert np.array_equal(whole.predict_proba(X), steps.predict_proba(X))
    assert steps.n_iter_ == 5


def test_training_goes_on_from_the_moments_of_the_optimiser_after_a_fit_and_after_a_copy() -> None:
    longer, model = classifier(epochs=6).fit(X, Y), classifier().fit(X, Y)
    other = copy.deepcopy(model)
    assert np.array_equal(model.partial_fit(X, Y).predict_proba(X), longer.predict_proba(X))
    assert np.array_equal(other.partial_fit(X, Y).predict_proba(X), longer.predict_proba(X))
    fresh = classifier(epochs=1).fit(X, Y)
    assert not np.array_equal(fresh.predict_proba(X), longer.predict_proba(X))


def test_training_goes_on_from_the_best_after_early_stopping() -> None:
    model = classifier(early_stopping=True, patience=2, epochs=1000, learning_rate=0.05).fit(X, Y)
    before = model.predict_proba(X)
    model.set_params(learning_rate=0.0).partial_fit(X, Y)
    assert np.array_equal(model.predict_proba(X), before)


def test_new_rows_of_another_number_and_a_new_rate_are_trained_on() -> None:
    model = classifier(learning_rate=0.0).partial_fit(X[:100], Y[:100], classes=[0, 1, 2])
    before = model.predict_proba(X)
    model.partial_fit(X[100:], Y[100:])
    assert np.array_equal(model.predict_proba(X), before)
    model.set_params(learning_rate=0.1).partial_fit(X[100:], Y[100:])
    assert not np.array_equal(model.predict_proba(X), before)
    assert model.n_iter_ == 3


def test_the_precision_is_that_of_the_inputs_unless_it_is_given() -> None:
    assert classifier().fit(X, Y).predict_proba(X).dtype == np.float64
    model = classifier().fit(X.astype(np.float32), Y)
    assert model.predict_proba(X).dtype == np.float32
    assert model.partial_fit(X, Y).predict_proba(X).dtype == np.float32
    assert classifier(precision="float32").fit(X, Y).predict_proba(X).dtype == np.float32


# -- what is kept ------------------------------------------------------------------------------------------------------
def test_neither_the_estimator_nor_its_pickle_holds_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []

    def trainer(*given: Any, **more: Any) -> Any:
        found = make(*given, **more)
        made.append(weakref.ref(found))
        return found

    make = network.trainer
    monkeypatch.setattr(network, "trainer", trainer)
    model = regressor(epochs=1).fit(DRAW.normal(size=(5000, 4)), np.ones(5000))
    model.predict(X)
    gc.collect()
    alive = [one for one in (ref() for ref in made) if one is not None]
    assert [len(one.session.setup.feed.dataset) for one in alive] == [256]  # of zeros, to predict with
    assert len(made) == 2
    assert len(pickle.dumps(model)) < 40_000


def test_a_copy_of_the_settings_is_not_trained() -> None:
    model = classifier(network=Input(4) + Dense(5) + Output(3) + SoftmaxCrossEntropy()).fit(X, Y)
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    with pytest.raises(NotFittedError):
        fresh.trainer_  # noqa: B018
    assert np.array_equal(fresh.fit(X, Y).predict_proba(X), model.predict_proba(X))


def test_the_trainer_without_data_does_not_train() -> None:
    model = classifier().fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(SigmaStateError, match=r"no data to train on\. Call fit or partial_fit of the estimator"):
        model.trainer_.fit(epochs=1)
    assert np.array_equal(model.predict_proba(X), before)


def test_nothing_is_written_and_the_network_can_be_saved(capsys: pytest.CaptureFixture[str]) -> None:
    model = classifier().fit(X, Y)
    assert [*Path().iterdir()] == []
    assert capsys.readouterr() == ("", "")
    saved = load(model.trainer_.save("flowers"))
    assert np.allclose(saved.predict(X), model.predict_proba(X), rtol=1e-12)


def test_progress_is_shown_if_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    classifier(verbose=True).fit(X, Y)
    assert "epoch 5" in capsys.readouterr().err


# -- networks and settings ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [
    {"network": "input(4) + dense(5, activation='tanh') + output(3) + softmax_cross_entropy()"},
    {"network": "  input(4)+output(3) + softmax_cross_entropy(label_smoothing=0.1)"},
    {"network": Input(4) + Dense(5) + Output(3) + SoftmaxCrossEntropy()},
    {"network": None}, {"network": " "},
    {"cost": "softmax_cross_entropy(label_smoothing=0.1)"},
    {"optimiser": {"type": "gradient_descent", "learning_rate": 0.1}},
    {"optimiser": Adam(), "learning_rate": 0.05},
    {"optimiser": {"type": "adam", "beta1": 0.8}, "learning_rate": 0.05},
    {"hooks": {"score": {"type": "accuracy", "on": "training", "every": "1 epoch"}}, "optimiser": "rmsprop"},
], ids=str)  # fmt: skip
def test_networks_and_settings_can_be_given_in_many_ways(settings: dict[str, Any]) -> None:
    model = classifier(epochs=150, **settings).fit(X, WORDS)
    assert model.score(X, WORDS) > 0.6
    assert ("training.accuracy" in model.history_) == ("hooks" in settings)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_one_output_is_the_probability_of_the_second_of_two_classes() -> None:
    model = classifier(network="input(4) + output(1) + binary_cross_entropy()", epochs=200).fit(X[:100], WORDS[:100])
    assert model.score(X[:100], WORDS[:100]) == 1.0
    assert np.allclose(model.predict_proba(X[:100]).sum(axis=1), 1)
    assert (model.predict_proba(X[:100])[:, 1] > 0.5).tolist() == (WORDS[:100] == "versicolor").tolist()


def test_a_margin_chooses_classes_too() -> None:
    assert classifier(cost="multi_class_hinge", epochs=200).fit(X, WORDS).score(X, WORDS) > 0.9


def test_a_regressor_takes_the_costs_of_regression() -> None:
    model = regressor(cost="huber(delta=2.0)", epochs=300).fit(X[:, :3], X[:, 3])
    assert model.score(X[:, :3], X[:, 3]) > 0.8


@pytest.mark.parametrize(("name", "rate"), [("adam", 0.01), ("l_bfgs", 1.0)])
def test_an_optimiser_by_name_has_its_own_rate_but_for_the_default(name: str, rate: float) -> None:
    found = regressor(optimiser=name).fit(X[:, :3], X[:, 3]).trainer_.registry.find("optimiser.learning_rate")
    assert found == [("optimiser.learning_rate", rate)]


def test_an_optimiser_without_a_rate_can_be_given_by_name() -> None:
    model = regressor(optimiser="random_search").fit(X[:, :3], X[:, 3])
    assert model.trainer_.optimiser == {"type": "random_search"}


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"network": "dens(3)"}, SigmaConfigError, "no plugin offers it. Did you mean 'dense'"),
    ({"network": "dense(3"}, SigmaNetworkError, re.escape("expected ')'")),
    ({"network": 5}, SigmaNetworkError, "5 is not an architecture"),
    ({"network": "input(3) + output(3) + softmax_cross_entropy()"}, SigmaNetworkError, "3"),
    ({"network": "input(4) + output(5) + softmax_cross_entropy()"}, SigmaConfigError, "shape (5,) for 3 classes"),
    ({"cost": "squared_difference"}, SigmaNetworkError, "For classes, use softmax_cross_entropy"),
    ({"optimiser": "sgd"}, SigmaConfigError, "Sigma calls it 'gradient_descent'"),
    ({"optimiser": 5, "learning_rate": 0.1}, SigmaConfigError, "must be an optimiser: its name"),
    ({"optimiser": {"type": "adam", "learning_rat": 0.1}}, SigmaConfigError,
     "classifier.optimiser: has no setting 'learning_rat'. Did you mean 'learning_rate'?"),
    ({"optimiser": {"type": "adam", "beta1": 1.0}}, SigmaConfigError,
     "classifier.optimiser.beta1: must be at least 0 and less than 1 (got 1.0)."),
    ({"optimiser": {"type": "adam", "schedules": {"learning_rate": "cosin"}}}, SigmaConfigError,
     "classifier.optimiser.schedules.learning_rate: schedule 'cosin': no plugin offers it. Did you mean 'cosine'?"),
    ({"cost": 5}, SigmaConfigError, "must be the name or the text of a cost, such as 'huber(delta=2.0)' (got 5)."),
    ({"cost": " "}, SigmaConfigError, "cost: must be the name or the text of a cost"),
    ({"hooks": "accuracy"}, SigmaConfigError, "hooks: must be hooks by name, such as {'score': 'accuracy'} (got 'acc"),
    ({"batch_size": "3"}, SigmaConfigError, "classifier.batch_size: must be a whole number of at least 1"),
    ({"batch_size": 0}, SigmaConfigError, "classifier.batch_size: must be a whole number of at least 1"),
    ({"epochs": 1.5}, SigmaConfigError, "epochs must be a whole number"),
    ({"backend": "nope"}, SigmaConfigError, "backend 'nope'"),
    ({"precision": "float8"}, SigmaConfigError, "float8"),
    ({"random_state": -1}, ValueError, "Seed must be between 0"),
    ({"early_stopping": True, "validation_fraction": 0.001}, ValueError, "The test_size = 1 should be greater"),
], ids=str)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message if "\\" in message else re.escape(message)):
        classifier(**settings).fit(X, Y).predict(X)


INDICES = "input(3, dtype='int32') + embedding(7, 5) + flatten() + output({}) + {}()"


@pytest.mark.parametrize("kind", ["int64", "uint8", "float64", "float32"])
def test_a_network_that_reads_indices_learns_what_no_sum_of_the_columns_tells(kind: str) -> None:
    rows = DRAW.integers(0, 7, (300, 3))
    odd, worth = rows[:, 0] % 2, np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0])
    model = classifier(network=INDICES.format(2, "softmax_cross_entropy"), epochs=200).fit(rows.astype(kind), odd)
    assert model.score(rows, odd) == 1 > LogisticRegression().fit(rows, odd).score(rows, odd) + 0.3
    assert pickle.loads(pickle.dumps(model)).predict(rows.astype("int32")).tolist() == odd.tolist()
    guess = regressor(network=INDICES.format(1, "squared_difference"), epochs=300, learning_rate=0.05)
    assert guess.fit(rows.astype(kind), worth[rows[:, 1]]).score(rows, worth[rows[:, 1]]) > 0.99


@pytest.mark.parametrize("wrong", [7, -1, 2.5])
def test_numbers_that_are_no_indices_of_the_network_are_refused(wrong: float) -> None:
    rows = DRAW.integers(0, 7, (50, 3)).astype(float)
    model = classifier(network=INDICES.format(2, "softmax_cross_entropy")).fit(rows, rows[:, 0] > 3)
    bad = rows.copy()
    bad[4, 1] = wrong
    with pytest.raises(SigmaDataError, match=rf"row 4: {float(wrong)} is not an index from 0 to 6"):
        model.predict(bad)
    with pytest.raises(SigmaDataError, match=rf"{float(wrong)} is not an index from 0 to 6"):
        model.fit(bad, rows[:, 0] > 3)
    with pytest.raises(SigmaNetworkError, match=r"takes indices \(got float64\)\. Write Input\(3, dtype=\"int32\"\)"):
        classifier(network="embedding(7, 5) + flatten()").fit(rows, rows[:, 0] > 3)


def test_classes_that_training_did_not_have_are_refused() -> None:
    model = classifier().fit(X[:100], WORDS[:100])
    with pytest.raises(ValueError, match=r"y has classes that training did not have: \['virginica'\]. Call fit"):
        model.partial_fit(X, WORDS)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        classifier().partial_fit(X, Y)
    assert model.fit(X, WORDS).classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_a_network_of_another_shape_does_not_go_on_from_the_state() -> None:
    model = classifier().fit(X, Y)
    with pytest.raises(SigmaConfigError, match=r"classifier: the shape of .*Call fit, or set the network and the opt"):
        model.set_params(network="dense(3)").partial_fit(X, Y)
    with pytest.raises(SigmaConfigError, match=r"classifier: the shape of .*None"):
        model.set_params(network="dense(64, activation='relu')", optimiser="gradient_descent").partial_fit(X, Y)
    before = classifier().fit(X, Y).predict_proba(X)
    assert np.array_equal(model.predict_proba(X), before)  # it is as it was


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_in_order(page: Path) -> None:
    names: dict[str, Any] = {"__name__": page.stem}
    blocks = re.findall(r"^```\{code-block\} python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for text in blocks:
        exec(compile(text, page.name, "exec"), names)
