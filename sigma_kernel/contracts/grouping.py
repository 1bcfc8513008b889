"""Contracts of training on several workers: events and orders, and the two ends of a transport.

Shards of a batch are computed by workers, in threads, processes or machines. A *group* decides: it takes events, and
returns orders to workers and notices. It has no clock, thread or array, and lives in the training room. A transport
starts workers and carries orders, events and vectors; it decides nothing. ``docs/transports.md`` has the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from attrs import field, frozen

from sigma_kernel.graph.reprs import brief

Part = TypeVar("Part")


@frozen(order=True)
class Position:
    """A point in training: epochs and iterations that have ended, and the version of the data, which edits raise."""

    epoch: int = 0
    iteration: int = 0
    version: int = 0


@frozen
class Commit:
    """The identity of a state: its position, and the generation in which the group committed it."""

    position: Position
    generation: int = 0


def merge_in_tree(parts: Sequence[Part], merge: Callable[[Part, Part], Part]) -> Part:
    """Return the parts of all shards merged pairwise, neighbour by neighbour, until one is left.

    The order depends on the number of shards alone, and so do the bits of their sum.
    """
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [merge(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return parts[0]


# -- events: from workers, the transport and the operator, to the group ------------------------------------------------
@frozen
class GroupEvent:
    """What a group is told."""


@frozen
class WorkerEvent(GroupEvent):
    """An event that concerns a worker, by its number; numbers are never used again."""

    worker: int


@frozen
class WorkerReady(WorkerEvent):
    """The worker has started, and waits to join."""


@frozen
class WorkerAlive(WorkerEvent):
    """The worker has received an order, and is still busy or idle."""


@frozen
class WorkerJoined(WorkerEvent):
    """The worker has joined a generation: it holds the state of its :class:`JoinOrder`."""

    generation: int


@frozen(repr=False)
class WorkerComputed(WorkerEvent):
    """The worker holds the state after a burst, beside the one before it, and waits for the commit.

    Args:
        commit: The new state; its position is before the end of the order if the loss was not finite.
        digest: A hash of the new state, or empty; workers whose digests differ end the run.
        records: What the burst measured.
    """

    commit: Commit
    digest: str = ""
    records: Any = None
    __repr__ = brief


@frozen(repr=False)
class WorkerCut(WorkerEvent):
    """The worker has no link to some peers, whose vectors or state it needs in a generation."""

    generation: int
    peers: Sequence[int]
    __repr__ = brief


@frozen
class WorkerLost(WorkerEvent):
    """The transport has lost the worker: its process has ended, or its connection is closed."""

    reason: str = "lost"


@frozen
class WorkerFailed(WorkerEvent):
    """Code of the user, or of a component, has raised in the worker: no loss, but the end of the run."""

    traceback: str


@frozen
class Tick(GroupEvent):
    """Time has passed; the operator sends one at least four times in ``lost_after``, and in the patience of members."""

    seconds: float


@frozen(repr=False)
class Advance(GroupEvent):
    """A burst to be computed, with the live values of all its iterations.

    Args:
        begin: The position that the operator decided from; the group refuses the burst if it is elsewhere by now.
        end: The position after the burst.
        live: The live values.
    """

    begin: Position
    end: Position
    live: Mapping[str, Any] = field(factory=dict)
    __repr__ = brief


@frozen
class Resize(GroupEvent):
    """The number of workers to have from now on; missing ones are started."""

    workers: int


@frozen
class KeepState(GroupEvent):
    """The operator wants the present state, such as for a checkpoint."""


@frozen
class StateKept(GroupEvent):
    """The operator has received a state; a group whose workers are all lost goes back to the last one."""

    commit: Commit


@frozen
class Dismiss(GroupEvent):
    """Training has ended: all workers leave."""


# -- orders: from the group to a worker --------------------------------------------------------------------------------
@frozen
class GroupOrder:
    """What a worker is to do; each order may be repeated, delayed or lost."""

    worker: int


@frozen
class StartOrder(GroupOrder):
    """For the transport: start a worker of this number, unless it runs."""


@frozen
class PingOrder(GroupOrder):
    """Answer that you are alive."""


@frozen
class LeaveOrder(GroupOrder):
    """End: you are not, or no longer, a member."""

    reason: str


@frozen
class MemberOrder(GroupOrder):
    """An order to a member: its generation, and the state that is committed."""

    generation: int
    commit: Commit


@frozen(repr=False)
class JoinOrder(MemberOrder):
    """Drop what is not committed, and hold the committed state; a member without it copies that of ``donor``.

    Without a donor, the state is the one that the operator kept last, at first the initial one.
    """

    members: Sequence[int]
    donor: int | None
    __repr__ = brief


@frozen(repr=False)
class ComputeOrder(MemberOrder):
    """Compute the iterations from the committed state to ``end``; ``shards`` has those of each member."""

    end: Position
    live: Mapping[str, Any]
    shards: Mapping[int, Sequence[int]]
    __repr__ = brief


@frozen
class ApplyOrder(MemberOrder):
    """The burst is committed: let its state replace the one before it."""


@frozen
class KeepOrder(MemberOrder):
    """Send the committed state to the operator."""


@frozen
class PauseOrder(MemberOrder):
    """Wait: there are fewer members than ``at_least``."""


@frozen(repr=False)
class Notice:
    """What a group tells the operator: a change for the journal, or the outcome of a burst.

    Args:
        kind: joined, lost or generation, which are rows of the journal; committed, paused, rewound, refused or failed.
        generation: The generation after it.
        position: The position after it.
        worker: The worker that joined, was lost or failed.
        text: The members of a generation, the reason of a loss or refusal, the traceback of a failure.
        records: The records of a committed burst.
    """

    kind: str
    generation: int
    position: Position
    worker: int | None = None
    text: str = ""
    records: Any = None
    __repr__ = brief


# -- transports --------------------------------------------------------------------------------------------------------
class Transport(Protocol):
    """The operator's end: start workers, carry orders to them and events from them."""

    def start(self, blueprint: Any, workers: int) -> None:
        """Get ready for up to so many workers, each of which will make a replica of the blueprint."""

    def send(self, orders: Sequence[GroupOrder]) -> None:
        """Send orders without waiting; start the worker of a :class:`StartOrder`."""

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        """Return the events that have arrived; wait at most so long for the first."""

    def close(self) -> None:
        """End all workers, and release everything."""


class Channel(Protocol):
    """A worker's end of a transport."""

    def orders(self, seconds: float) -> Iterable[GroupOrder]:
        """Return the orders that have arrived; wait at most so long. Raises ConnectionError if the operator is gone."""

    def send(self, events: Sequence[GroupEvent]) -> None:
        """Send events without waiting."""

    def sum(self, order: ComputeOrder, position: Position, vectors: Mapping[int, np.ndarray]) -> np.ndarray | None:
        """Return the sum of the vectors of all shards, in the order of :func:`merge_in_tree`; None if some are missing.

        ``vectors`` has those of this worker, by shard. A vector counts for its generation and position alone.
        """
