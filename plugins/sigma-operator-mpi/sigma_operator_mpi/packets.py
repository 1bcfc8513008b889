"""Messages between ranks: what they are, and how they cross as one buffer, arrays beside the pickle."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.contracts import Checkpoint, Commit, JoinOrder

BLOCK = 64  # bytes: each part begins at a multiple, and MPI counts in these, as an int is too small for bytes


# -- messages beside orders, events and packets of sums ----------------------------------------------------------------
@frozen
class RankAddress:
    """A worker: its rank, and the number of its engagement, which is never used again."""

    rank: int
    engagement: int


@frozen
class Mail:
    """A message to or from the worker of an engagement; 0 is none: it concerns the rank."""

    engagement: int
    body: Any


@frozen
class Hello:
    """The rank is ready; its machine and process."""

    host: str
    process: int


@frozen
class Engage:
    """The rank becomes a worker: serve the pickled blueprint."""

    worker: int
    engagement: int
    blueprint: bytes = field(repr=False)


@frozen
class Idle:
    """The rank is no worker any more, and may become another one."""


@frozen
class End:
    """The operator has ended: what a worker did, or if it concerns the rank, the job."""


@frozen
class JoinWithPeers:
    """An order to join, with the addresses of the other members."""

    order: JoinOrder
    peers: Mapping[int, RankAddress]


@frozen
class StateQuery:
    """A worker asks for the state of a commit."""

    commit: Commit
    sender: RankAddress


@frozen
class StateAnswer:
    """The state of a commit; None if it is not there."""

    commit: Commit
    state: Checkpoint | None


# -- buffers -----------------------------------------------------------------------------------------------------------
def encode(message: Any) -> np.ndarray:
    """Return a message as bytes, a whole number of blocks: sizes of all parts, the pickle, and each array."""
    buffers = list[pickle.PickleBuffer]()
    body = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(body), *(buffer.raw() for buffer in buffers)]
    head = np.array([len(parts), *(part.nbytes for part in parts)], np.int64)
    parts.insert(0, memoryview(head.tobytes()))
    *starts, size = _place([part.nbytes for part in parts])
    packet = np.empty(size, np.uint8)
    for start, part in zip(starts, parts, strict=True):
        packet[start : start + part.nbytes] = part
    return packet


def decode(packet: np.ndarray) -> Any:
    """Return the message of :func:`encode`; its arrays are views of the packet."""
    count = int(packet[:8].view(np.int64)[0])
    sizes = packet[8 : 8 + 8 * count].view(np.int64).tolist()
    starts = _place([8 + 8 * count, *sizes])[1:-1]
    body, *buffers = (packet[start : start + size].data for start, size in zip(starts, sizes, strict=True))
    return pickle.loads(body, buffers=buffers)


def _place(sizes: list[int]) -> list[int]:
    """Return where parts of these sizes begin, and the end of the last one."""
    return [*accumulate((-(-size // BLOCK) * BLOCK for size in sizes), initial=0)]
