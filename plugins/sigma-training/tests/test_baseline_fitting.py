"""Baselines are the best constants and linear models: checked by closed forms, and by slopes of 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_training.baselines.fitting import (
    CLASSES,
    DECISIONS,
    LEAST,
    NUMBERS,
    RIDGE,
    Goals,
    count_operations,
    fit_constant,
    fit_linear,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(2.0, 3.0, (200, 4))
LABELS = ((X[:, 0] > 2).astype("int32") + (X[:, 1] + RANDOM.normal(size=200) > 2)).astype("int32")
WEIGHTS = RANDOM.uniform(0.2, 3.0, 200)


def goals(kind: str, values: Any, *shape: int, weights: Any = None, ignored: int | None = None) -> Goals:
    return Goals(kind, np.asarray(values), shape, np.ones(len(values)) if weights is None else weights, ignored)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


# -- constants ---------------------------------------------------------------------------------------------------------
def test_the_constant_of_classes_gives_their_shares() -> None:
    np.testing.assert_allclose(softmax(fit_constant(goals(CLASSES, [2, 0, 2, 2], 3))), [0.25, 0, 0.75], atol=2 * LEAST)
    weighted = goals(CLASSES, [0, 1], 2, weights=np.array([3.0, 1.0]))
    np.testing.assert_allclose(softmax(fit_constant(weighted)), [0.75, 0.25])


def test_labels_of_sequences_are_counted_at_all_places_and_ignored_ones_are_not() -> None:
    constant = fit_constant(goals(CLASSES, [[0, 1, -1], [1, 1, -1]], 3, 2, ignored=-1))
    assert constant.shape == (3, 2)
    np.testing.assert_allclose(softmax(constant), [[0.25, 0.75]] * 3)


def test_the_constant_of_probabilities_is_their_mean() -> None:
    np.testing.assert_allclose(softmax(fit_constant(goals(CLASSES, [[0.5, 0.5], [1.0, 0.0]], 2))), [0.75, 0.25])


def test_the_constant_of_decisions_has_their_odds() -> None:
    constant = fit_constant(goals(DECISIONS, [[1, -1], [1, 1], [1, 0], [0, 0]], 2))
    np.testing.assert_allclose(constant, [np.log(3), -np.log(3)])
    assert np.isfinite(fit_constant(goals(DECISIONS, [1, 1], 1))).all()


def test_the_constant_of_numbers_is_their_mean_in_the_shape_of_the_output() -> None:
    np.testing.assert_allclose(fit_constant(goals(NUMBERS, [1.0, 2.0, 6.0], 1)), [3.0])
    pictures = RANDOM.normal(size=(5, 2, 3))
    np.testing.assert_allclose(fit_constant(goals(NUMBERS, pictures, 2, 3)), pictures.mean(axis=0))
    np.testing.assert_allclose(fit_constant(goals(NUMBERS, [1.0, 5.0], 1, weights=np.array([3.0, 1.0]))), [2.0])


# -- linear models -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_numbers_are_fitted_by_least_squares(weights: Any) -> None:
    values = X @ RANDOM.normal(size=(4, 2)) + RANDOM.normal(size=(200, 2)) + 7.0
    matrix, shift = fit_linear(X, goals(NUMBERS, values, 2, weights=weights))
    each = np.ones(200) if weights is None else weights
    columns = np.concatenate([X, np.ones((200, 1))], axis=1)
    expected = np.linalg.solve(columns.T @ (each[:, None] * columns), columns.T @ (each[:, None] * values))
    np.testing.assert_allclose(np.concatenate([matrix, shift[None]]), expected, rtol=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(("kind", "values", "size"), [(CLASSES, LABELS, 3), (DECISIONS, LABELS > 0, 1)])
def test_at_the_optimum_of_logistic_regression_the_slope_is_0(kind: str, values: Any, size: int, weights: Any) -> None:
    matrix, shift = fit_linear(X, goals(kind, values.astype("int32"), size, weights=weights))
    each = np.ones(200) if weights is None else weights
    sums = X @ matrix + shift
    chances = softmax(sums) if kind == CLASSES else 1 / (1 + np.exp(-sums))
    wanted = np.eye(3)[LABELS] if kind == CLASSES else values[:, None]
    scale = X.std(axis=0)[:, None]
    middle = np.average(X, axis=0, weights=each)
    slope = ((X - middle) / scale.T).T @ (each[:, None] * (chances - wanted)) + RIDGE * matrix * scale
    assert np.abs(slope).max() < 0.002 * 200
    assert np.abs((each[:, None] * (chances - wanted)).sum(axis=0)).max() < 0.002 * 200


def test_columns_that_depend_on_each_other_are_no_reason_to_stop_early(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    columns = random.normal(size=(300, 20)) @ random.normal(size=(20, 20)) ** 3
    labels = (columns @ random.normal(size=(20, 8)) / 20 + random.normal(size=(300, 8))).argmax(axis=1).astype("int32")

    def loss() -> float:
        matrix, shift = fit_linear(columns, goals(CLASSES, labels, 8))
        chances = softmax(columns @ matrix + shift)[np.arange(300), labels]
        return float(-np.log(chances).mean() + 0.5 * np.sum((matrix * columns.std(axis=0)[:, None]) ** 2) / 300)

    here = loss()
    monkeypatch.setattr("sigma_training.baselines.fitting.TOLERANCE", 1e-15)
    monkeypatch.setattr("sigma_training.baselines.fitting.STEPS", 20_000)
    assert here - loss() < 1e-5


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = RANDOM.permutation(200)
    first = fit_linear(X, goals(CLASSES, LABELS, 3))
    again = fit_linear(X[order], goals(CLASSES, LABELS[order], 3))
    np.testing.assert_allclose(first[0], again[0], atol=1e-8)


def test_ignored_labels_have_no_part() -> None:
    ignored = np.where(np.arange(200) < 50, -100, LABELS)
    one = fit_linear(X, goals(CLASSES, ignored, 3, ignored=-100))
    weights = (np.arange(200) >= 50).astype(float)
    other = fit_linear(X, goals(CLASSES, LABELS, 3, weights=weights))
    np.testing.assert_allclose(one[0], other[0], atol=1e-9)


@pytest.mark.parametrize("values", [np.zeros(200, "int32"), np.full(200, 2, "int32")])
def test_a_single_class_and_constant_columns_are_no_problem(values: np.ndarray) -> None:
    columns = np.concatenate([X, np.full((200, 1), 5.0)], axis=1)
    matrix, shift = fit_linear(columns, goals(CLASSES, values, 3))
    assert np.isfinite(matrix).all()
    assert ((columns @ matrix + shift).argmax(axis=1) == values).all()
    matrix, shift = fit_linear(columns * 0, goals(NUMBERS, np.arange(200.0), 1))
    np.testing.assert_allclose(shift, [99.5])


def test_perfect_separation_stays_finite() -> None:
    matrix, shift = fit_linear(X, goals(DECISIONS, (X[:, 0] > 2).astype("int32"), 1))
    assert (((X @ matrix + shift)[:, 0] > 0) == (X[:, 0] > 2)).mean() > 0.97
    assert np.isfinite(matrix).all()


def test_goals_that_do_not_fit_the_output_are_known() -> None:
    assert goals(CLASSES, LABELS, 3).fits_shape
    assert not goals(CLASSES, LABELS, 2).fits_shape
    assert not goals(CLASSES, LABELS - 5, 3).fits_shape
    assert goals(NUMBERS, X, 4).fits_shape
    assert goals(NUMBERS, X[:, 0], 1).fits_shape
    assert not goals(NUMBERS, X, 3).fits_shape
    assert not goals(CLASSES, np.full(3, -1), 3, ignored=-1).fits_shape
    assert goals(CLASSES, LABELS, 3).is_vector
    assert not goals(CLASSES, np.stack([LABELS, LABELS], axis=1), 2, 3).is_vector
    assert count_operations(200, 4, CLASSES, (3,)) > count_operations(200, 4, NUMBERS, (4,))
