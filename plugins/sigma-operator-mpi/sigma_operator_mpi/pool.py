"""The ranks that compute, as rank 0 knows them: which are free, and which are workers of its transports."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

from attrs import define, field, frozen

from sigma_operator_mpi.packets import End, Engage, Hello, Idle, Mail, RankAddress
from sigma_operator_mpi.port import Port, import_mpi
from sigma_operator_mpi.rank import WorkerRank

LAUNCHED = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MPI_LOCALRANKID")  # set by mpiexec, of any MPI
JOB = "SIGMA_MPI_PROCESS"  # the process that has joined the job: those that it starts inherit the variables above


@frozen
class Ended:
    """A rank is no worker any more, and why."""

    reason: str


Listener = Callable[[Any], None]  # is told what a worker sends, and last of all that it has ended


@define(eq=False)
class RankPool:
    """Engage free ranks as workers; several transports may do so at once."""

    port: Port
    failure: BaseException | None = field(default=None, init=False)  # of the port's thread
    _free: set[int] = field(factory=set, init=False)
    _alive: set[int] = field(init=False)
    _processes: dict[int, Hello] = field(factory=dict, init=False)
    _engaged: dict[int, tuple[int, Listener]] = field(factory=dict, init=False)
    _numbers: count[int] = field(factory=lambda: count(1), init=False)
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    def __attrs_post_init__(self) -> None:
        self._alive = {*range(1, self.port.size)}
        self.port.open(self)
        atexit.register(self._end)

    @property
    def alive(self) -> int:
        """Return how many ranks can compute."""
        return len(self._alive)

    def engage(self, worker: int, blueprint: bytes, listener: Listener) -> RankAddress | None:
        """Let a free rank become a worker; return its address, or None if there is no such rank."""
        with self._lock:
            if not self._free:
                return None
            address = RankAddress(min(self._free), next(self._numbers))
            self._free.remove(address.rank)
            self._engaged[address.engagement] = address.rank, listener
            self.port.send(address.rank, Mail(0, Engage(worker, address.engagement, blueprint)))
            return address

    def tell(self, address: RankAddress, body: Any) -> None:
        """Send a message to a worker."""
        self.port.send(address.rank, Mail(address.engagement, body))

    def end(self, address: RankAddress) -> None:
        """End the process of a worker that does not answer, if it is here, and its end would not be that of the job."""
        with self._lock:
            process = self._processes[address.rank]
            if address.engagement in self._engaged and self.port.is_tolerant and process.host == socket.gethostname():
                with suppress(ProcessLookupError):
                    os.kill(process.process, signal.SIGKILL)

    def _end(self) -> None:
        """Let all ranks end."""
        for rank in self._alive:
            self.port.send(rank, Mail(0, End()))
        self.port.close()

    # -- the thread of the port ----------------------------------------------------------------------------------------
    def receive(self, rank: int, mail: Mail) -> None:
        """Pass a message on to the transport of the worker that has sent it."""
        body = mail.body
        if isinstance(body, Hello):
            with self._lock:
                self._processes[rank] = body
                self._free.add(rank)
            return
        listener = self._engaged[mail.engagement][1]
        if isinstance(body, Idle):
            with self._lock:
                del self._engaged[mail.engagement]
                self._free.add(rank)
            body = Ended("it has ended")
        listener(body)

    def lose(self, rank: int) -> None:
        """Forget a rank that has failed."""
        with self._lock:
            self._alive.discard(rank)
            self._free.discard(rank)
            gone = [engagement for engagement, (at, _) in self._engaged.items() if at == rank]
            listeners = [self._engaged.pop(engagement)[1] for engagement in gone]
        for listener in listeners:  # which have locks of their own
            listener(Ended("its process has ended"))

    def fail(self, error: BaseException) -> None:
        """Keep the error for the operator."""
        self.failure = error


_pool: RankPool | None = None
_joining = threading.Lock()


def join_job() -> RankPool | None:
    """Return the ranks of the job that mpiexec has started this process in; None outside of any.

    It is None as well in processes that a rank has started, which have :data:`JOB` in their environment.

    In ranks other than 0, it does not return: they compute until rank 0 ends, and end then.
    """
    global _pool
    with _joining:
        if _pool is None and any(name in os.environ for name in LAUNCHED) and JOB not in os.environ:
            port = Port(import_mpi())
            os.environ[JOB] = str(os.getpid())
            if port.rank > 0:
                WorkerRank(port).run()
            _pool = RankPool(port)
        return _pool
