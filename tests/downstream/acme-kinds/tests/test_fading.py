from sigma_kernel import Schedule
from sigma_testing import ScheduleSuite
from acme_kinds.fading import Fading


class TestFading(ScheduleSuite):
    def make(self) -> Schedule:
        return Fading()
