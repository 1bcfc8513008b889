from sigma_kernel import Initialiser
from sigma_testing import InitialiserSuite
from acme_kinds.filled import Filled


class TestFilled(InitialiserSuite):
    def make(self) -> Initialiser:
        return Filled()
