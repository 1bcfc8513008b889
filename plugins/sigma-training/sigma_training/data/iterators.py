"""Iterators: the order of rows within each block, shuffled (the default) or as stored."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Iterator
from sigma_kernel.graph.random import permutation


@frozen
class Shuffled(Iterator):
    """Every row once in each epoch, in an order drawn from the seed."""

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return the permutation of one epoch and block."""
        return permutation(seed, block, epoch, rows)


class InOrder(Iterator):
    """The rows in the order in which they are stored."""

    keeps_order: ClassVar[bool] = True

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        """Return the identity."""
        return np.arange(rows)
