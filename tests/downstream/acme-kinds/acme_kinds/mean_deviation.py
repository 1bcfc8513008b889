"""Mean absolute deviation from the targets."""

import numpy as np
from attrs import frozen

from sigma_kernel import Metric, Node
from sigma_kernel import functions as f


@frozen
class MeanDeviation(Metric):
    """Mean absolute deviation from the targets."""

    better = "lower"

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the sum over rows of the mean deviation of a row."""
        away = f.abs(prediction - targets)
        return f.sum(f.mean(f.reshape(away, (away.shape[0], -1)), axis=1))

    def value(self, totals: np.ndarray, rows: int) -> float:
        """Return the mean over rows."""
        return float(totals) / rows
