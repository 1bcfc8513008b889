"""The conformance suites, in a job of MPI: ``mpiexec --with-ft ulfm -n 12 python test_suites.py [ARGUMENTS]``.

Rank 0 runs pytest. Other tests start such jobs; outside of one, this file is left out.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from sigma_kernel.contracts import GroupOperator
from sigma_operator_mpi import MpiOperator
from sigma_testing import GroupTrainingSuite, TransportSuite
from sigma_testing.transports.driving import ToyRun

MPIEXEC = ("mpiexec", "--with-ft", "ulfm", "--oversubscribe")


class TestTraining(GroupTrainingSuite):
    backend = "numpy"

    def make(self) -> GroupOperator:
        return MpiOperator()


class TestTransport(TransportSuite):
    def make(self) -> GroupOperator:
        return MpiOperator()

    def list_working(self, run: ToyRun, workers: Sequence[int], seconds: float) -> Sequence[int]:
        """Wait until the ranks are free: they outlive their workers."""
        deadline = time.monotonic() + seconds
        while (rest := [w for w in workers if w in run.transport.addresses]) and time.monotonic() < deadline:
            time.sleep(0.01)
        return rest

    def command(self, code: str) -> list[str]:
        """Start a job of its own: the variables of this one are not for it."""
        ours = ("OMPI_COMM", "OMPI_MCA", "PMIX", "PRTE", "SIGMA_MPI")
        unset = [f"--unset={name}" for name in os.environ if name.startswith(ours)]
        return ["env", *unset, *MPIEXEC, "-n", "3", sys.executable, "-c", code]

    def kill_operator(self, process: subprocess.Popen[bytes]) -> None:
        """Kill rank 0; mpiexec ends after all ranks."""
        os.kill(find_ranks(process.pid)[0], signal.SIGKILL)


def find_ranks(mpiexec: int) -> dict[int, int]:
    """Return the processes of a job, by rank."""
    children = Path(f"/proc/{mpiexec}/task/{mpiexec}/children").read_text().split()
    variables = {int(child): Path(f"/proc/{child}/environ").read_bytes().split(b"\0") for child in children}
    name = b"OMPI_COMM_WORLD_RANK="
    return {
        int(v.removeprefix(name)): child for child, values in variables.items() for v in values if v.startswith(name)
    }


if __name__ == "__main__":
    MpiOperator()  # here ranks other than 0 begin to serve
    sys.exit(pytest.main([__file__, "-p", "no:cacheprovider", *sys.argv[1:]]))
