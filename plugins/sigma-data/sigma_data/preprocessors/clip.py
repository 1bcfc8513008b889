"""Limit values to a range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import field, frozen

from sigma_data.preprocessors.standardise import as_floating, floating
from sigma_data.sampling import sample_rows
from sigma_kernel import Preprocessor, functions as f
from sigma_kernel.graph import Node
from sigma_kernel.settings import and_, ge, lt, must, optional

BOUNDS = optional(must(lambda value: value[0] < value[1], "two numbers, the lower one first"))
SHARE = and_(ge(0), lt(0.5))


def tails(sample: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the quantiles of each feature at the levels ``share`` and 1 - ``share``."""
    low, high = np.quantile(sample.astype(np.float64), [share, 1 - share], axis=0)
    return np.asarray(low), np.asarray(high)


@frozen
class RangeClip(Preprocessor):
    """Replace what is below a range by its lower end, and what is above it by its upper end.

    The values before it are lost, so that it has no inverse: predictions of a section that is clipped are in the units
    of the network.

    Args:
        bounds: Range of the result; by default, that between two quantiles of each feature in the training split.
        share: Share of the rows on either side of that range, such as 0.01. The quantiles are exact for up to a
            million rows of 16 features; of more, a random sample is read.
        section: Section of the data to transform.
    """

    bounds: tuple[float, float] | None = field(default=None, validator=BOUNDS)
    share: float = field(default=0.0, validator=SHARE)
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the range, ``low`` and ``high``, float64, of a sample's shape; nothing if it is set."""
        if self.bounds is not None:
            return {}
        low, high = tails(sample_rows(blocks), self.share)
        return {"low": low, "high": high}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the limited values: float64, or their own float type."""
        return floating(f.clip(values.astype(np.float64), *self._range(state)), like=values)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the limited values as a node."""
        return as_floating(f.clip(f.cast(values, "float64"), *self._range(state)), like=values)

    def _range(self, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        low, high = self.bounds or (state["low"], state["high"])
        return np.asarray(low, np.float64), np.asarray(high, np.float64)
