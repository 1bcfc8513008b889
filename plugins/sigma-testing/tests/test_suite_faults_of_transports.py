"""The suite of transports fails for planted faults, over a transport whose workers are threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

from sigma_kernel.contracts import (
    Checkpoint,
    ComputeOrder,
    GroupEvent,
    GroupOperator,
    GroupOrder,
    JoinOrder,
    Position,
    ShardPart,
    ShardSum,
    WorkerFailed,
    WorkerLost,
)
from sigma_testing import ToyRun, TransportSuite
from sigma_testing.transports import driving, threads
from sigma_testing.transports.threads import ThreadChannel, ThreadOperator, ThreadTransport


class AnotherOrder(ThreadChannel):
    """Add shards one after the other."""

    def sum(self, order: ComputeOrder, position: Position, parts: Mapping[int, ShardPart], *more: Any) -> Any:
        total = super().sum(order, position, parts, *more)
        if total is None:
            return None
        every = self.transport.parts[order.generation, position]
        vectors = {name: reduce(add, [every[k].vectors[name] for k in sorted(every)]) for name in total.vectors}
        return ShardSum(vectors, total.notes)


class NotesReversed(ThreadChannel):
    def sum(self, *given: Any) -> Any:
        total = super().sum(*given)
        return total and ShardSum(total.vectors, total.notes[::-1])


class ShortNotes(ThreadChannel):
    def sum(self, *given: Any) -> Any:
        total = super().sum(*given)
        return total and ShardSum(total.vectors, [note[:1000] for note in total.notes])


class NoLive(ThreadChannel):
    def orders(self, seconds: float) -> Iterable[GroupOrder]:
        orders = super().orders(seconds)
        return [evolve(order, live={}) if isinstance(order, ComputeOrder) else order for order in orders]


class AnyState(ThreadChannel):
    """Copy whatever state the operator has provided."""

    def fetch(self, order: JoinOrder, seconds: float) -> Checkpoint | None:
        return self.transport.states[None][1]()


class NoFailures(ThreadChannel):
    def send(self, events: Sequence[GroupEvent]) -> None:
        super().send([event for event in events if not isinstance(event, WorkerFailed)])


class Deaf(ThreadTransport):
    """Say nothing of deaths."""

    def events(self, seconds: float) -> Iterable[GroupEvent]:
        return [event for event in super().events(seconds) if not isinstance(event, WorkerLost)]


@define(eq=False)
class Operator(ThreadOperator):
    """An operator whose transport, or whose workers' end of it, has a fault."""

    make: Callable[[], ThreadTransport] = field(default=ThreadTransport)

    def connect(self) -> ThreadTransport:
        return self.make()


class Suite(TransportSuite):
    def __init__(self, make: Callable[[], ThreadTransport] = ThreadTransport) -> None:
        self.transport = make

    def make(self) -> GroupOperator:
        return Operator(make=self.transport)

    def kill(self, run: ToyRun, worker: int) -> None:
        run.transport.kill(worker)  # type: ignore[attr-defined]


FAULTS: dict[type[Any], tuple[str, Mapping[str, Any]]] = {
    AnotherOrder: ("test_any_number_of_workers_gives_the_same_bits", {"workers": 3}),
    NotesReversed: ("test_any_number_of_workers_gives_the_same_bits", {"workers": 2}),
    ShortNotes: ("test_notes_have_any_length", {"length": 10}),
    NoLive: ("test_live_values_act_in_their_burst", {}),
    AnyState: ("test_workers_join_with_the_state_of_others", {}),
    NoFailures: ("test_an_error_in_a_worker_ends_the_run_with_its_traceback", {}),
    Deaf: ("test_a_worker_that_is_killed_changes_no_bits", {"length": 10}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_transport_is_caught(fault: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test, settings = FAULTS[fault]
    getattr(Suite(), test)(tmp_path=tmp_path, **settings)
    monkeypatch.setattr(driving, "PATIENCE", 3.0)
    if issubclass(fault, ThreadChannel):
        monkeypatch.setattr(threads, "ThreadChannel", fault)
    suite = Suite(fault if issubclass(fault, ThreadTransport) else ThreadTransport)
    with pytest.raises(AssertionError, match="expected that"):
        getattr(suite, test)(tmp_path=tmp_path, **settings)
