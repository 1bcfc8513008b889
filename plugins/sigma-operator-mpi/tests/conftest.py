"""Jobs of MPI on this machine, for the tests of the room."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from sigma_testing.transports.driving import wait_until_ended

RANK = "OMPI_COMM_WORLD_RANK"
IN_JOBS = Path(__file__).with_name("test_suites.py")  # other tests start these
PATIENCE = 200.0  # seconds
MPIEXEC = Path(sys.executable).with_name("mpiexec")
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # as in containers
TEXT = """
format = 1
[run]
name = "small"
seed = 3
backend = "numpy"
[data]
dataset = "digits"
batch_size = 100
[network]
architecture = 'input(8, 8) + flatten() + dense(30, activation="relu") + output(10) + softmax_cross_entropy()'
[trainer]
epochs = {epochs}
operator = {{ type = "mpi"{settings} }}
[trainer.optimiser]
type = "adam"
"""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if item.path == IN_JOBS and RANK not in os.environ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@define(eq=False)
class Jobs:
    """Start commands on ranks, in a folder."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(factory=list)

    def write(self, epochs: int, **settings: Any) -> None:
        """Write a configuration, ``run.toml``."""
        rest = "".join(f", {name} = {value!r}" for name, value in settings.items())
        (self.folder / "run.toml").write_text(TEXT.format(epochs=epochs, settings=rest))

    def start(self, ranks: int, *command: str, tolerant: bool = True, **variables: str) -> subprocess.Popen[str]:
        """Start a command in Python on so many ranks."""
        words = [MPIEXEC, *(("--with-ft", "ulfm") if tolerant else ()), "--oversubscribe", "-n", str(ranks)]
        return self.start_alone(*map(str, words), sys.executable, *command, **variables)

    def start_alone(self, *command: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command."""
        process = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **ROOT, **variables}, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, ranks: int, *command: str, **settings: Any) -> tuple[int, str, str]:
        """Run a command in Python on so many ranks; return the exit code, and what it has printed."""
        job = self.start(ranks, *command, **settings)
        output, errors = job.communicate(timeout=PATIENCE)
        return job.returncode, output, errors

    def read_journal(self) -> str:
        """Return the journal of the only run, as far as it is written."""
        return "".join(path.read_text() for path in self.folder.glob("runs/*/journal.jsonl"))

    def wait_for(self, event: str, times: int = 1) -> None:
        """Wait until the journal has an event so many times."""
        self.until(lambda: len(re.findall(f'"event": ?"{event}"', self.read_journal())) >= times)

    def find_ranks(self, job: subprocess.Popen[str]) -> list[int]:
        """Return the processes of a job, by rank."""
        ranks = dict[int, int]()
        for child in Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split():
            for variable in Path(f"/proc/{child}/environ").read_bytes().decode().split("\0"):
                if variable.startswith(f"{RANK}="):
                    ranks[int(variable.partition("=")[2])] = int(child)
        return [ranks[rank] for rank in sorted(ranks)]

    def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, "waited too long"
            time.sleep(0.01)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    """Jobs in a folder of the test; those that still run are ended."""
    jobs = Jobs(tmp_path)
    yield jobs
    for job in jobs.started:
        if job.poll() is None:
            ranks = jobs.find_ranks(job)
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            wait_until_ended(ranks, 0.0)
        job.communicate()
