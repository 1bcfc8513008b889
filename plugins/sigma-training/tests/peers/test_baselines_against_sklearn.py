"""Baselines against those of scikit-learn: the same probabilities, numbers and scores."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss

from sigma_training.baselines.fitting import CLASSES, DECISIONS, NUMBERS, Goals, fit_constant, fit_linear


def divided(load: object) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    inputs, targets = load(return_X_y=True)  # type: ignore[operator]
    order = np.random.default_rng(0).permutation(len(inputs))
    train, rest = np.split(order, [len(order) * 4 // 5])
    return inputs[train], targets[train], inputs[rest], targets[rest]


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("load", [load_digits, load_iris])
def test_classes_have_the_same_probabilities(load: object) -> None:
    x, y, new, wanted = divided(load)
    goals = Goals(CLASSES, y.astype("int32"), (y.max() + 1,), np.ones(len(y)))
    prior = DummyClassifier(strategy="prior").fit(x, y)
    np.testing.assert_allclose(softmax(fit_constant(goals)), prior.predict_proba(new)[0], rtol=1e-9)
    matrix, shift = fit_linear(x, goals)
    scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000).fit(x / scale, y)
    chances = softmax(new @ matrix + shift)
    assert log_loss(wanted, chances) == pytest.approx(log_loss(wanted, theirs.predict_proba(new / scale)), rel=0.01)
    assert abs(np.mean(chances.argmax(axis=1) == wanted) - theirs.score(new / scale, wanted)) < 0.01


def test_decisions_have_the_same_probabilities() -> None:
    x, y, new, wanted = divided(load_breast_cancer)
    goals = Goals(DECISIONS, y.astype("int32"), (1,), np.ones(len(y)))
    assert 1 / (1 + np.exp(-fit_constant(goals)[0])) == pytest.approx(y.mean())
    matrix, shift = fit_linear(x, goals)
    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=10_000).fit((x - x.mean(0)) / x.std(0), y)
    chances = theirs.predict_proba((new - x.mean(0)) / x.std(0))[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-(new @ matrix + shift)[:, 0])), chances, atol=0.02)
    assert np.mean(((new @ matrix + shift)[:, 0] > 0) == wanted) == np.mean((chances > 0.5) == wanted)


def test_numbers_have_the_same_mean_and_least_squares() -> None:
    x, y, new, _ = divided(load_diabetes)
    goals = Goals(NUMBERS, y, (1,), np.ones(len(y)))
    np.testing.assert_allclose(fit_constant(goals), DummyRegressor().fit(x, y).predict(new[:1]))
    matrix, shift = fit_linear(x, goals)
    np.testing.assert_allclose((new @ matrix + shift)[:, 0], LinearRegression().fit(x, y).predict(new), rtol=1e-8)
