"""Minibatches shuffled once, in the same order each epoch."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.shuffling import SHUFFLE, permute_rows
from sigma_kernel import Iterator
from sigma_kernel.settings import ge, lt


@frozen
class Shuffle(Iterator):
    """Shuffle the rows once, by a ``seed`` of its own: the order is the same in every epoch and every run.

    The order of rows is shuffled, not the data: other readers see the data unchanged, and predictions come in the order
    of their samples.

    Args:
        seed: Seed of the order.
    """

    seed: int = field(default=0, validator=[ge(0), lt(2**64)])

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)``, whatever the run's seed and the epoch."""
        return permute_rows(self.seed, SHUFFLE, rows, block)
