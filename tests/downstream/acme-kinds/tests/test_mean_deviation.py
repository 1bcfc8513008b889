import numpy as np

from sigma_kernel import Metric
from sigma_testing import MetricSuite
from acme_kinds.mean_deviation import MeanDeviation


class TestMeanDeviation(MetricSuite):
    def make(self) -> Metric:
        return MeanDeviation()

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(0)
        return draw.normal(size=(9, 2)).astype(np.float32), draw.normal(size=(9, 2)).astype(np.float32)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> float:
        return float(np.mean(np.abs(prediction.astype(float) - targets)))
