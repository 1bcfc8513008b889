"""Train by processes, of which some are killed or suspended at random moments; compare with a run without workers.

::

    python tests/reliability/workers.py 100 [FIRST]
    unshare --map-root-user --mount sh -c 'mount -t tmpfs -o size=64k none DIR && head -c 60k /dev/zero > DIR/full;
        python tests/reliability/workers.py 20 0 DIR'

With a folder, workers have their caches and temporary files there, and compile what they train.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections import Counter
from contextlib import suppress
from tempfile import gettempdir

from attrs import define, field

import sigma_ml as sm
from sigma_kernel import Environment
from sigma_kernel.contracts import Operator
from sigma_operator_local import LocalOperator
from sigma_operator_processes import ProcessesOperator
from sigma_operator_processes.transport import ProcessesTransport

SHARDS = 4


@define(eq=False)
class ObservedProcesses(ProcessesOperator):
    """The operator, whose transport can be seen."""

    transport: ProcessesTransport | None = field(default=None, init=False)

    def connect(self) -> ProcessesTransport:
        self.transport = super().connect()
        return self.transport

    def processes(self) -> list[int]:
        """Return the numbers of the processes of workers."""
        return [] if self.transport is None else [*self.transport.processes.values()]


def build(operator: Operator, backend: str = "numpy") -> Environment:
    """Return an environment that trains on iris for some seconds."""
    sigma = sm.from_file("iris", "hooks.finish.when='epoch reaches 100'", f"run.backend={backend!r}")
    sigma.trainer("trainer").operator = operator
    return sigma


def train_undisturbed(backend: str = "numpy") -> str | None:
    """Return the hash of the parameters without workers."""
    return build(LocalOperator(shards=SHARDS), backend).run(progress=False).parameters_sha256


@define(eq=False)
class Disturbance:
    """Kill and suspend processes at random moments; those that are suspended go on later, lost or not."""

    draw: random.Random
    operator: ObservedProcesses
    ended: threading.Event = field(factory=threading.Event)
    counts: Counter[str] = field(factory=Counter)

    def run(self) -> None:
        """Disturb until the end."""
        while not self.ended.wait(self.draw.uniform(0.2, 1.5)):
            if processes := self.operator.processes():
                self.harm(self.draw.choice(processes))

    def harm(self, process: int) -> None:
        """Kill a process, or suspend it: shorter than it takes to be lost, or longer."""
        with suppress(ProcessLookupError):  # it has ended
            if self.draw.random() < 0.6:
                os.kill(process, signal.SIGKILL)
                self.counts["killed"] += 1
            else:
                os.kill(process, signal.SIGSTOP)
                self.counts["suspended"] += 1
                self.ended.wait(self.draw.choice((0.1, 2.5)))
                os.kill(process, signal.SIGCONT)


def train_disturbed(seed: int, backend: str = "numpy") -> tuple[str | None, Counter[str]]:
    """Return the hash of the parameters of a disturbed run, and how many processes were killed and suspended."""
    draw = random.Random(seed)
    operator = ObservedProcesses(workers=3, shards=SHARDS, lost_after=1.5, burst_seconds=draw.choice((0.01, 0.05)))
    disturbance = Disturbance(draw, operator)
    thread = threading.Thread(target=disturbance.run)
    thread.start()
    try:
        summary = build(operator, backend).run(progress=False)
    finally:
        disturbance.ended.set()
        thread.join()
    return summary.parameters_sha256, disturbance.counts


def keep_files_in(folder: str) -> None:
    """Let processes that are started from now on have their caches and temporary files in a folder."""
    gettempdir()  # this process keeps its own
    os.environ.update(XDG_CACHE_HOME=folder, TMPDIR=folder)


if __name__ == "__main__":
    count, first, folder = int(sys.argv[1]), int((*sys.argv[2:3], 0)[0]), "".join(sys.argv[3:])
    backend = "numba" if folder else "numpy"
    wanted, equal, totals = train_undisturbed(backend), 0, Counter[str]()
    if folder:
        keep_files_in(folder)
    for seed in range(first, first + count):
        hashed, counts = train_disturbed(seed, backend)
        equal += hashed == wanted
        totals += counts
        print(f"{equal} of {seed - first + 1} equal: {dict(totals)}", flush=True)
    sys.exit(equal < count)
