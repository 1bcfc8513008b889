"""Give every feature mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from sigma_kernel import Preprocessor


@frozen
class Standardise(Preprocessor):
    """Subtract each feature's mean and divide by its standard deviation, both those of the training split.

    A feature that is the same in all of it becomes 0.  The deviation is that of the population (divided by n).
    """

    section: str = field(default="inputs", kw_only=True)

    def fit(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return ``mean`` and ``deviation``, float64, of a sample's shape."""
        low, high = values.min(axis=0), values.max(axis=0)
        constant = low == high  # judged by the values: rounding gives the deviation of equal numbers a trace
        mean = np.where(constant, low, values.mean(axis=0, dtype=np.float64))
        deviation = np.where(constant, 1.0, values.std(axis=0, dtype=np.float64))
        return {"mean": np.asarray(mean, np.float64), "deviation": np.asarray(deviation, np.float64)}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the changed values: float32, or the float type that they have."""
        changed = np.subtract(values, state["mean"], dtype=np.float64)
        changed /= state["deviation"]
        return floating(changed, like=values)


def floating(changed: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return changed values as the float type that they had, or as float32 if they were whole numbers."""
    return changed.astype(like.dtype if like.dtype.kind == "f" else np.float32, copy=False)
