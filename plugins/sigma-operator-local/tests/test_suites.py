from __future__ import annotations

from sigma_kernel import Merger
from sigma_operator_local import Largest, MeanOfShards, MergerRules, Sum, Weighted
from sigma_testing import MergerSuite


class TestSum(MergerSuite):
    def make(self) -> Merger:
        return Sum()


class TestMean(MergerSuite):
    def make(self) -> Merger:
        return MeanOfShards()


class TestWeighted(MergerSuite):
    def make(self) -> Merger:
        return Weighted([3.0, 1.0])


class TestLargest(MergerSuite):
    def make(self) -> Merger:
        return Largest()


class TestSeveral(MergerSuite):
    def make(self) -> Merger:
        return MergerRules({"*.bias": Sum(), "dense.*": MeanOfShards()})
