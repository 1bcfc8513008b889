"""Metrics beyond accuracy, against counts by hand, formulas of numpy, and what others publish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_hooks import (
    F1,
    ConfusionMatrix,
    ConfusionMatrixMetric,
    F1Metric,
    MeanAbsoluteError,
    MeanAbsoluteErrorMetric,
    Precision,
    PrecisionMetric,
    Recall,
    RecallMetric,
    RootMeanSquareError,
    RootMeanSquareErrorMetric,
    RSquared,
    RSquaredMetric,
    ThresholdAccuracy,
    ThresholdAccuracyMetric,
)
from sigma_kernel import Environment
from sigma_kernel.contracts import Hook, Metric
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Spec, interpret, numpy_namespace, trace
from sigma_testing import HookSuite, Sweep, small_regression

# The example of scikit-learn's guide: true classes 0 1 2 0 1 2, predicted 0 2 1 0 0 1.
RIGHT = np.array([0, 1, 2, 0, 1, 2], np.int32)
SAID = np.eye(3, dtype=np.float32)[[0, 2, 1, 0, 0, 1]]


class _OfNumbers(HookSuite):
    """Numbers are predicted, not classes."""

    def environment(self, hooks: Mapping[str, Hook]) -> Environment:
        return small_regression(Sweep(), hooks=hooks)


class TestThresholdAccuracy(_OfNumbers):
    def make(self) -> Hook:
        return ThresholdAccuracy(threshold=0.3)


class TestPrecision(HookSuite):
    def make(self) -> Hook:
        return Precision()


class TestRecall(HookSuite):
    def make(self) -> Hook:
        return Recall(average="micro")


class TestF1(HookSuite):
    def make(self) -> Hook:
        return F1(average="each")


class TestConfusionMatrix(HookSuite):
    def make(self) -> Hook:
        return ConfusionMatrix()


class TestMeanAbsoluteError(_OfNumbers):
    def make(self) -> Hook:
        return MeanAbsoluteError()


class TestRootMeanSquareError(_OfNumbers):
    def make(self) -> Hook:
        return RootMeanSquareError()


class TestRSquared(_OfNumbers):
    def make(self) -> Hook:
        return RSquared()


def measured(metric: Metric, prediction: np.ndarray, targets: np.ndarray, *cuts: int) -> Any:
    """Return a metric over batches that are split at the given rows."""
    totals = []
    for found, wanted in zip(np.split(prediction, cuts), np.split(targets, cuts), strict=True):
        specs = [Spec(x.shape, str(x.dtype)) for x in (found, wanted)]
        (total,) = interpret(trace(metric.totals, *specs), numpy_namespace())(found, wanted)
        totals.append(np.asarray(total))
    return metric.value(reduce(metric.merge, totals), len(prediction))


# -- classes -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cuts", [(), (2,), (1, 5)])
@pytest.mark.parametrize(
    ("metric", "average", "value"),
    [  # as in scikit-learn's documentation of each
        (PrecisionMetric, "macro", 2 / 9),
        (PrecisionMetric, "micro", 1 / 3),
        (PrecisionMetric, "each", [2 / 3, 0.0, 0.0]),
        (RecallMetric, "macro", 1 / 3),
        (RecallMetric, "micro", 1 / 3),
        (RecallMetric, "each", [1.0, 0.0, 0.0]),
        (F1Metric, "macro", 4 / 15),
        (F1Metric, "micro", 1 / 3),
        (F1Metric, "each", [0.8, 0.0, 0.0]),
    ],
)
def test_class_scores_equal_those_published_by_scikit_learn(
    metric: Callable[[str], Metric], average: str, value: Any, cuts: tuple[int, ...]
) -> None:
    assert measured(metric(average), SAID, RIGHT, *cuts) == pytest.approx(value)


def test_the_confusion_matrix_has_the_right_classes_as_rows() -> None:
    assert measured(ConfusionMatrixMetric(), SAID, RIGHT, 4) == [[2, 0, 0], [1, 0, 1], [0, 2, 0]]


def test_one_hot_targets_are_counted_like_labels() -> None:
    assert measured(ConfusionMatrixMetric(), SAID, np.eye(3, dtype=np.float32)[RIGHT]) == [
        [2, 0, 0], [1, 0, 1], [0, 2, 0],
    ]  # fmt: skip


def test_a_class_in_neither_predictions_nor_targets_is_left_out_of_the_mean() -> None:
    wider = np.pad(SAID, ((0, 0), (0, 4)))
    assert measured(PrecisionMetric(), wider, RIGHT) == pytest.approx(2 / 9)


@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_a_single_probability_is_that_of_class_1(shape: tuple[int, ...]) -> None:
    found = np.array([0.9, 0.8, 0.2, 0.6, 0.1], np.float32).reshape(shape)
    right = np.array([1, 0, 1, 1, 0], np.float32).reshape(shape)
    assert measured(PrecisionMetric(), found, right) == pytest.approx(2 / 3)
    assert measured(RecallMetric("micro"), found, right) == pytest.approx(2 / 3)
    assert measured(F1Metric("each"), found, right) == pytest.approx([2 / 3])
    assert measured(ConfusionMatrixMetric(), found, right) == [[1, 1], [1, 2]]


def test_nan_scores_predict_no_class() -> None:
    broken = SAID.copy()
    broken[0, 2] = np.nan
    assert measured(ConfusionMatrixMetric(), broken, RIGHT) == [[1, 0, 0], [1, 0, 1], [0, 2, 0]]
    assert measured(RecallMetric("each"), broken, RIGHT) == [0.5, 0.0, 0.0]


def test_a_score_without_predictions_is_zero() -> None:
    assert measured(PrecisionMetric(), np.full((6, 3), np.nan, np.float32), RIGHT) == 0.0


def test_predictions_with_extra_axes_are_refused() -> None:
    with pytest.raises(SigmaNetworkError, match=r"\(6, 3, 2\)"):
        measured(PrecisionMetric(), np.ones((6, 3, 2), np.float32), RIGHT)


@pytest.mark.parametrize("make", [Precision, Recall, F1, PrecisionMetric])
def test_an_unknown_average_is_refused(make: Any) -> None:
    with pytest.raises(SigmaConfigError, match="average"):
        make(average="best")


def test_another_average_is_published_under_another_name() -> None:
    assert Precision(on="test").writes == ["test.loss", "test.precision", "test.cost.*"]
    assert F1(on="test", average="each").writes == ["test.loss", "test.f1_each", "test.cost.*"]


# -- numbers -----------------------------------------------------------------------------------------------------------
@settings(deadline=None)
@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e4]))
def test_regression_metrics_agree_with_their_formulas(rows: int, outputs: int, seed: int, far: float) -> None:
    draw = np.random.default_rng(seed)
    wanted = draw.normal(loc=far, size=(rows, outputs))
    found = wanted + draw.normal(scale=0.5, size=(rows, outputs))
    cut = int(draw.integers(1, rows))
    error = found - wanted
    share = 1 - (error**2).sum(0) / ((wanted - wanted.mean(0)) ** 2).sum(0)
    expected = {
        MeanAbsoluteErrorMetric: np.abs(error).mean(),
        RootMeanSquareErrorMetric: np.sqrt((error**2).mean()),
        RSquaredMetric: share.mean(),
    }
    for metric, value in expected.items():
        for cuts in ((), (cut,)):
            assert measured(metric(), found, wanted, *cuts) == pytest.approx(value, rel=1e-9)


def test_r_squared_of_large_targets_does_not_cancel_in_float32() -> None:
    wanted = (1e4 + np.arange(8, dtype=np.float32) / 4).reshape(8, 1)
    found = wanted + np.float32(0.25)
    spread = 42 / 16  # the squares of -3.5 ... 3.5 sum to 42
    assert measured(RSquaredMetric(), found, wanted, 3, 5) == pytest.approx(1 - 8 / 16 / spread, rel=1e-5)


@pytest.mark.parametrize("far", [0.0, 1e6, -(2.0**20)])
def test_r_squared_of_targets_that_differ_little_is_that_of_exact_fractions(far: float) -> None:
    draw = np.random.default_rng(2)
    wanted = (far + draw.integers(-8, 9, 300) / 8).astype(np.float32)
    found = (wanted + draw.integers(-3, 4, 300) / 8).astype(np.float32)
    x, y = ([Fraction(one) for one in rows.tolist()] for rows in (found, wanted))
    mean = sum(y) / 300
    exact = 1 - sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / sum((b - mean) ** 2 for b in y)
    pairs = found[:, None], wanted[:, None]
    for cuts in ((), (7,), (1, 100, 299)):
        assert measured(RSquaredMetric(), *pairs, *cuts) == pytest.approx(float(exact), rel=1e-14)


def test_r_squared_of_equal_targets_in_float64_is_zero_however_many_there_are() -> None:
    for rows in range(2, 40):
        same = np.full((rows, 1), 0.1)
        assert measured(RSquaredMetric(), same + 1, same) == 0.0


def test_r_squared_of_constant_targets_is_one_only_for_exact_predictions() -> None:
    same = np.full((4, 1), 2.0, np.float32)
    assert measured(RSquaredMetric(), same, same, 2) == 1.0
    assert measured(RSquaredMetric(), same + 1, same, 2) == 0.0


def test_targets_may_lack_a_trailing_axis_of_one() -> None:
    found, wanted = np.array([[1.0], [2.0]], np.float32), np.array([2, 4], np.int32)
    assert measured(MeanAbsoluteErrorMetric(), found, wanted) == 1.5


def test_predictions_and_targets_of_different_shapes_are_refused() -> None:
    with pytest.raises(SigmaNetworkError, match=r"predictions have shape \(2, 3\) and targets \(2,\)"):
        measured(MeanAbsoluteErrorMetric(), np.ones((2, 3), np.float32), np.ones(2, np.float32))


def test_each_output_is_compared_with_the_threshold_separately() -> None:
    found = np.array([[0.9, 0.4], [0.35, 0.1], [np.nan, 0.8]], np.float32)
    right = np.array([[1, 1], [0, 0], [1, 0]], np.float32)
    assert measured(ThresholdAccuracyMetric(), found, right, 1) == pytest.approx(3 / 6)
    assert measured(ThresholdAccuracyMetric(0.3), found, right, 1) == pytest.approx(3 / 6)
    assert measured(ThresholdAccuracyMetric(0.38), found, right, 1) == pytest.approx(4 / 6)


# -- in a run ----------------------------------------------------------------------------------------------------------
def test_scores_are_published_over_a_whole_split(classifier: Callable[..., Environment]) -> None:
    hooks = {"score": Precision(metrics={"recall_each": RecallMetric("each")}), "matrix": ConfusionMatrix()}
    with classifier(hooks=hooks, batch_size=7) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=3)
        block = trainer.data["validation"]
        said, right = trainer.predict(block["inputs"]).argmax(1), block["targets"]
        found = {name: sigma.get(f"trainer.validation.{name}") for name in ("precision", "recall_each")}
        matrix = sigma.get("trainer.validation.confusion_matrix")
    assert matrix == [[int(((right == a) & (said == b)).sum()) for b in (0, 1)] for a in (0, 1)]
    columns, rows = np.sum(matrix, axis=0), np.sum(matrix, axis=1)
    assert found["precision"] == pytest.approx(np.mean([matrix[k][k] / columns[k] for k in (0, 1)]))
    assert found["recall_each"] == pytest.approx([matrix[k][k] / rows[k] for k in (0, 1)])
