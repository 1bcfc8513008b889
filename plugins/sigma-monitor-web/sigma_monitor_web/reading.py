"""The work of processes that read run folders: describe many, or serve one like a run."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sigma_monitor_control.budget import WorkBudget
from sigma_monitor_control.server import Server
from sigma_monitor_web.archive import Archive
from sigma_monitor_web.exposition import expose_view
from sigma_monitor_web.listing import describe_folder, list_commands, reproduce_folder
from sigma_monitor_web.readers import Limits

OFFLINE = "SIGMA_OFFLINE"  # if set, sources raise instead of downloading
IDLE = 60.0  # seconds without a page until the process of a run ends


def describe_runs(pipe: Connection, limits: Limits) -> None:
    """Describe run folders on request, until the other end closes the pipe."""
    bound(limits.memory)
    with suppress(EOFError):
        while True:
            do, folder = json.loads(pipe.recv_bytes())
            with limit_time(limits.seconds):
                answer = DESCRIBES[do](Path(folder))
            pipe.send_bytes(json.dumps(answer).encode())


def _expose_folder(folder: Path) -> list[str]:
    body, type_ = expose_view(Archive(folder))
    return [body.decode(), type_]


DESCRIBES = {
    "describe": describe_folder,
    "commands": list_commands,
    "expose": _expose_folder,
    "reproduce": reproduce_folder,
}


def serve_run(door: socket.socket, folder: Path, data: Path | None, limits: Limits) -> None:
    """Serve a run folder to connections received through a socket, until it is unused for a while."""
    os.environ[OFFLINE] = "1"  # opening the page of a run must not download its data
    bound(limits.memory)
    listener = Door(fileno=door.detach())
    listener.setblocking(False)
    view = Archive(folder, data=data, guard=partial(limit_time, limits.seconds))
    server = Server(view, listener, os.getuid(), budget=WorkBudget(rest=0.0))  # no training here
    server.open()
    needed = time.monotonic()
    while not listener.over and time.monotonic() - needed < IDLE:
        time.sleep(server.pause)
        server.turn()
        needed = time.monotonic() if server.count else needed
    server.close()


class Door(socket.socket):
    """A socket that receives connections from another process."""

    over = False  # whether the other process has closed its end

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection; raises OSError if none is pending."""
        data, handed, _, address = socket.recv_fds(self, 1, 1)
        if not data:
            self.over = True
        if not handed:
            raise BlockingIOError
        return socket.socket(fileno=handed[0]), address


# -- limits ------------------------------------------------------------------------------------------------------------
@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Kill this process unless the body ends in time."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def bound(memory: int) -> None:
    """Limit this process to some bytes more than now, if the system supports it."""
    with suppress(OSError, ValueError, IndexError):  # another system, or a lower limit by now
        now = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (now + memory, most))
