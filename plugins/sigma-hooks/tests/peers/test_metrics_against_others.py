"""Scores of classes agree with scikit-learn's, of rows and sequences, with labels that do not count."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_hooks import (
    AccuracyMetric,
    AUCMetric,
    ConfusionMatrixMetric,
    F1Metric,
    IntersectionOverUnionMetric,
    PerplexityMetric,
    PrecisionMetric,
    RecallMetric,
)
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace

SCORES = {
    "precision_score": PrecisionMetric,
    "recall_score": RecallMetric,
    "f1_score": F1Metric,
    "jaccard_score": IntersectionOverUnionMetric,
}


def measured(metric, scores, labels, parts=3):
    """Return a metric of rows, which come in several batches."""
    totals = []
    for batch in zip(np.array_split(scores, parts), np.array_split(labels, parts), strict=True):
        specs = [Spec(x.shape, str(x.dtype)) for x in batch]
        totals.append(np.asarray(interpret(trace(metric.totals, *specs), numpy_namespace())(*batch)[0]))
    return metric.value(metric.merge_all(totals), len(scores))


def drawn(seed, places, ignored):
    """Return scores and labels of 30 rows, of which some are ignored, and those that count, each in a row."""
    draw = np.random.default_rng(seed)
    scores = draw.dirichlet(np.ones(4), (30, *places))
    labels = np.where(draw.random((30, *places)) < 0.3, ignored, draw.integers(0, 4, (30, *places)))
    kept = labels != ignored
    return scores, labels, scores[kept], labels[kept]


@pytest.mark.parametrize("ignored", [-100, 2])
@pytest.mark.parametrize("places", [(), (7,), (3, 4)])
def test_scores_of_classes_are_scikit_learns(places, ignored):
    sklearn = pytest.importorskip("sklearn.metrics")
    scores, labels, sure, right = drawn(len(places), places, ignored)
    said = sure.argmax(-1)
    for average in ("macro", "micro", "each"):
        for name, metric in SCORES.items():
            settings = {"average": None if average == "each" else average, "zero_division": 0}
            settings |= {"labels": range(4)} if average == "each" else {}
            wanted = getattr(sklearn, name)(right, said, **settings)
            assert measured(metric(average, ignored), scores, labels) == pytest.approx(wanted, rel=1e-12)
    matrix = sklearn.confusion_matrix(right, said, labels=range(4)).tolist()
    assert measured(ConfusionMatrixMetric(ignored), scores, labels) == matrix
    accuracy = sklearn.accuracy_score(right, said)
    assert measured(AccuracyMetric(ignore_index=ignored), scores, labels) == pytest.approx(accuracy, rel=1e-12)


@pytest.mark.parametrize("places", [(), (7,), (3, 4)])
def test_areas_and_perplexities_are_scikit_learns(places):
    sklearn = pytest.importorskip("sklearn.metrics")
    scores, labels, sure, right = drawn(5, places, -100)
    wanted = sklearn.roc_auc_score(right, sure, multi_class="ovr", average="macro")
    assert measured(AUCMetric(ignore_index=-100), scores, labels) == pytest.approx(wanted, rel=1e-12)
    loss = sklearn.log_loss(right, sure, labels=range(4))
    assert measured(PerplexityMetric(-100), scores, labels) == pytest.approx(np.exp(loss), rel=1e-10)


@pytest.mark.parametrize("shape", [(60,), (60, 1), (12, 5, 1)])
@pytest.mark.parametrize("no", [0, -1])
def test_scores_of_a_single_output_are_scikit_learns(shape, no):
    sklearn = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(7)
    scores, labels = draw.random(shape), np.where(draw.random(shape) < 0.4, 1, no)
    said, right = np.where(scores > 0.5, 1, no).ravel(), labels.ravel()
    for name, metric in SCORES.items():
        wanted = getattr(sklearn, name)(right, said, pos_label=1)
        assert measured(metric(), scores, labels) == pytest.approx(wanted, rel=1e-12)
    assert measured(ConfusionMatrixMetric(), scores, labels) == sklearn.confusion_matrix(right, said).tolist()
    assert measured(AccuracyMetric(), scores, labels) == pytest.approx(sklearn.accuracy_score(right, said))
    assert measured(AUCMetric(), scores, labels) == pytest.approx(sklearn.roc_auc_score(right, scores.ravel()))
