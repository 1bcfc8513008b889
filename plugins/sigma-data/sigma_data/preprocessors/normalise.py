"""Rescale values from one range to another (min-max normalisation)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from attrs import Attribute, field, frozen

from sigma_data.preprocessors.standardise import as_floating, floating, wider
from sigma_kernel import Preprocessor, SigmaDataError, functions as f
from sigma_kernel.graph import Node


def _range(owner: Any, attribute: Attribute[Any], value: tuple[float, float] | None) -> None:
    if value is not None and not value[0] < value[1]:
        raise SigmaDataError(f"{attribute.name}: {value} is not a range. The first number must be the smaller one.")


@frozen
class Normalise(Preprocessor):
    """Map the range ``source`` linearly to the range ``target``.

    A feature that is constant in the training split maps to the lower end of the target. Values outside the source map
    outside the target.

    Args:
        source: Range of the values; by default that of each feature in the training split.
        target: Range of the result.
        section: Section of the data to transform.
    """

    source: tuple[float, float] | None = field(default=None, validator=_range)
    target: tuple[float, float] = field(default=(0.0, 1.0), validator=_range)
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the bounds of the source, ``low`` and ``high``, of a sample's shape; nothing if they are set."""
        if self.source is not None:
            return {}
        low, high = reduce(wider, ((values.min(axis=0), values.max(axis=0)) for values in blocks))
        return {"low": low.astype(np.float64), "high": high.astype(np.float64)}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the mapped values: float64, or their own float type."""
        (low, width), (begin, end) = self._span(state), self.target
        return floating((values - low) / width * (end - begin) + begin, like=values)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the mapped values as a node."""
        (low, width), (begin, end) = self._span(state), self.target
        return as_floating((f.cast(values, "float64") - low) / width * (end - begin) + begin, like=values)

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the values in the range of the source."""
        (low, width), (begin, end) = self._span(state), self.target
        return (values - begin) / (end - begin) * width + low

    def _span(self, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower end of the source and its width, 1 if that is 0."""
        low, high = self.source or (state["low"], state["high"])
        width = np.where(np.equal(low, high), 1.0, np.subtract(high, low, dtype=np.float64))
        return np.asarray(low, np.float64), width
