"""Shuffled minibatches, in a new order each epoch."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from sigma_data.shuffling import permute_rows
from sigma_kernel import Iterator


@frozen
class Minibatch(Iterator):
    """Shuffle the rows in every epoch; the order is a function of the run's seed, the epoch and the block."""

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)``."""
        return permute_rows(seed, block, rows, epoch)
