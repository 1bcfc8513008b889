"""Processes that train members of a study at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, Any, cast

from attrs import define, field

from sigma_run.study.plan import Member

PATIENCE = 10.0  # seconds that a process without a member has to end


@define(eq=False)
class MemberProcess:
    """A process that trains members, one at a time; on Linux it has its share of the processors."""

    path: Path  # of the study
    processors: tuple[int, ...] = ()  # all if empty
    member: Member | None = field(default=None, init=False)
    _process: subprocess.Popen[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Start it in a session of its own: Ctrl-C reaches the parent alone, which forwards it.

        It imports from where this process does, and from nowhere else, such as the current directory.
        """
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "sigma_run.study.worker", str(self.path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        if self.processors:
            with suppress(ProcessLookupError):  # it has ended already, which its answer will say
                os.sched_setaffinity(self._process.pid, self.processors)

    @property
    def answers(self) -> IO[str]:
        """Return its output, to wait for."""
        return cast("IO[str]", self._process.stdout)

    @property
    def pid(self) -> int:
        """Return its number."""
        return self._process.pid

    def begin(self, member: Member) -> None:
        """Let it train a member."""
        self.member = member
        with suppress(BrokenPipeError):  # it was lost meanwhile, which reading its answer finds
            self._write(json.dumps({"folder": member.folder, "overrides": member.overrides}) + "\n")

    def _write(self, text: str) -> None:
        lines = cast("IO[str]", self._process.stdin)
        lines.write(text)
        lines.flush()

    def read(self) -> Mapping[str, Any] | None:
        """Wait for the results of its member; None if the process was lost."""
        line, self.member = self.answers.readline(), None
        return json.loads(line) if line.endswith("\n") else None

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def close(self) -> None:
        """End it: its input ends."""
        with suppress(BrokenPipeError):
            cast("IO[str]", self._process.stdin).close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.answers.close()


@define(eq=False)
class ProcessPool:
    """At most ``parallel`` processes, each with its share of the processors; a lost one is replaced."""

    path: Path  # of the study
    parallel: int
    processes: dict[int, MemberProcess] = field(factory=dict, init=False)  # by number below ``parallel``

    @property
    def busy(self) -> list[MemberProcess]:
        """Return the processes that train a member."""
        return [process for process in self.processes.values() if process.member is not None]

    @property
    def has_room(self) -> bool:
        """Return whether another member can begin."""
        return len(self.busy) < self.parallel

    def begin(self, member: Member) -> MemberProcess:
        """Train a member in a free process, or in a new one; return it."""
        free = next(n for n in range(self.parallel) if n not in self.processes or self.processes[n].member is None)
        if free not in self.processes:
            self.processes[free] = MemberProcess(self.path, divide_processors(free, self.parallel))
        self.processes[free].begin(member)
        return self.processes[free]

    def wait(self) -> tuple[Member, Mapping[str, Any] | None]:
        """Wait for a member; return it with its results, or None if its process was lost."""
        ready = wait([process.answers.fileno() for process in self.busy])
        number, process = next((n, p) for n, p in self.processes.items() if p.answers.fileno() in ready)
        member = cast("Member", process.member)
        if (results := process.read()) is None or results.get("status") == "interrupted":
            self.processes.pop(number).close()
        return member, results

    def signal(self, number: int) -> None:
        """Send a signal to the processes that train."""
        for process in self.busy:
            process.signal(number)

    def close(self) -> None:
        """End all processes."""
        while self.processes:
            self.processes.popitem()[1].close()


def divide_processors(number: int, parallel: int) -> tuple[int, ...]:
    """Return the processors of one of several processes; none if there are too few, or the system cannot say."""
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return tuple(there[number::parallel]) if len(there) >= parallel > 1 else ()
