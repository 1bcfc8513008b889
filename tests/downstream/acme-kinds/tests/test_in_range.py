from sigma_kernel import Criterion
from sigma_testing import CriterionSuite
from acme_kinds.in_range import InRange


class TestInRange(CriterionSuite):
    def make(self) -> Criterion:
        return InRange("validation.loss", high=0.5)

    def rows(self) -> list[dict[str, float]]:
        return [{"validation.loss": value} for value in (0.7, 0.5, 0.2)]

    def expected(self) -> list[bool]:
        return [False, True, True]
