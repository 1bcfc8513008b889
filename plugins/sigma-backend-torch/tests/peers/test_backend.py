from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from sigma_backend_torch import TorchBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite


class TestTorchBackend(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return TorchBackend()

    def results(self) -> Mapping[str, Any]:
        """Compute on one thread, in the second process as well: products have other bits on another number of them."""
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return super().results()
        finally:
            torch.set_num_threads(before)
