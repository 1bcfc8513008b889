"""The conformance suite on a GPU, where there is one."""

from __future__ import annotations

import pytest

from sigma_backend_cupy import CupyBackend
from sigma_kernel.contracts import Backend
from sigma_kernel.errors import SigmaConfigError
from sigma_testing import BackendSuite

try:
    CupyBackend()
except SigmaConfigError as error:
    pytest.skip(f"NO GPU: nothing of this backend was tested on a device. {error}", allow_module_level=True)


class TestOnAGpu(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return CupyBackend()
