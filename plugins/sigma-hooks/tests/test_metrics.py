"""Metrics, against values counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_hooks import AccuracyMetric, ThresholdAccuracyMetric
from sigma_kernel.errors import SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace

SCORES = np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.4, 0.4, 0.2]], np.float32)
LABELS = np.array([1, 1, 2, 1], np.int32)


def _counted(metric: AccuracyMetric | ThresholdAccuracyMetric, scores: np.ndarray, targets: np.ndarray) -> float:
    specs = [Spec(x.shape, str(x.dtype)) for x in (scores, targets)]
    (total,) = interpret(trace(metric.totals, *specs), numpy_namespace())(scores, targets)
    return metric.value(np.asarray(total), len(scores))


def test_the_earliest_of_equal_best_scores_is_kept() -> None:
    assert _counted(AccuracyMetric(), SCORES, LABELS) == 0.5


@pytest.mark.parametrize(("top", "share"), [(1, 0.5), (2, 1.0), (3, 1.0)])
def test_top_k_accuracy_counts_the_k_best_scores(top: int, share: float) -> None:
    assert _counted(AccuracyMetric(top), SCORES, LABELS) == share


def test_equal_scores_predict_the_first_class() -> None:
    labels = np.array([0, 1, 2, 0, 1, 2], np.int32)
    for top in (1, 2, 3):
        assert _counted(AccuracyMetric(top), np.ones((6, 3), np.float32), labels) == pytest.approx(top / 3)


def test_nan_scores_are_never_correct() -> None:
    assert _counted(AccuracyMetric(), np.full((4, 3), np.nan, np.float32), LABELS) == 0.0


def test_a_probability_that_is_not_a_number_is_never_right() -> None:
    targets = np.array([0.0, 1.0, 0.0, 0.0], np.float32)
    found = np.array([np.nan, np.nan, 0.1, 0.9], np.float32)
    assert _counted(AccuracyMetric(), found, targets) == 0.25
    for metric in (AccuracyMetric(), ThresholdAccuracyMetric()):
        assert _counted(metric, np.full((4, 1), np.nan, np.float32), targets[:, None]) == 0.0


def test_one_hot_targets_give_the_same_result() -> None:
    assert _counted(AccuracyMetric(), SCORES, np.eye(3, dtype=np.float32)[LABELS]) == 0.5


def test_each_class_with_the_greatest_share_is_right() -> None:
    shares = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.4, 0.3, 0.3], [1 / 3, 1 / 3, 1 / 3]], np.float32)
    assert _counted(AccuracyMetric(), SCORES, shares) == 0.5  # the second class, and any
    assert _counted(AccuracyMetric(2), SCORES, shares) == 1.0
    assert _counted(AccuracyMetric(), np.full((4, 3), np.nan, np.float32), shares) == 0.0
    assert _counted(AccuracyMetric(), np.full((4, 3), -np.inf, np.float32), shares) == 0.75  # the first class of all


@pytest.mark.parametrize("shape", [(4, 1), (4,)])
def test_a_single_probability_is_correct_on_the_right_side_of_one_half(shape: tuple[int, ...]) -> None:
    found = np.array([0.9, 0.2, 0.6, 0.5], np.float32).reshape(shape)
    assert _counted(AccuracyMetric(), found, np.array([1.0, 0.0, 0.0, 1.0], np.float32).reshape(shape)) == 0.5


def test_scores_with_too_many_axes_are_refused() -> None:
    with pytest.raises(SigmaNetworkError, match=r"\(4, 3, 2\)"):
        _counted(AccuracyMetric(), np.ones((4, 3, 2), np.float32), LABELS)


def test_totals_of_two_batches_merge_to_those_of_their_union() -> None:
    metric = AccuracyMetric()
    assert metric.value(metric.merge(np.float32([3, 6]), np.float32([2, 4])), 10) == 0.5


@pytest.mark.parametrize("sides", [(2,), (1, 2), (2, 1, 1)])
def test_sequences_and_images_have_a_class_in_each_place(sides: tuple[int, ...]) -> None:
    scores = np.stack([SCORES, SCORES[::-1]], 1).reshape(4, *sides, 3)
    labels = np.stack([LABELS, [1, 1, 1, 0]], 1).reshape(4, *sides).astype(np.int32)
    right = (scores.argmax(-1) == labels).mean()
    assert right not in (0.0, 0.5, 1.0)
    for targets in (labels, labels[..., None], np.eye(3, dtype=np.float32)[labels]):
        assert _counted(AccuracyMetric(), scores, targets) == right


def test_ignored_labels_do_not_count() -> None:
    labels = np.array([[1, -1], [-1, -1], [2, 0], [1, 0]], np.int32)
    scores = np.stack([SCORES, SCORES[::-1]], 1)
    assert _counted(AccuracyMetric(ignore_index=-1), scores, labels) == pytest.approx(3 / 5)
    assert np.isnan(_counted(AccuracyMetric(ignore_index=1), SCORES, np.ones(4, np.int32)))
    with pytest.raises(SigmaDataError, match="ignore_index"):
        _counted(AccuracyMetric(), scores, labels)
