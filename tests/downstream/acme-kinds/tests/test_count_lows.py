from sigma_kernel import Hook
from sigma_testing import HookSuite
from acme_kinds.count_lows import CountLows


class TestCountLows(HookSuite):
    def make(self) -> Hook:
        return CountLows()
