from __future__ import annotations

from sigma_backend_numpy import NumpyBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite


class TestNumpyBackend(BackendSuite):
    def make(self) -> Backend:
        return NumpyBackend()
