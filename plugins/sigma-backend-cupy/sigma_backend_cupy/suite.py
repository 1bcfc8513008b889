"""The conformance suite of backends on a GPU, for pytest: ``pytest --pyargs sigma_backend_cupy.suite``."""

from __future__ import annotations

from sigma_backend_cupy.backend import CupyBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite


class TestOnAGpu(BackendSuite):
    """All that a backend must do."""

    def make(self) -> Backend:
        """Return the backend on the first GPU."""
        return CupyBackend()
