"""Map features to a normal or a uniform distribution by their quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
from attrs import field, frozen

from sigma_data.interpolation import interpolate, quantile_knots
from sigma_data.preprocessors.standardise import as_floating, floating
from sigma_data.sampling import sample_rows
from sigma_kernel import Preprocessor, functions as f
from sigma_kernel.graph import Node
from sigma_kernel.settings import ge, in_


@frozen
class QuantileTransform(Preprocessor):
    """Map each feature to a normal or a uniform distribution, by its quantiles in the training split.

    A quantile becomes the number below which the same share of the distribution is; between two quantiles, the
    function is linear.  Values outside the range of the training split become what its ends become.  The
    quantiles are exact for up to a million rows of 16 features; of more, a random sample is read.

    Args:
        target: Distribution of the result: ``normal`` with mean 0 and deviation 1, or ``uniform`` from 0 to 1.
        quantiles: Number of quantiles, at most one for each row.
        section: Section of the data to transform.
    """

    target: Literal["normal", "uniform"] = field(default="normal", validator=in_(("normal", "uniform")))
    quantiles: int = field(default=1000, validator=ge(2))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the quantiles as ``knots`` and their ``scores``, of shape (*sample, knots)."""
        knots, scores = quantile_knots(sample_rows(blocks), self.quantiles, self.target == "normal")
        return {"knots": knots, "scores": scores}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the scores of the values: float64, or their own float type."""
        return floating(interpolate(values.astype(np.float64), state["knots"], state["scores"]), like=values)

    def graph(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the scores as a node."""
        return as_floating(interpolate(f.cast(values, "float64"), state["knots"], state["scores"]), like=values)

    def inverse(self, values: Node, state: Mapping[str, np.ndarray]) -> Node:
        """Return the values that have these scores, in the range of the training split."""
        inverse: Node = interpolate(values, state["scores"], state["knots"])
        return inverse
