"""The operator's side in tests of transports: a group, a transport, and ticks."""

from __future__ import annotations

import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from attrs import define, evolve, field

from sigma_kernel.contracts import (
    Advance,
    Checkpoint,
    Commit,
    Dismiss,
    GroupEvent,
    GroupOperator,
    GroupOrder,
    KeepState,
    Notice,
    Position,
    ReplaceState,
    Resize,
    StateKept,
    StateSent,
    Tick,
    Transport,
)
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import default_store
from sigma_testing.transports.toy import Arrays, ToyBlueprint
from sigma_training.group.group import WorkerGroup

TICK = 0.05  # seconds
PATIENCE = 40.0  # seconds after which a test fails


@define(eq=False)
class ToyRun:
    """A toy that is trained over a transport; use it in a ``with`` block.

    Args:
        operator: Whose transport it is.
        blueprint: What is trained.
        repeats: How many times each order is sent.
    """

    operator: GroupOperator
    blueprint: ToyBlueprint
    repeats: int = 1
    transport: Transport = field(init=False)
    group: WorkerGroup = field(init=False)
    notices: list[Notice] = field(factory=list, init=False)
    kept: tuple[Commit, Checkpoint] = field(init=False)
    _ticked: float = field(default=0.0, init=False)

    def __attrs_post_init__(self) -> None:
        self.group = WorkerGroup(self.operator.shards, self.operator.at_least, self.operator.lost_after)
        self.transport = self.operator.connect()
        self._keep(self.group.commit, Checkpoint(self.blueprint.initial(), {}))

    def __enter__(self) -> ToyRun:
        self.transport.start(self.blueprint, self.operator.workers)
        self.tell(Resize(self.operator.workers))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.tell(Dismiss())
        self.transport.close()

    def _keep(self, commit: Commit, state: Checkpoint) -> None:
        self.kept = commit, state
        self.transport.provide(commit, lambda: state)

    def tell(self, event: GroupEvent) -> None:
        """Tell the group an event, and send its orders."""
        outputs = self.group.on(event)
        self.notices += [output for output in outputs if isinstance(output, Notice)]
        orders = [output for output in outputs if isinstance(output, GroupOrder)]
        self.transport.send([order for order in orders for _ in range(self.repeats)])

    def turn(self, seconds: float = 0.02) -> None:
        """Tell the group what has arrived, and the time."""
        for event in self.transport.events(seconds):
            self.tell(event)
            if isinstance(event, StateSent) and event.worker in self.group.roster:
                self._keep(event.commit, event.state)
                self.tell(StateKept(event.commit))
        if (now := time.monotonic()) - self._ticked > TICK:
            self._ticked = now
            self.tell(Tick(now))

    def turn_until(self, holds: Callable[[], bool], goal: str) -> None:
        """Go on until something holds; fail if that takes too long, or the run has failed."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            self.turn()
            failures = [notice.text for notice in self.notices if notice.kind == "failed"]
            assert not failures or goal == "failed", f"the run has failed: {failures}"
            assert time.monotonic() < deadline, f"after {PATIENCE:g} s, {goal} has not come: {self.notices[-9:]}"

    def begin(self, iterations: int, **live: Any) -> None:
        """Order a burst, and wait until it is computed."""
        begin = self.group.commit.position
        self.tell(Advance(begin, evolve(begin, iteration=begin.iteration + iterations), live))
        self.turn_until(lambda: self.group.computing, "computing")

    def advance(self, iterations: int, burst: int = 7, **live: Any) -> None:
        """Train for some iterations, in bursts."""
        goal = self.group.commit.position.iteration + iterations
        while (here := self.group.commit.position).iteration < goal:
            if self.group.burst is None:
                end = min(here.iteration + burst, goal)
                self.tell(Advance(here, evolve(here, iteration=end), live))
            count = len(self.count("committed"))
            self.turn_until(lambda count=count: len(self.count("committed")) > count, "committed")  # type: ignore[misc]

    def count(self, kind: str) -> list[Notice]:
        """Return the notices of a kind."""
        return [notice for notice in self.notices if notice.kind == kind]

    def replace(self, state: Arrays) -> None:
        """Replace the state, as the operator may between bursts."""
        here = self.group.commit.position
        commit = Commit(Position(here.epoch, here.iteration, here.version + 1), self.group.generation)
        self._keep(commit, Checkpoint(state, {}))
        self.tell(ReplaceState(commit))

    def state(self) -> Arrays:
        """Return the committed state."""
        commit = self.group.commit
        self.tell(KeepState())
        self.turn_until(lambda: self.kept[0] == commit and not self.group.keeping, "the state")
        return self.kept[1].arrays

    def wait_for(self, workers: int) -> None:
        """Wait until there are so many members that have joined."""
        self.turn_until(lambda: len(self.group.joined) == len(self.group.members) == workers, f"{workers} members")

    # -- faults --------------------------------------------------------------------------------------------------------
    def signal(self, worker: int, number: int) -> None:
        """Send a signal to the process of a worker."""
        os.kill(self.blueprint.process(worker), number)

    def is_running(self, worker: int) -> bool:
        """Return whether the process of a worker runs."""
        return is_running(self.blueprint.process(worker))


def is_running(process: int) -> bool:
    """Return whether a process runs; one that has ended, and that nobody has waited for, does not."""
    with suppress(OSError):
        os.kill(process, 0)
        stat = Path(f"/proc/{process}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until_ended(processes: Sequence[int], seconds: float) -> list[int]:
    """Return the processes that still run after so many seconds, and end them."""
    deadline = time.monotonic() + seconds
    while any(map(is_running, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    rest = [process for process in processes if is_running(process)]
    for process in rest:
        os.kill(process, signal.SIGKILL)
    return rest


def remember_transports(operator: type[GroupOperator], patch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list to which the transports of a class of operators are added, as they are made."""
    transports, connect = list[Any](), operator.connect

    def remember(self: GroupOperator) -> Any:
        transports.append(transport := connect(self))
        return transport

    patch.setattr(operator, "connect", remember)
    return transports


def read_events(run: Path | None, event: str) -> list[dict[str, Any]]:
    """Return the rows of an event in the journal of a run folder."""
    assert run is not None
    stored = default_store(catalogue()).open(run, warnings.warn, lambda stored: None)
    return [dict(row) for row in stored.journal_rows() if row.get("event") == event]


def same_bits(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Return whether two states are equal to the bit."""
    return a.keys() == b.keys() and all(a[n].tobytes() == b[n].tobytes() for n in a)


def drive(path: str) -> None:
    """Train without end what a file holds, an operator and a blueprint; print when the first burst is committed."""
    operator, blueprint = pickle.loads(Path(path).read_bytes())
    with ToyRun(operator, blueprint) as run:
        run.wait_for(operator.workers)
        while True:
            run.advance(5)
            print("committed", flush=True)
