"""The measures in closed form, and where they are not defined; tests/peers compares them with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_report import measures

KEY = np.random.default_rng(0)


def test_a_confusion_matrix_counts_true_classes_down_and_predicted_ones_across():
    matrix = measures.confusion_matrix(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]), 3)
    assert matrix.tolist() == [[1, 1, 0], [0, 1, 0], [0, 1, 0]]


def test_scores_of_a_class_that_is_absent_or_never_predicted_are_undefined():
    scores = measures.class_scores(measures.confusion_matrix(np.array([0, 0, 1]), np.array([0, 0, 0]), 3))
    assert np.isnan(scores.precision).tolist() == [False, True, True]
    assert np.isnan(scores.recall).tolist() == [False, False, True]
    assert scores.f1.tolist()[:2] == [0.8, 0.0]
    assert scores.average()["recall"] == 0.5
    assert scores.average(weighted=True)["recall"] == pytest.approx(2 / 3)


def test_equal_scores_are_one_step_of_a_curve():
    x, y, thresholds = measures.roc_curve(np.array([True, False, True, False]), np.array([0.5, 0.5, 0.9, 0.5]))
    assert (x.tolist(), y.tolist()) == ([0, 0, 1], [0, 0.5, 1])
    assert thresholds.tolist() == [np.inf, 0.9, 0.5]


@pytest.mark.parametrize(("scores", "area"), [([0.1, 0.2, 0.8, 0.9], 1.0), ([0.5] * 4, 0.5), ([0.9, 0.8, 0.2, 0.1], 0)])
def test_the_area_is_1_for_perfect_0_for_inverted_and_a_half_for_constant_scores(scores, area):
    assert measures.roc_area(np.array([False, False, True, True]), np.array(scores)) == area


def test_areas_are_undefined_if_one_side_is_absent():
    scores = np.array([0.1, 0.7])
    assert np.isnan(measures.roc_area(np.array([True, True]), scores))
    assert np.isnan(measures.roc_area(np.array([False, False]), scores))
    assert np.isnan(measures.average_precision(np.array([False, False]), scores))
    assert measures.average_precision(np.array([True, True]), scores) == 1


def test_the_expected_calibration_error_is_the_mean_gap_over_rows():
    bins = measures.reliability(np.array([0.95, 0.95, 0.95, 0.6]), np.array([True, False, True, True]))
    assert bins.counts.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 3]  # a bin includes its upper edge
    assert bins.error == pytest.approx((3 * (0.95 - 2 / 3) + 0.4) / 4)


def test_a_perfect_prediction_has_no_brier_score_and_a_finite_log_loss_if_it_is_wrong():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert measures.brier_score(np.array([0, 1]), sure) == 0
    assert measures.brier_score(np.array([1, 0]), sure) == 1
    assert np.isfinite(measures.log_losses(np.array([1, 0]), sure)).all()


@pytest.mark.parametrize("temperature", [0.25, 1.0, 3.0])
def test_the_temperature_that_made_probabilities_too_sharp_is_fitted(temperature):
    scores = KEY.normal(0, 2, (50_000, 4))
    fair = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    truth = (fair.cumsum(axis=1) < KEY.random((50_000, 1))).sum(axis=1)
    sharp = measures.scale_probabilities(fair, 1 / temperature)
    assert measures.fit_temperature(truth, sharp) == pytest.approx(temperature, rel=0.03)


def test_the_fitted_temperature_is_where_the_log_loss_is_least():
    odds = KEY.dirichlet([1, 1, 1], 500)
    truth = KEY.integers(0, 3, 500)

    def loss(temperature: float) -> float:
        return float(measures.log_losses(truth, measures.scale_probabilities(odds, temperature)).mean())

    best = measures.fit_temperature(truth, odds)
    assert loss(best) < min(loss(best * 1.01), loss(best / 1.01))


def test_perfect_predictions_have_the_lowest_temperature_and_inverted_ones_the_highest():
    odds = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert measures.fit_temperature(np.array([0, 1]), odds) == pytest.approx(0.01)
    assert measures.fit_temperature(np.array([1, 0]), odds) == pytest.approx(100)


def test_errors_of_numbers_are_by_column_and_constant_truth_has_no_r_squared():
    truth, predicted = np.array([[0.0, 5.0], [2.0, 5.0]]), np.array([[1.0, 5.0], [1.0, 8.0]])
    scores = measures.regression_scores(truth, predicted)
    assert scores["mean_absolute_error"].tolist() == [1.0, 1.5]
    assert scores["root_mean_squared_error"].tolist() == [1.0, pytest.approx(np.sqrt(4.5))]
    assert scores["r_squared"][0] == 0
    assert np.isnan(scores["r_squared"][1])


def test_the_importance_of_a_column_of_a_linear_model_is_twice_its_variance_times_its_squared_weight():
    x, weights = KEY.normal(0, [1.0, 2.0, 3.0], (20_000, 3)), np.array([1.5, -0.5, 0.0])
    truth = x @ weights

    def score(values: np.ndarray) -> float:
        return float(((values @ weights - truth) ** 2).mean())

    rises = [measures.permutation_scores(x, [i], score, 4, np.random.default_rng(1)).mean() for i in range(3)]
    assert rises == pytest.approx([2 * 1.5**2, 2 * 0.5**2 * 4, 0.0], rel=0.03, abs=1e-9)
