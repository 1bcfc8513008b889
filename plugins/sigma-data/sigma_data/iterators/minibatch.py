"""Every row once an epoch, in a new order each time."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from sigma_data.shuffling import shuffled
from sigma_kernel import Iterator


@frozen
class Minibatch(Iterator):
    """Form minibatches at random; the order is a function of the run's seed, the epoch and the block."""

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return a permutation of ``range(rows)``."""
        return shuffled(seed, block, rows, epoch)
