"""The conformance suite on a GPU, with recorded steps and op by op, where there is one."""

from __future__ import annotations

import pytest
import torch

from sigma_backend_torch import TorchBackend
from sigma_kernel.contracts import Backend
from sigma_testing import BackendSuite

if not torch.cuda.is_available():
    pytest.skip("NO GPU: nothing of this backend was tested on CUDA", allow_module_level=True)


class TestRecorded(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return TorchBackend("cuda")


class TestOpByOp(BackendSuite):
    keeps_state = True

    def make(self) -> Backend:
        return TorchBackend("cuda", graphs=False)
