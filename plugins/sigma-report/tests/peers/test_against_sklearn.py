"""The measures are those of scikit-learn, also for ties and classes that are absent."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression

from sigma_report import measures

SEEDS = pytest.mark.parametrize("seed", range(20))


def scored(seed: int, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return true classes and probabilities, with many ties; of every third seed, class 1 is absent."""
    key = np.random.default_rng(seed)
    truth = key.integers(0, count, 60)
    truth = np.where(truth == 1, 0, truth) if seed % 3 == 0 else truth
    scores = np.round(key.dirichlet(np.ones(count), 60) + 0.4 * np.eye(count)[truth], 1) + 0.01
    return truth, scores / scores.sum(axis=1, keepdims=True)


@SEEDS
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_classes_are_equal(seed, weighted):
    truth, probabilities = scored(seed)
    chosen = probabilities.argmax(axis=1)
    matrix = measures.confusion_matrix(truth, chosen, 3)
    scores = measures.class_scores(matrix)
    options = {"labels": [0, 1, 2], "zero_division": np.nan}
    assert (matrix == metrics.confusion_matrix(truth, chosen, labels=[0, 1, 2])).all()
    theirs = metrics.precision_recall_fscore_support(truth, chosen, **options)
    np.testing.assert_allclose((scores.precision, scores.recall, scores.f1, scores.support), theirs)
    how = "weighted" if weighted else "macro"
    theirs = metrics.precision_recall_fscore_support(truth, chosen, average=how, **options)[:3]
    np.testing.assert_allclose([*scores.average(weighted).values()], theirs)


@SEEDS
def test_curves_and_areas_are_equal(seed):
    truth, probabilities = scored(seed)
    positive, scores = truth == 2, probabilities[:, 2]
    false, true, thresholds = metrics.roc_curve(positive, scores, drop_intermediate=False)
    for own, theirs in zip(measures.roc_curve(positive, scores), (false, true, thresholds), strict=True):
        np.testing.assert_allclose(own, theirs)
    assert measures.roc_area(positive, scores) == pytest.approx(metrics.auc(false, true))
    precision, recall, _ = metrics.precision_recall_curve(positive, scores)
    own = measures.precision_recall_curve(positive, scores)
    np.testing.assert_allclose(own[0], precision[::-1])
    np.testing.assert_allclose(own[1], recall[::-1])
    assert measures.average_precision(positive, scores) == pytest.approx(
        metrics.average_precision_score(positive, scores)
    )


@SEEDS
def test_bins_of_confidences_are_equal(seed):
    truth, probabilities = scored(seed, count=2)
    bins = measures.reliability(probabilities[:, 1], truth == 1)
    hits, confidence = calibration_curve(truth == 1, probabilities[:, 1], n_bins=10)
    there = bins.counts > 0
    np.testing.assert_allclose(bins.hits[there], hits)
    np.testing.assert_allclose(bins.confidence[there], confidence)
    theirs = metrics.brier_score_loss(truth, probabilities[:, 1], labels=[0, 1])
    assert measures.brier_score(truth, probabilities) == pytest.approx(theirs)


@SEEDS
def test_scores_of_probabilities_of_several_classes_are_equal(seed):
    truth, probabilities = scored(seed)
    theirs = metrics.brier_score_loss(truth, probabilities, labels=[0, 1, 2])
    assert measures.brier_score(truth, probabilities) == pytest.approx(theirs)
    theirs = metrics.log_loss(truth, probabilities, labels=[0, 1, 2])
    assert measures.log_losses(truth, probabilities).mean() == pytest.approx(theirs)


@SEEDS
def test_errors_of_numbers_are_equal(seed):
    key = np.random.default_rng(seed)
    truth = key.normal(0, 3, (40, 2))
    predicted = truth + key.normal(0, 1, (40, 2))
    scores = measures.regression_scores(truth, predicted)
    options = {"multioutput": "raw_values"}
    theirs = [f(truth, predicted, **options) for f in (metrics.mean_absolute_error, metrics.root_mean_squared_error)]
    np.testing.assert_allclose([*scores.values()], [*theirs, metrics.r2_score(truth, predicted, **options)])


def test_importance_of_columns_is_alike():
    key = np.random.default_rng(0)
    x = key.normal(0, [1, 2, 3], (5000, 3))
    y = x @ [1.0, -2.0, 0.0] + key.normal(0, 0.1, 5000)
    model = LinearRegression().fit(x, y)
    theirs = permutation_importance(model, x, y, scoring="neg_mean_squared_error", n_repeats=10, random_state=0)

    def score(values: np.ndarray) -> float:
        return float(((model.predict(values) - y) ** 2).mean())

    scores = [measures.permutation_scores(x, [i], score, 10, np.random.default_rng(1)) for i in range(3)]
    own = [each.mean() - score(x) for each in scores]
    np.testing.assert_allclose(own, theirs.importances_mean, rtol=0.03, atol=1e-4)
