"""Points in two dimensions, above and below a line."""

from collections.abc import Mapping

import numpy as np
from attrs import field, frozen

from sigma_kernel import Dataset, Spec
from sigma_kernel.settings import ge


@frozen
class Halves(Dataset):
    """Points in two dimensions, above and below a line.

    Args:
        size: Number of rows.
        seed: Seed of the points.
    """

    size: int = field(default=100, validator=ge(1))
    seed: int = 0

    @property
    def sections(self) -> Mapping[str, Spec]:
        """Return the shape and dtype of one sample."""
        return {"inputs": Spec((2,), "float32"), "targets": Spec((), "int32")}

    @property
    def blocks(self) -> int:
        """Return 1: all rows are one block."""
        return 1

    def rows(self, block: int) -> int:
        """Return the number of rows."""
        return self.size

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        """Return the points, and for each whether it is above the line."""
        points = np.random.default_rng(self.seed).normal(size=(self.size, 2)).astype(np.float32)
        return {"inputs": points, "targets": (points[:, 0] < points[:, 1]).astype(np.int32)}
