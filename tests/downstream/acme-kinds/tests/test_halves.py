from sigma_kernel import Dataset
from sigma_testing import DatasetSuite
from acme_kinds.halves import Halves


class TestHalves(DatasetSuite):
    def make(self) -> Dataset:
        return Halves(size=7)
