from __future__ import annotations

import pytest

from sigma_kernel.contracts import GroupOperator
from sigma_operator_ray import RayOperator
from sigma_testing import TransportSuite

pytestmark = pytest.mark.long


class TestRay(TransportSuite):
    @pytest.fixture(autouse=True)
    def _connect(self, address: str) -> None:
        self.address = address

    def make(self) -> GroupOperator:
        return RayOperator(address=self.address, cpus=0.5)
