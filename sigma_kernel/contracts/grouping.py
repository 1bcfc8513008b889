"""Contracts of training on several workers: events and orders, and the two ends of a transport.

Shards of a batch are computed by workers, in threads, processes or machines. A *group* decides: it takes events, and
returns orders to workers and notices. It has no clock, thread or array, and lives in the training room. A transport
starts workers and carries orders, events and vectors; it decides nothing. ``docs/transports.md`` has the protocol.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts.steering import MODES, Operator, Work, check_mode, check_workers
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.graph.reprs import brief
from sigma_kernel.settings import ge, gt, in_, le


@frozen(order=True)
class Position:
    """A point in training: epochs and iterations that have ended, and a version, which edits and hooks raise."""

    epoch: int = 0
    iteration: int = 0
    version: int = 0


@frozen
class Commit:
    """The identity of a state: its position, and the generation in which the group committed it."""

    position: Position
    generation: int = 0


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
        records: What the burst measured, if this worker reports it.
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

    One without iterations raises the version alone: members do what the live values ask for, at the committed state.

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
class Withdraw(GroupEvent):
    """The operator no longer wants the burst, unless it is being computed already."""


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
class ReplaceState(GroupEvent):
    """The operator has replaced the state, as a rewind or a change of a component does: all join anew, with its own.

    The position has a higher version than any before.
    """

    commit: Commit


@frozen
class Dismiss(GroupEvent):
    """Training has ended: all workers leave."""


@frozen(repr=False)
class StateSent(WorkerEvent):
    """The committed state, as a :class:`KeepOrder` has asked for it: for the operator, which tells its group."""

    commit: Commit
    state: Checkpoint
    __repr__ = brief


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
        records: What the members report of a committed burst, in the order of their numbers.
    """

    kind: str
    generation: int
    position: Position
    worker: int | None = None
    text: str = ""
    records: Any = None
    __repr__ = brief


# -- transports --------------------------------------------------------------------------------------------------------
@frozen(repr=False)
class ShardPart:
    """What a shard adds to an iteration.

    Args:
        vectors: One-dimensional arrays by name, of the same names, lengths and dtypes for every shard; they are summed.
        note: What is passed on as it is, of any length.
    """

    vectors: Mapping[str, np.ndarray]
    note: bytes = b""
    __repr__ = brief


@frozen(repr=False)
class ShardSum:
    """What all shards of an iteration add up to: the sums of their vectors, and their notes in the shards' order."""

    vectors: Mapping[str, np.ndarray]
    notes: Sequence[bytes]
    __repr__ = brief


Provide = Callable[[], Checkpoint]  # the arrays and values of a state, copied when it is called


class Transport(Protocol):
    """The operator's end: start workers, carry orders to them and events from them; for several threads at once."""

    def start(self, blueprint: Blueprint, workers: int) -> None:
        """Get ready for so many workers; each of them calls ``blueprint.serve`` in its process. More may be started."""

    def send(self, orders: Sequence[GroupOrder]) -> None:
        """Send orders without waiting; start the worker of a :class:`StartOrder`."""

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        """Return the events that have arrived; wait at most so long for the first."""

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to workers that fetch it from the operator, in place of any earlier one."""

    def close(self) -> None:
        """End all workers, and release everything; may be called twice."""


class Channel(Protocol):
    """A worker's end of a transport. One thread calls ``orders``, another one ``sum`` and ``fetch``, both the rest."""

    def orders(self, seconds: float) -> Iterable[GroupOrder]:
        """Return the orders that have arrived; wait at most so long. Raises ConnectionError if the operator is gone."""

    def send(self, events: Sequence[GroupEvent]) -> None:
        """Send events without waiting; nothing happens if the operator is gone."""

    def sum(
        self, order: ComputeOrder, position: Position, parts: Mapping[int, ShardPart], count: int, seconds: float
    ) -> ShardSum | None:
        """Return the sum over ``count`` shards, in the order of :func:`merge_in_tree`; None if some are missing yet.

        ``parts`` has those of this worker, by the number of the shard; it may have none. Waits at most ``seconds``; the
        same call again waits on. A part counts for its generation and position alone. The result may be a view that
        is valid until the next call, and is not written to.
        """

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to members that fetch it from this worker, in place of any earlier one."""

    def fetch(self, order: JoinOrder, seconds: float) -> Checkpoint | None:
        """Return the state of the order's commit from its donor, or from the operator if that is None.

        Waits at most ``seconds``; None if the state has not arrived by then, or is not there.
        """


class Blueprint(Protocol):
    """What is trained, as data: it can be pickled, and served in any process that has the same plugins."""

    @property
    def plugins(self) -> Mapping[str, str]:
        """Return the versions of the plugins that a worker must have, by the name of the distribution."""

    def serve(self, worker: int, channel: Channel) -> None:
        """Work as this worker until it is to leave, or the operator is gone.

        Whatever goes wrong in a component is sent as :class:`WorkerFailed`; nothing is raised for it.
        """


# -- operators ---------------------------------------------------------------------------------------------------------
@define(eq=False)
class GroupOperator(Operator):
    """The base of operators that train by workers which a transport reaches: such a one has a transport, no more.

    Args:
        workers: Workers that compute the shards; the number changes no bits.
        shards: Parts that every batch is split into; at most so many workers.
        at_least: With fewer workers than these, training waits for others.
        lost_after: Seconds of silence after which a worker is lost.
        burst_seconds: Seconds between two boundaries at most, and so the latency of commands. Each boundary costs a
            round trip and copies of the state.
        mode: Whether gradients are added up in each iteration (``synchronous``), each shard trains a replica, and
            these are averaged (``averaging``), or workers go on while gradients are added up (``asynchronous``): its
            bits depend on time.
        every: Iterations after which replicas are averaged.
        staleness: Updates that a gradient lacks at most, in the mode ``asynchronous``.
    """

    workers: int = field(default=1, validator=ge(1))
    shards: int = field(default=1, validator=ge(1))
    at_least: int = field(default=1, validator=ge(1))
    lost_after: float = field(default=5.0, validator=gt(0.0))
    burst_seconds: float = field(default=0.25, validator=gt(0))
    mode: str = field(default=MODES[0], validator=in_(MODES))
    every: int = field(default=8, validator=ge(1))
    staleness: int = field(default=4, validator=[ge(1), le(15)])

    def __attrs_post_init__(self) -> None:
        """Refuse more workers than shards, fewer than are needed, and modes for one shard; raise SigmaConfigError."""
        check_workers(self.workers, self.shards, self.at_least)
        check_mode(self.mode, self.shards)

    @abstractmethod
    def connect(self) -> Transport:
        """Return a transport that has not been started."""

    def train(self, work: Work) -> None:
        """Train in a group of workers."""
        work.train_in_group(self)
