"""Scores of several labels agree with scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, hamming_loss

from sigma_hooks import HammingLossMetric, LabelF1Metric, SubsetAccuracyMetric
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace


def measured(metric, said, true, parts=3):
    """Return a metric of rows, which come in several batches."""
    totals = []
    for batch in zip(np.array_split(said, parts), np.array_split(true, parts), strict=True):
        specs = [Spec(x.shape, str(x.dtype)) for x in batch]
        totals.append(np.asarray(interpret(trace(metric.totals, *specs), numpy_namespace())(*batch)[0]))
    return metric.value(metric.merge_all(totals), len(said))


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_labels_that_are_rare_frequent_and_never_there(seed):
    draws = np.random.default_rng(seed)
    true = (draws.random((50, 4)) < [0.1, 0.5, 0.9, 0.0]).astype(np.float32)
    said = np.clip(true * 0.3 + draws.random((50, 4)) * 0.8, 0, 1).astype(np.float32)
    said[:, 3] = 0.2
    hard = said > 0.5
    assert measured(HammingLossMetric(), said, true) == pytest.approx(hamming_loss(true, hard))
    assert measured(SubsetAccuracyMetric(), said, true) == pytest.approx(accuracy_score(true, hard))
    for average in ("macro", "micro"):
        wanted = f1_score(true, hard, average=average, zero_division=0)
        assert measured(LabelF1Metric(average), said, true) == pytest.approx(wanted)
    assert measured(LabelF1Metric("each"), said, true) == pytest.approx(
        f1_score(true, hard, average=None, zero_division=0)
    )
