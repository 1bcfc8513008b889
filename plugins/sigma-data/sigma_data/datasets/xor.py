"""Exclusive or, the smallest task that one layer cannot solve."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Loaded, Splits
from sigma_data.datasets.table import features, read_shipped_table


@define(eq=False, kw_only=True)
class Xor(Splits):
    """The four samples of exclusive or: ``inputs`` (2,), ``targets`` 0 or 1.

    Training and validation are the same four samples.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return ("training", "validation")

    def load(self) -> Loaded:
        """Return the four cases twice."""
        columns = read_shipped_table("xor.csv")
        cases = Arrays(inputs=features(columns), targets=columns["target"].astype(np.int32))
        return dict.fromkeys(self.names, cases), (0, 1)
