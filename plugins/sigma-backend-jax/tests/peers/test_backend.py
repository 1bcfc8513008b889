from __future__ import annotations

from sigma_backend_jax import JaxBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite


class TestJaxBackend(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return JaxBackend()
