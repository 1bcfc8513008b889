"""The actor of a worker: Ray calls its methods, each from a thread of its own, beside those of the worker."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

from sigma_kernel.contracts import Checkpoint, Commit, GroupOrder, WorkerFailed
from sigma_kernel.slices import Packet
from sigma_operator_ray.channel import JoinMessage, Message, PrintedLine, RayChannel
from sigma_operator_ray.engine import PacketChannel

LINGER = 4.0  # seconds after the end of the work in which the operator may end the process
REMEDY = (
    "A worker could not load what is trained. Classes and functions that it uses must be in a module that can be"
    " imported on all nodes, not in a script that is run or in a notebook."
)


class WorkerActor:
    """Serve a blueprint, and pass on what is sent to and by it.

    Args:
        number: The number of the worker.
        blueprint: The pickled blueprint.
        channels: Whether vectors may be sent by Ray's channels.
    """

    def __init__(self, number: int, blueprint: bytes, channels: bool) -> None:
        self._number, self._channel = number, RayChannel(number, channels)
        self._streams = [PrintedLines(stream, self._channel) for stream in (sys.stdout, sys.stderr)]
        sys.stdout, sys.stderr = self._streams
        threading.Thread(target=self._serve, args=[blueprint], name="sigma-worker", daemon=True).start()

    def __repr__(self) -> str:
        return f"worker {self._number}"

    def take(self, messages: Sequence[GroupOrder | JoinMessage]) -> None:
        """Take orders of the operator."""
        self._channel.take(messages)

    def poll(self) -> list[Message] | None:
        """Wait for messages to the operator, and return them; None after the end."""
        return self._channel.poll()

    def receive(self, packet: Packet) -> None:
        """Take vectors of another member."""
        self._channel.receive(packet)

    def connect(self, sender: int, channel: PacketChannel) -> None:
        """Take packets of another member from a channel too."""
        self._channel.links.add_channel(sender, channel)

    def locate(self) -> tuple[str, int]:
        """Return the node of this worker, and the port of its bell."""
        return self._channel.links.locate()

    def give_state(self, commit: Commit) -> Checkpoint | None:
        """Return the state of a commit, if this worker provides it."""
        return self._channel.give_state(commit)

    def _serve(self, data: bytes) -> None:
        try:
            blueprint = pickle.loads(data)
        except (Exception, SystemExit):
            self._fail(REMEDY)
        else:
            try:
                blueprint.serve(self._number, self._channel)
            except (Exception, SystemExit):
                self._fail("")
        for stream in self._streams:
            stream.end()
        self._channel.tell(None)
        time.sleep(LINGER)
        os._exit(0)  # the operator is gone, or hears nothing

    def _fail(self, remedy: str) -> None:
        self._channel.tell(WorkerFailed(self._number, f"{traceback.format_exc()}{remedy}"))


MARKS = (":actor_name:", ":task_name:", ":job_id:")  # lines that Ray writes for its own logs


class PrintedLines:
    """A stream that writes what another one does, and sends the operator each line."""

    def __init__(self, stream: Any, channel: RayChannel) -> None:
        self._stream, self._channel, self._rest = stream, channel, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if not line.startswith(MARKS):
                self._channel.tell(PrintedLine(self._channel.worker, line))
        self._stream.write(text)
        return len(text)

    def end(self) -> None:
        """Send a last line that has not ended."""
        if self._rest:
            self.write("\n")
