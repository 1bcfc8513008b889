from __future__ import annotations

from sigma_backend_torch import TorchBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite


class TestTorchBackend(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return TorchBackend()
