from collections.abc import Sequence

import numpy as np

from sigma_kernel.graph import Op
from sigma_testing import OpSuite, Sample
from acme_kinds.squash_op import squash


class TestSquash(OpSuite):
    def make(self) -> Op:
        return squash

    def samples(self) -> Sequence[Sample]:
        return [Sample(squash.name, (np.linspace(-3.0, 3.1, 12).reshape(4, 3),))]

    def expected(self, *operands: np.ndarray, **attrs: object) -> np.ndarray:
        (x,) = operands
        return x / (1.0 + np.abs(x))
