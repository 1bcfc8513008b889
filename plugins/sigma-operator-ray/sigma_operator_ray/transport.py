"""The operator's end of the transport: start actors, carry orders and events, and notice deaths."""

from __future__ import annotations

import pickle
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.contracts import (
    Blueprint,
    Commit,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    LeaveOrder,
    Provide,
    StartOrder,
    StateSent,
    WorkerFailed,
    WorkerLost,
)
from sigma_kernel.errors import SigmaConfigError, error_text
from sigma_operator_ray.actor import WorkerActor
from sigma_operator_ray.channel import JoinMessage, Message, PrintedLine, copy_state
from sigma_operator_ray.engine import (
    CONNECTION,
    ActorOptions,
    Handle,
    Reference,
    call,
    describe_failure,
    end_actor,
    expect_processors,
    on_result,
    put,
    start_actor,
)
from sigma_operator_ray.placement import Placement

LEAVE = 5.0  # seconds in which a worker ends, once it is to leave


@define(eq=False)
class RayTransport:
    """Run workers as actors of a Ray cluster.

    A call of ``poll`` is pending at each actor: its result is what the worker sends, its error the end of the actor.
    The arguments are the settings of :class:`RayOperator`.
    """

    address: str = ""
    niceness: int = 0
    cpus: float = 1.0
    gpus: float = 0.0
    install: bool = False
    at_least: int = 1
    channels: bool = True
    placement: str = "pack"
    place_within: float = 600.0
    _places: Placement | None = field(default=None, init=False)
    _options: ActorOptions | None = field(default=None, init=False)
    _blueprint: Reference = field(default=None, init=False)
    _workers: dict[int, Handle] = field(factory=dict, init=False)
    _started: set[int] = field(factory=set, init=False)
    _leaving: dict[int, float] = field(factory=dict, init=False)  # when a worker is ended that is to leave
    _results: SimpleQueue[tuple[int, Future[Any]]] = field(factory=SimpleQueue, init=False)
    _provided: tuple[Commit, Provide] | None = field(default=None, init=False)
    _shared: tuple[Commit, Reference] | None = field(default=None, init=False)  # what is provided, once it is ordered
    _lock: threading.RLock = field(factory=threading.RLock, init=False)

    # -- the contract --------------------------------------------------------------------------------------------------
    def start(self, blueprint: Blueprint, workers: int) -> None:
        """Connect to Ray; raise SigmaConfigError if that fails, or the blueprint cannot be pickled."""
        data = pickle_blueprint(blueprint)
        CONNECTION.open(self.address, self.niceness)
        packages = [f"{name}=={version}" for name, version in blueprint.plugins.items()] if self.install else []
        self._options = ActorOptions(self.cpus, self.gpus, packages, f"sigma-{uuid.uuid4().hex[:12]}")
        least = min(workers, self.at_least)
        expect_processors(self.cpus, self.gpus, least)
        self._places = Placement(self._options, self.placement, least, self.place_within)
        self._blueprint = put(data)

    def send(self, orders: Sequence[GroupOrder]) -> None:
        """Send orders without waiting; start the worker of a :class:`StartOrder`."""
        messages = dict[int, list[GroupOrder | JoinMessage]]()
        with self._lock:
            for order in orders:
                if isinstance(order, StartOrder) and order.worker not in self._started:
                    self._start(order.worker)
                elif order.worker in self._workers:
                    messages.setdefault(order.worker, []).append(self._complete(order))
            for worker, texts in messages.items():
                call(self._workers[worker], "take", texts)

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        """Return the events that have arrived; wait at most so long for the first."""
        deadline, events = time.monotonic() + seconds, list[GroupEvent]()
        self._end_overdue()
        if (failure := self._check_places()) is not None:
            return [failure]
        try:
            while True:
                rest = 0.0 if events else max(deadline - time.monotonic(), 0.0)
                events += self._take(*self._results.get(timeout=rest))
        except Empty:
            return events

    def provide(self, commit: Commit, state: Provide) -> None:
        """Give the state of this commit to workers that fetch it from the operator, in place of any earlier one."""
        with self._lock:
            self._provided = commit, state

    def close(self) -> None:
        """End all workers, and the connection; may be called twice."""
        with self._lock:
            for worker in [*self._workers]:
                end_actor(self._workers.pop(worker))
            self._shared = self._blueprint = None
            if self._options is not None:
                self._options = None
                if self._places is not None:
                    self._places.close()
                CONNECTION.close()

    @property
    def actors(self) -> dict[int, Handle]:
        """Return the actors of the workers that run."""
        return {**self._workers}

    # -- orders --------------------------------------------------------------------------------------------------------
    def _start(self, worker: int) -> None:
        assert self._options is not None
        assert self._places is not None
        self._started.add(worker)
        options = evolve(self._options, place=self._places.place(worker))
        self._workers[worker] = start_actor(WorkerActor, options, worker, self._blueprint, self.channels)
        self._poll(worker)

    def _complete(self, order: GroupOrder) -> GroupOrder | JoinMessage:
        """Return the message of an order: one to join has the actors of the members, and the state without a donor."""
        if isinstance(order, LeaveOrder):
            self._leaving.setdefault(order.worker, time.monotonic() + LEAVE)
        if not isinstance(order, JoinOrder):
            return order
        others = [member for member in order.members if member != order.worker]
        peers = {member: self._workers[member] for member in others if member in self._workers}
        return JoinMessage(order, peers, self._share(order.commit) if order.donor is None else [])

    def _share(self, commit: Commit) -> list[Reference]:
        """Return the state of a commit in the object store, where it is put once; nothing if it is not provided."""
        own, state = self._provided or (None, None)
        if state is None or own != commit:
            return []
        if self._shared is None or self._shared[0] != commit:
            self._shared = commit, put(state())
        return [self._shared[1]]

    # -- events --------------------------------------------------------------------------------------------------------
    def _poll(self, worker: int) -> None:
        """Ask a worker for its next messages."""
        on_result(call(self._workers[worker], "poll"), lambda result: self._results.put((worker, result)))

    def _take(self, worker: int, result: Future[Any]) -> list[GroupEvent]:
        """Return the events of a result, and ask for the next ones."""
        with self._lock:
            if worker not in self._workers:  # after close
                return []
            if (error := result.exception()) is not None:
                end_actor(self._workers[worker])  # also one that lives, and cannot be reached
                return [self._lose(worker, *describe_failure(error))]
            messages: list[Message] | None = result.result()
            if messages is None:
                end_actor(self._workers[worker])
                return [self._lose(worker, "it has ended")]
            self._poll(worker)
        print_lines([message for message in messages if isinstance(message, PrintedLine)])
        return [_copy_arrays(message) for message in messages if not isinstance(message, PrintedLine)]

    def _lose(self, worker: int, reason: str, is_final: bool = False) -> GroupEvent:
        """Forget a worker; return its end, or its failure if another one would fare no better."""
        del self._workers[worker]
        self._leaving.pop(worker, None)
        if self._places is not None:
            self._places.leave(worker)
        return WorkerFailed(worker, reason) if is_final else WorkerLost(worker, reason)

    def _check_places(self) -> GroupEvent | None:
        """Say that the cluster has no room yet; return the failure of a worker if it has none in time."""
        with self._lock:
            if self._places is None or not self._workers:
                return None
            if (text := self._places.describe_wait()) is not None:
                print_text(text)
            text = self._places.describe_failure()
            return None if text is None else WorkerFailed(min(self._workers), text)

    def _end_overdue(self) -> None:
        """End workers that were to leave and have not."""
        with self._lock:
            now = time.monotonic()
            for worker in [worker for worker, deadline in self._leaving.items() if deadline < now]:
                del self._leaving[worker]
                end_actor(self._workers[worker])


def _copy_arrays(event: GroupEvent) -> GroupEvent:
    """Return an event whose arrays are not in the object store."""
    return evolve(event, state=copy_state(event.state)) if isinstance(event, StateSent) else event


def pickle_blueprint(blueprint: Blueprint) -> bytes:
    """Return a blueprint as bytes; raise SigmaConfigError if it cannot be pickled."""
    try:
        return pickle.dumps(blueprint, protocol=5)
    except Exception as error:
        raise SigmaConfigError(
            f"operator 'ray': what is trained cannot be sent to workers: {error_text(error)}. Define its classes and"
            " functions by name in a module that can be imported."
        ) from error


def print_lines(lines: Sequence[PrintedLine]) -> None:
    """Write lines of workers to standard error."""
    print_text(*[f"[worker {line.worker}] {line.text}" for line in lines])


def print_text(*lines: str) -> None:
    """Write lines to standard error, if there is one."""
    with suppress(OSError, ValueError, AttributeError):  # of a stream that is closed, or missing
        sys.stderr.write("".join(f"{line}\n" for line in lines))
