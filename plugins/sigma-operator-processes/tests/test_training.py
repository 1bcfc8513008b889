from __future__ import annotations

from sigma_kernel.contracts import GroupOperator
from sigma_operator_processes import ProcessesOperator
from sigma_testing import GroupTrainingSuite


class TestTraining(GroupTrainingSuite):
    backend = "numpy"

    def make(self) -> GroupOperator:
        return ProcessesOperator()
