from __future__ import annotations

from sigma_kernel import Merger
from sigma_operator_local import Sum
from sigma_testing import MergerSuite


class TestSum(MergerSuite):
    def make(self) -> Merger:
        return Sum()
