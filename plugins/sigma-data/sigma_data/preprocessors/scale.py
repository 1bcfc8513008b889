"""Multiply by a factor and add an offset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import field, frozen

from sigma_data.preprocessors.standardise import as_floating, floating
from sigma_kernel import Preprocessor, functions as f
from sigma_kernel.graph import Node


@frozen
class Scale(Preprocessor):
    """Multiply values by ``factor``, then add ``offset``.

    Args:
        factor: Factor on every value.
        offset: Number added to every value after that.
        section: Section of the data to transform.
    """

    factor: float = 1.0
    offset: float = 0.0
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the scaled values: float64, or their own float type."""
        return floating(np.multiply(values, self.factor, dtype=np.float64) + self.offset, like=values)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the scaled values as a node."""
        return as_floating(f.cast(values, "float64") * self.factor + self.offset, like=values)

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node | None:
        """Return the values before they were scaled; None if the factor is 0."""
        return (values - self.offset) / self.factor if self.factor else None
