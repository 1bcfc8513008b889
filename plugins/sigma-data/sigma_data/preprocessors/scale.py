"""Multiply and add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import field, frozen

from sigma_data.preprocessors.standardise import floating
from sigma_kernel import Preprocessor


@frozen
class Scale(Preprocessor):
    """Multiply values by ``factor``, then add ``offset``."""

    factor: float = 1.0
    offset: float = 0.0
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the changed values: float32, or the float type that they have."""
        return floating(np.multiply(values, self.factor, dtype=np.float64) + self.offset, like=values)
