"""Minibatches in the order of the data, without shuffling."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from sigma_kernel import Iterator


@frozen
class Sequential(Iterator):
    """Keep the order of the data in every epoch."""

    keeps_order: ClassVar[bool] = True

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return ``0, 1, ..., rows - 1``."""
        return np.arange(rows)
