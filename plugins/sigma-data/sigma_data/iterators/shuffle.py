"""One random order, kept."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.shuffling import SHUFFLE, shuffled
from sigma_kernel import Iterator
from sigma_kernel.settings import ge, lt


@frozen
class Shuffle(Iterator):
    """Put the rows into an order drawn from a ``seed`` of its own, the same in every epoch and in every run.

    It is the order of rows that is shuffled, not the data: whatever reads the data elsewhere finds it as it was, and
    predictions come in the order of their samples.
    """

    seed: int = field(default=0, validator=[ge(0), lt(2**64)])

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)``, whatever the run's seed and the epoch."""
        return shuffled(self.seed, SHUFFLE, rows, block)
