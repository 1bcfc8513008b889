"""Take the logarithm of numbers of either sign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_data.preprocessors.standardise import as_floating, floating
from sigma_kernel import Preprocessor, functions as f
from sigma_kernel.graph import Node
from sigma_kernel.settings import gt


def signed_log(x: Any, unit: float = 1.0) -> Any:
    """Return sign(x) log(1 + |x| / unit) of an array or a node of float64."""
    return f.sign(x) * f.log1p(f.abs(x) / unit)


@frozen
class Log(Preprocessor):
    """Replace x by sign(x) log(1 + abs(x) / unit): a logarithm of large numbers, linear near 0.

    Webber, A bi-symmetric log transformation for wide-range data, Measurement Science and Technology 24 (2), 2012.

    Args:
        unit: Size of the numbers around which the function passes from linear to logarithmic.
        section: Section of the data to transform.
    """

    unit: float = field(default=1.0, validator=gt(0))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return nothing."""
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the logarithms: float64, or the values' own float type."""
        return floating(signed_log(values.astype(np.float64), self.unit), like=values)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the logarithms as a node."""
        return as_floating(signed_log(f.cast(values, "float64"), self.unit), like=values)

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the numbers that have these logarithms."""
        numbers: Node = f.sign(values) * f.expm1(f.abs(values)) * self.unit
        return numbers
