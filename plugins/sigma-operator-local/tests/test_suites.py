from __future__ import annotations

from sigma_kernel import Merger
from sigma_kernel.testing import MergerSuite
from sigma_operator_local import Sum


class TestSum(MergerSuite):
    def make(self) -> Merger:
        return Sum()
