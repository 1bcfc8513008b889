"""Random permutations of rows, drawn from a seed."""

from __future__ import annotations

import numpy as np

from sigma_kernel.graph import permutation

SPLIT, SHUFFLE = 0xFFFF_FFFF, 0xFFFF_FFFE  # streams; minibatches have those of their blocks, 0, 1, ...
BALANCE = 0x8000_0000  # stream of the first class; those of further ones follow


def permute_rows(seed: int, stream: int, rows: int, epoch: int = 0) -> np.ndarray:
    """Return a permutation of ``range(rows)``, int64, determined by the arguments."""
    return permutation(seed, stream, epoch, rows)
