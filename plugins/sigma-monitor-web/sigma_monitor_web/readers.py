"""Read run folders in separate processes, so that a hostile folder cannot stop the server.

One process reads the list entries; each run with an open page has its own. They are forks of a process with the imports
done, have limits on time and memory, and end with the server, even if it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.errors import SigmaStateError
from sigma_monitor_control.client import Client

WORK = "sigma_monitor_web.reading"  # imports of the processes
CONTEXT = get_context("forkserver")
EXHAUSTED = 75  # the exit code after running out of memory
LARGEST = 16 << 20  # bytes of an answer
AGAIN = 60.0  # seconds until a run whose reader was ended is retried
GRACE = 5.0  # seconds for a process to end
MOST = 4 << 30  # bytes of memory for the process of the list


@frozen
class Limits:
    """The limits of a process: seconds per file, and bytes of memory beyond its initial ones."""

    seconds: float
    memory: int


def start_process(what: str, *arguments: Any) -> BaseProcess:
    """Start a process that runs a function of the module ``WORK``."""
    CONTEXT.set_forkserver_preload([WORK])
    process = CONTEXT.Process(target=_work, args=(what, *arguments), name=f"sigma-{what}", daemon=True)
    process.start()
    return process


def _work(what: str, *arguments: Any) -> None:
    """Work until the server ends; Ctrl-C is left to the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_server, daemon=True).start()
    try:
        resolve_name(f"{WORK}:{what}")(*arguments)
    except MemoryError:
        os._exit(EXHAUSTED)


def _end_with_server() -> None:
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(0)


def describe_exit(process: BaseProcess, limits: Limits) -> str:
    """Return the reason why a process has ended."""
    process.join(GRACE)
    return describe_end(process.exitcode, limits)


def describe_end(code: int | None, limits: Limits) -> str:
    """Return what an exit code says of a process with limits; None if it still runs."""
    if code == -signal.SIGALRM:
        return f"reading it takes longer than {limits.seconds:g} seconds"
    if code == EXHAUSTED:
        return f"reading it needs more than {limits.memory / 2**30:.3g} GiB of memory"
    if code is None:
        return f"its contents take more than {LARGEST >> 20} MiB"
    if code >= 0:
        return f"the process that read it has ended (exit code {code})"
    return f"the process that read it was ended by {signal.Signals(-code).name}"


def unreadable(folder: Path, why: str) -> SigmaStateError:
    """Return the error of a run that cannot be read."""
    return SigmaStateError(f"{folder}: cannot be read: {why}. Look at its files, or move the folder elsewhere.")


# -- the list ----------------------------------------------------------------------------------------------------------
@define(eq=False)
class RunLister:
    """The process that reads list entries, restarted after a run that ended it; for one thread."""

    limits: Limits = Limits(10.0, MOST)
    _process: BaseProcess | None = field(default=None, init=False)
    _pipe: Connection | None = field(default=None, init=False)

    def begin(self) -> None:
        """Start the process, unless it runs."""
        if self._process is None or not self._process.is_alive():
            self.close()
            self._pipe, theirs = CONTEXT.Pipe()
            with theirs:
                self._process = start_process("describe_runs", theirs, self.limits)

    def ask(self, do: str, folder: Path) -> Any:
        """Return the process's answer for a run folder; raise SigmaStateError if reading it ends the process."""
        self.begin()
        assert self._process is not None
        assert self._pipe is not None
        try:
            self._pipe.send_bytes(json.dumps([do, str(folder)]).encode())
            return json.loads(self._pipe.recv_bytes(LARGEST))
        except (EOFError, OSError):
            why = describe_exit(self._process, self.limits)
            self._process.kill()  # if it is alive, its answer is too long
            self._process.join(GRACE)
            raise unreadable(folder, why) from None

    def close(self) -> None:
        """Let the process end."""
        if self._pipe is not None:
            self._pipe.close()


# -- a run -------------------------------------------------------------------------------------------------------------
@define(eq=False)
class RunReader:
    """The process that reads one run for all its pages, and the socket that hands it their connections."""

    process: BaseProcess
    door: socket.socket
    clock: Callable[[], float] = time.monotonic
    _ended: float | None = field(default=None, init=False)  # when its end was noticed

    @property
    def has_failed(self) -> bool:
        """Return whether it ended for another reason than disuse."""
        return self.process.exitcode not in (None, 0)

    def is_over(self) -> bool:
        """Return whether it can be dropped: it ended after disuse, or long enough ago."""
        if self.process.exitcode is None:
            return False
        self.door.close()
        self._ended = self._ended or self.clock()
        return not self.has_failed or self.clock() - self._ended > AGAIN

    def connect(self) -> Client:
        """Return a new connection; raises OSError if the process has just ended."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.door, [b"."], [theirs.fileno()])
        return Client(ours)


@define(eq=False)
class RunReaders:
    """The processes of the runs with open pages; safe for several threads.

    Args:
        data: The location of the runs' data, if they were moved.
        limits: The limits of each process.
    """

    data: Path | None = None
    limits: Limits = field(factory=lambda: Limits(120.0, max(MOST, _memory() // 2)))
    _readers: dict[Path, RunReader] = field(factory=dict, init=False)
    _gate: threading.Lock = field(factory=threading.Lock, init=False)

    def connect(self, folder: Path) -> Client:
        """Return a connection to the reader of a run; raise SigmaStateError if reading it has just ended a process."""
        with self._gate:
            try:
                return self._reader(folder).connect()
            except OSError:
                if folder not in self._readers:  # no process could start
                    raise
                self._readers[folder].process.join(GRACE)  # it is about to end
                return self._reader(folder).connect()

    def _reader(self, folder: Path) -> RunReader:
        self._readers = {path: reader for path, reader in self._readers.items() if not reader.is_over()}
        reader = self._readers.get(folder)
        if reader is not None and reader.has_failed:
            raise unreadable(folder, describe_exit(reader.process, self.limits))
        self._readers[folder] = reader = reader or self._start_reader(folder)
        return reader

    def close(self) -> None:
        """Let the processes end."""
        with self._gate:
            for reader in self._readers.values():
                reader.door.close()

    def _start_reader(self, folder: Path) -> RunReader:
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as unused:
            unused.enter_context(ours)
            process = start_process("serve_run", theirs, folder, self.data, self.limits)
            unused.pop_all()
        return RunReader(process, ours)


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
