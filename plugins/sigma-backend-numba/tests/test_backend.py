from __future__ import annotations

from sigma_backend_numba import NumbaBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite


class TestNumbaBackend(BackendSuite):
    def make(self) -> Backend:
        return NumbaBackend()
