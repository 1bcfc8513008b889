"""Mergers: how the gradients of two shards become one."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Merger


@frozen
class Sum(Merger):
    """Sum gradients: weighted means over shards add up to the mean over the batch."""

    def merge(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the sum, which is not finite if the gradients of a shard have overflowed."""
        with np.errstate(invalid="ignore", over="ignore"):
            total: np.ndarray = a + b
        return total
