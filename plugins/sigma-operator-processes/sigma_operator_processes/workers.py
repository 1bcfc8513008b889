"""The operator's view of a worker: its process, its connection, and how it ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from math import inf

from attrs import define, field

from sigma_kernel.errors import SigmaStateError
from sigma_operator_processes.link import Link, Packet, Welcome, encode

MODULE = "sigma_operator_processes.worker"
PATH = "PYTHONPATH"
DEVICES = "CUDA_VISIBLE_DEVICES"


@define(eq=False)
class WorkerProcess:
    """A process that was started for a worker.

    Args:
        number: The number of the worker.
        process: The process, the leader of a session of its own.
        link: The connection to it.
        device: The GPU that it sees; None for all.
    """

    number: int
    process: subprocess.Popen[bytes]
    link: Link
    device: str | None = None
    _leaves_by: float = field(default=inf, init=False)  # the time at which it is ended, once it is to leave

    def has_ended(self, seconds: float = 0.0) -> bool:
        """Return whether the process has ended, or does so within some seconds."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is not None

    def end(self, seconds: float) -> str:
        """End the process, if it does not do so within some seconds, and those that it has started; return how."""
        by_itself = self.has_ended(seconds)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.link.close()
        self.link.socket.close()
        return describe_end(code) if by_itself else "its connection was closed, and its process was ended"

    def hurry(self, seconds: float) -> None:
        """Let the process be overdue after some seconds, unless it is so before."""
        self._leaves_by = min(self._leaves_by, time.monotonic() + seconds)

    def is_overdue(self) -> bool:
        """Return whether the process should have ended by now."""
        return time.monotonic() > self._leaves_by

    def take_output(self) -> int:
        """Return the descriptor of a pipe with the output of the process, for the caller to close."""
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            return os.dup(pipe.fileno())


def start_worker(number: int, blueprint: Packet, device: str | None = None) -> WorkerProcess:
    """Start the process of a worker, which sees one GPU or all, and send it what is trained; its output is a pipe."""
    if not sys.executable:
        raise SigmaStateError("workers cannot be started: sys.executable does not name a Python interpreter.")
    visible = {} if device is None else {DEVICES: device}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(theirs.fileno()), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, PATH: os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1", **visible},
        )
    worker = WorkerProcess(number, process, Link(ours), device)
    variables = {name: os.environ.get(name) for name in (PATH, "PYTHONUNBUFFERED")}
    worker.link.send(encode(Welcome(number, [*sys.path], variables)))
    worker.link.send(blueprint.copy())
    return worker


def describe_end(code: int) -> str:
    """Return how a process has ended, in words."""
    if code >= 0:
        return f"its process has ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"its process was ended by {name}"
