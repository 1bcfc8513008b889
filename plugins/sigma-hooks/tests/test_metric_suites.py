"""Every metric passes the kernel's suite; what is expected is computed with NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from sigma_hooks import (
    AccuracyMetric,
    ConfusionMatrixMetric,
    F1Metric,
    HammingLossMetric,
    LabelF1Metric,
    MeanAbsoluteErrorMetric,
    PrecisionMetric,
    RecallMetric,
    RootMeanSquareErrorMetric,
    RSquaredMetric,
    SubsetAccuracyMetric,
    ThresholdAccuracyMetric,
)
from sigma_kernel import Metric
from sigma_testing import MetricSuite

CLASSES = 3


class _OfClasses(MetricSuite):
    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(1)
        labels = np.array([0, 1, 2, 2, 1, 0, 1, 2, 0, 1], np.int32)
        return draw.dirichlet(np.ones(CLASSES), 10).astype(np.float32), labels

    def counts(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the confusion matrix: true classes by predicted classes."""
        found = np.zeros((CLASSES, CLASSES))
        np.add.at(found, (labels, scores.argmax(axis=1)), 1)
        return found


class TestAccuracy(_OfClasses):
    def make(self) -> Metric:
        return AccuracyMetric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean(prediction.argmax(axis=1) == targets)


class TestTopTwo(_OfClasses):
    def make(self) -> Metric:
        return AccuracyMetric(2)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        best = np.argsort(-prediction, axis=1)[:, :2]
        return np.mean((best == targets[:, None]).any(axis=1))


class TestConfusionMatrix(_OfClasses):
    def make(self) -> Metric:
        return ConfusionMatrixMetric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return self.counts(prediction, targets)


class TestPrecision(_OfClasses):
    def make(self) -> Metric:
        return PrecisionMetric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        counts = self.counts(prediction, targets)
        return np.mean(np.diag(counts) / counts.sum(axis=0))


class TestRecall(_OfClasses):
    def make(self) -> Metric:
        return RecallMetric(average="each")

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        counts = self.counts(prediction, targets)
        return np.diag(counts) / counts.sum(axis=1)


class TestF1(_OfClasses):
    def make(self) -> Metric:
        return F1Metric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        counts = self.counts(prediction, targets)
        return np.mean(2 * np.diag(counts) / (counts.sum(axis=0) + counts.sum(axis=1)))


class TestThresholdAccuracy(MetricSuite):
    def make(self) -> Metric:
        return ThresholdAccuracyMetric(threshold=0.3)

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(1)
        return draw.random((9, 1)).astype(np.float32), draw.integers(2, size=(9, 1)).astype(np.float32)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean((prediction > 0.3) == targets)


class _OfLabels(MetricSuite):
    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(1)
        return draw.random((9, 3)).astype(np.float32), draw.integers(2, size=(9, 3)).astype(np.float32)


class TestHammingLoss(_OfLabels):
    def make(self) -> Metric:
        return HammingLossMetric(threshold=0.3)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean((prediction > 0.3) != targets)


class TestSubsetAccuracy(_OfLabels):
    def make(self) -> Metric:
        return SubsetAccuracyMetric(threshold=0.4)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean(((prediction > 0.4) == targets).all(axis=1))


class TestLabelF1(_OfLabels):
    def make(self) -> Metric:
        return LabelF1Metric("each")

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        said, true = prediction > 0.5, targets > 0.5
        return 2 * (said & true).sum(axis=0) / (said.sum(axis=0) + true.sum(axis=0))


class _OfNumbers(MetricSuite):
    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(1)
        targets = draw.normal(100.0, 5.0, size=(11, 2)).astype(np.float32)
        return (targets + draw.normal(size=targets.shape)).astype(np.float32), targets


class TestMeanAbsoluteError(_OfNumbers):
    def make(self) -> Metric:
        return MeanAbsoluteErrorMetric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.mean(np.abs(prediction.astype(float) - targets))


class TestRootMeanSquareError(_OfNumbers):
    def make(self) -> Metric:
        return RootMeanSquareErrorMetric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return np.sqrt(np.mean((prediction.astype(float) - targets) ** 2))


class TestRSquared(_OfNumbers):
    def make(self) -> Metric:
        return RSquaredMetric()

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        away = targets.astype(float) - targets.astype(float).mean(axis=0)
        return np.mean(1 - ((prediction.astype(float) - targets) ** 2).sum(axis=0) / (away**2).sum(axis=0))
