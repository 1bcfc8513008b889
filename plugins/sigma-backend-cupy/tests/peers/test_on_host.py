"""The conformance suite, on the processor: the text of the kernels, their plan and the bursts; all but a GPU."""

from __future__ import annotations

from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite

from .host import HostBackend


class TestOnHost(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return HostBackend()


class TestInReverse(BackendSuite):
    """The threads of a block in reverse order: a result that changes depends on what another thread has done."""

    precisions = ("float32",)

    def make(self) -> Backend:
        return HostBackend(reverse=True)
