"""A rank other than 0: it computes as one worker after the other, prints nothing of its own, and ends with rank 0."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import traceback
from queue import SimpleQueue
from typing import NoReturn

from attrs import define, field

from sigma_kernel.contracts import WorkerFailed
from sigma_operator_mpi.channel import MpiChannel
from sigma_operator_mpi.output import number_lines
from sigma_operator_mpi.packets import End, Engage, Hello, Idle, Mail, RankAddress
from sigma_operator_mpi.port import Port

LINGER = 4.0  # seconds after the operator in which a worker may end by itself
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")  # which mpiexec passes on to all: rank 0 decides
REMEDY = (
    "A rank could not load what is trained. Classes and functions that it uses must be in a module that can be"
    " imported on all machines, not in a script that is run or in a notebook."
)


@define(eq=False)
class WorkerRank:
    """Serve the blueprints that rank 0 sends, one after the other, until it ends."""

    port: Port
    _tasks: SimpleQueue[Engage | int] = field(factory=SimpleQueue, init=False)  # and last the exit code
    _channel: MpiChannel | None = field(default=None, init=False)

    def run(self) -> NoReturn:
        """Work until rank 0 ends, and end this process."""
        if threading.current_thread() is threading.main_thread():
            for name in SIGNALS:
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        self.port.open(self)
        self.port.send(0, Mail(0, Hello(socket.gethostname(), os.getpid())))
        while isinstance(task := self._tasks.get(), Engage):
            self._serve(task)
        self.port.close()
        os._exit(task)

    def _serve(self, task: Engage) -> None:
        channel = self._channel
        assert channel is not None
        with number_lines(task.worker):
            try:
                blueprint = pickle.loads(task.blueprint)
            except (Exception, SystemExit):
                channel.send([WorkerFailed(task.worker, f"{traceback.format_exc()}{REMEDY}")])
            else:
                try:
                    blueprint.serve(task.worker, channel)
                except (Exception, SystemExit):
                    channel.send([WorkerFailed(task.worker, traceback.format_exc())])
        self._channel = None
        self.port.send(0, Mail(task.engagement, Idle()))

    # -- the thread of the port ----------------------------------------------------------------------------------------
    def receive(self, rank: int, mail: Mail) -> None:
        """Take a message; one for a worker that this rank is no more is dropped."""
        channel, body = self._channel, mail.body
        if isinstance(body, Engage):
            self._channel = MpiChannel(body.worker, RankAddress(self.port.rank, body.engagement), self.port)
            self._tasks.put(body)
        elif mail.engagement == 0:
            self._end(0)
        elif channel is not None and channel.address.engagement == mail.engagement:
            channel.receive(body)

    def lose(self, rank: int) -> None:
        """End with rank 0, as one that has failed; the operator knows of others."""
        if rank == 0:
            self._end(1)

    def _end(self, code: int) -> None:
        """End soon; the code of the first call counts."""
        if self._channel is not None:
            self._channel.receive(End())
        self._tasks.put(code)
        timer = threading.Timer(LINGER, os._exit, [1])
        timer.daemon = True
        timer.start()

    def fail(self, error: BaseException) -> None:
        """End without the thread of the port, whose traceback is printed."""
        traceback.print_exception(error)
        os._exit(1)
