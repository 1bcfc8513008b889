"""Base class of metrics whose totals are added in float64."""

from __future__ import annotations

import numpy as np

from sigma_kernel.contracts import Metric


class WideTotals(Metric):
    """A metric whose totals may be large, or its counts many: float32 has 24 bits."""

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the totals of two batches together, in float64."""
        merged: np.ndarray = np.asarray(a, np.float64) + b
        return merged
