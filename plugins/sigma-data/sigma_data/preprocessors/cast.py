"""Change the type of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
from attrs import field, frozen

from sigma_data.arrays import converted
from sigma_kernel import Preprocessor
from sigma_kernel.settings import in_

NAMES = ("float32", "float64", "int32", "int64", "bool")


@frozen
class Cast(Preprocessor):
    """Change the type of values.  One that an integer or a bool cannot hold is a SigmaDataError; floats are rounded."""

    dtype: Literal["float32", "float64", "int32", "int64", "bool"] = field(default="float32", validator=in_(NAMES))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values in the new type."""
        return converted(values, self.dtype, f"cast: section {self.section!r}")
