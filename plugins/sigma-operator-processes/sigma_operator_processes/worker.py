"""The process of a worker: ``python -m sigma_operator_processes.worker DESCRIPTOR PARENT``, started by the operator.

It runs in an interpreter of its own: neither the script of the user nor a notebook is run again.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence

from sigma_kernel.contracts import WorkerFailed
from sigma_operator_processes.channel import LINGER, POLL, ProcessesChannel
from sigma_operator_processes.link import Link, Packet, Welcome

PR_SET_PDEATHSIG = 1
REMEDY = (
    "A worker could not load what is trained. Classes and functions that it uses must be in a module that can be"
    " imported, not in a script that is run or in a notebook."
)


def main() -> None:
    """Serve what the operator sends, until it is gone or this worker is to leave."""
    descriptor, parent = map(int, sys.argv[1:])
    prepare_process(parent)
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    link = Link(connection)
    first, blueprint, *packets = read_packets(link, 2)
    welcome: Welcome = first.load()
    sys.argv[:], sys.path[:] = ["sigma-worker"], welcome.path
    restore_environment(welcome)
    serve(welcome.worker, link, blueprint, packets)
    leave(link)


def prepare_process(parent: int) -> None:
    """Set signals: Ctrl-C is for the operator alone, other signals act as they do without handlers.

    On Linux, the end of the operator's thread ends this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(name, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    faulthandler.enable()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before
        os._exit(1)


def read_packets(link: Link, count: int) -> list[Packet]:
    """Return the first packets, at least so many; end the process if the operator is gone."""
    packets = list[Packet]()
    while len(packets) < count:
        link.wait()
        packets += link.receive()
        if link.closed:
            os._exit(1)
    return packets


def restore_environment(welcome: Welcome) -> None:
    """Restore the variables that were set to start this process."""
    for name, value in welcome.variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def serve(worker: int, link: Link, packet: Packet, packets: Sequence[Packet]) -> None:
    """Serve a blueprint, with orders that came after it; what is raised is an error in the code of the user."""
    channel = ProcessesChannel(worker, link)
    try:
        blueprint = packet.load()
    except (Exception, SystemExit):
        channel.send([WorkerFailed(worker, f"{traceback.format_exc()}{REMEDY}")])
        return
    channel.open(packets)
    try:
        blueprint.serve(worker, channel)
    except (Exception, SystemExit):
        if not link.closed:
            channel.send([WorkerFailed(worker, traceback.format_exc())])


def leave(link: Link) -> None:
    """Send what waits, and end the process, also if some thread does not.

    The connection is closed by the system, at the end of the process: so the operator knows that it ends.
    """
    deadline = time.monotonic() + LINGER / 2
    while link.is_behind and time.monotonic() < deadline:
        link.wait(POLL)
    link.socket.detach()

    def end() -> None:
        time.sleep(LINGER / 2)
        os._exit(0)

    threading.Thread(target=end, daemon=True).start()


if __name__ == "__main__":
    main()
