"""Cast values to another dtype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

import numpy as np
from attrs import field, frozen

from sigma_data.arrays import cast_values
from sigma_kernel import Preprocessor, functions as f
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_

NAMES = ("float32", "float64", "int32", "int64", "bool")


@frozen
class Cast(Preprocessor):
    """Cast values to a dtype, floats rounded; SigmaDataError for values that an integer or bool cannot hold.

    Args:
        dtype: Dtype of the result.
        section: Section of the data to transform.
    """

    dtype: Literal["float32", "float64", "int32", "int64", "bool"] = field(default="float32", validator=in_(NAMES))
    section: str = field(default="inputs", kw_only=True)

    casts: ClassVar[bool] = True

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the values in the new dtype."""
        return cast_values(values, self.dtype, f"cast: section {self.section!r}")

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the values in the new dtype, as a node; those that it cannot hold are not refused."""
        return f.cast(values, self.dtype)

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the values as they are: a prediction between two integers stays there."""
        return values
