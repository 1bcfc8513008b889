"""The invariants of a group of workers, checked after each event."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from attrs import define, field, fields

from sigma_kernel.contracts.grouping import (
    ApplyOrder,
    Commit,
    ComputeOrder,
    GroupEvent,
    GroupOrder,
    LeaveOrder,
    Notice,
    ReplaceState,
    Tick,
    WorkerEvent,
    WorkerFailed,
    WorkerLost,
)
from sigma_testing.group.reference import Digest, ReferenceRun, digest
from sigma_testing.group.schedules import FaultSchedule
from sigma_testing.group.workers import SimulatedWorker, SumPlace, sum_place

TRACEBACK = "Traceback: ValueError in the user's loss"


class InvariantError(AssertionError):
    """An invariant does not hold; the message has the seed, and the last events."""


class ObservedWorld(Protocol):
    """What the invariants are about: a group, its workers, and the vectors that they have shown to each other."""

    schedule: FaultSchedule
    group: Any
    finished: bool
    reference: ReferenceRun
    workers: dict[int, SimulatedWorker]
    board: dict[SumPlace, dict[int, tuple[int, Digest]]]
    states: dict[Commit, int]

    @property
    def time(self) -> float:
        """Return the simulated time, in seconds."""


@define(eq=False)
class GroupChecks:
    """The invariants of a group, checked after each event."""

    world: ObservedWorld
    committed: Commit = field(init=False)
    fenced: set[int] = field(factory=set, init=False)
    generation: int = field(default=0, init=False)
    outputs: list[GroupOrder | Notice] = field(factory=list, init=False)  # of the event
    _recent: list[Any] = field(factory=list, init=False)
    _previous: Any = field(default=None, init=False)
    _members: tuple[int, ...] = field(default=(), init=False)  # before the event
    _roster: set[int] = field(factory=set, init=False)
    _holders: set[int] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.committed = self.world.group.commit

    def expect(self, holds: bool, rule: str) -> None:
        """Raise InvariantError unless an invariant holds."""
        if not holds:
            recent = "\n  ".join(map(str, self._recent[-12:]))
            raise InvariantError(f"seed {self.world.schedule.seed}, {self.world.time:.3f} s: {rule}\n  {recent}")

    def call(self, machine: Any, message: Any) -> list[Any]:
        """Return the answer of a state machine; an error in it is a violation."""
        try:
            return list(machine.on(message))
        except Exception as error:
            self.expect(False, f"{message} raises {type(error).__name__}: {error}")
            raise

    def begin_event(self, event: GroupEvent) -> None:
        """Note an event, and what the group was before it."""
        self._recent = [*self._recent[-30:], event]
        group = self.world.group
        self._previous = group.commit, group.generation
        self._members, self._roster, self._holders = group.members, {*group.roster}, {*group.holders}
        self.outputs = []

    def check_output(self, output: GroupOrder | Notice) -> None:
        """Check an order or a notice."""
        self._recent.append(output)
        self.outputs.append(output)
        if isinstance(output, ComputeOrder):
            self._check_compute(output)
        elif isinstance(output, Notice):
            CHECKS.get(output.kind, GroupChecks._accept)(self, output)
        elif not isinstance(output, LeaveOrder):
            is_listed = output.worker in self.world.group.roster or output.worker in self._members
            self.expect(is_listed and output.worker not in self.fenced, "an order goes to a worker that is no member")

    def _accept(self, notice: Notice) -> None:
        self.expect(notice.kind in ("joined", "paused", "refused"), f"notice {notice.kind}")

    def _check_compute(self, order: ComputeOrder) -> None:
        world, group = self.world, self.world.group
        n = order.commit.position.iteration
        shards = sorted(shard for numbers in order.shards.values() for shard in numbers)
        self.expect(shards == [*range(world.schedule.shards)], "a shard is dropped or doubled")
        self.expect(order.live == world.reference.live(n), "live values act at another place")
        self.expect(order.commit == self.committed, "a burst begins at a state that is not committed")
        self.expect(len(group.members) >= world.schedule.at_least, "fewer members than at_least compute")
        self.expect(set(order.shards) == {*group.members}, "shards are assigned to workers that are no members")
        self.expect(all(order.shards.values()), "a member has no shard")
        behind = (w for w in group.members if world.workers[w].member.generation < group.generation)
        self.expect(not [*behind], "a burst is ordered before all have joined")

    def _check_commit(self, notice: Notice) -> None:
        world, commit = self.world, Commit(notice.position, notice.generation)
        begin, end = self.committed.position.iteration, notice.position.iteration
        self.expect(self.committed.position < notice.position, "a step is committed twice")
        if begin == end:
            self._check_measured(notice)
        for n in range(begin, end):
            entries = world.board.get(sum_place(commit.generation, self.committed, n), {})
            self.expect(len(entries) == world.schedule.shards, "a step is committed without all shards")
            owners = {owner for owner, _ in entries.values()}
            self.expect(owners <= {*self._members}, "a worker that is no member takes part")
        for number in self._members:
            worker = world.workers[number]
            reported = worker.member.beside
            held = {worker.member.commit, reported.commit if reported is not None else None}
            self.expect(commit in held, f"worker {number} does not hold what is committed")
            state = worker.state if worker.member.commit == commit else worker.beside
            self.expect(
                state == world.reference.state_of(commit), f"worker {number} has other bits after {end} iterations"
            )
        self.committed = commit

    def _check_measured(self, notice: Notice) -> None:
        world, n = self.world, notice.position.iteration
        state, rate = world.reference.state_of(self.committed), world.reference.live(n)["rate"]
        measured = [row for records in notice.records for row in records.items()]
        expected = {i: digest(state, n, rate, i) for i in range(world.schedule.shards)}
        once = len(measured) == len(expected) and dict(measured) == expected
        self.expect(once, "a state is measured without all shards, or with other bits")

    def _check_rewind(self, notice: Notice) -> None:
        group = self.world.group
        self.expect(group.commit in self.world.states, "the group goes back to a state that nobody holds")
        for number in set(group.roster) - self.fenced:
            held = self.world.workers[number].member.commit
            known_holder = number in self._holders and held == self.committed
            self.expect(not known_holder, f"the group goes back although worker {number} holds the state")
        self.committed = group.commit

    def _check_lost(self, notice: Notice) -> None:
        self.expect(notice.worker not in self.fenced, "a worker is lost twice")
        self.expect(not self.world.schedule.is_calm, f"a healthy worker is lost: {notice.text}")
        self.fenced.add(notice.worker if notice.worker is not None else -1)

    def _check_generation(self, notice: Notice) -> None:
        self.expect(notice.generation == self.generation + 1, "generations do not count up")
        self.generation = notice.generation
        self.expect(self.fenced.isdisjoint(self.world.group.members), "a fenced worker is a member again")
        members = [self.world.workers[number].member for number in self._members]
        settled = all(each.joined and each.generation == notice.generation - 1 for each in members)
        left = not self.world.group.roster.keys() >= {*self._members}
        replaced = isinstance(self._recent[-len(self.outputs) - 1], ReplaceState)
        self.expect(left or settled or replaced, "a generation ends before it has joined, and no member has left")

    def _check_failure(self, notice: Notice) -> None:
        self.expect(notice.text == TRACEBACK and notice.worker == 0, f"the run fails: {notice.text}")
        self.expect(self.world.group.status == "failed", "the run goes on after an error of the user")

    def check_state(self, worker: SimulatedWorker) -> None:
        """Check that the committed state of a worker is a function of its position."""
        commit = worker.member.commit
        if commit is not None:
            self.expect(
                worker.state == self.world.reference.state_of(commit), f"worker {worker.number} holds other bits"
            )

    def check_event(self, event: GroupEvent) -> None:
        """Check the group after an event."""
        group, kinds = self.world.group, {row.kind for row in self.outputs if isinstance(row, Notice)}
        commit, generation = self._previous
        if isinstance(event, ReplaceState):
            self.committed = event.commit
            self.expect(group.commit == event.commit and not group.computing, "a state is not replaced")
        replaced = isinstance(event, ReplaceState) or bool(kinds & {"committed", "rewound"})
        self.expect(commit == group.commit or replaced, "the state changes unnoticed")
        self.expect(generation == group.generation or "generation" in kinds, "a generation begins unnoticed")
        self._check_orders(event, kinds)
        self.expect(group.kept in self.world.states, "the group takes a state for kept that the operator does not hold")
        short = group.status == "running" and 0 < len(group.members) < self.world.schedule.at_least
        self.expect(
            not short or group.keeping or group.kept == group.commit, "a group that is short does not keep its state"
        )
        if isinstance(event, Tick) and group.status == "running":
            self._check_liveness()
            self._check_memory()

    def _check_orders(self, event: GroupEvent, kinds: set[str]) -> None:
        """Check that members hear of a commit, and that those who are fenced or no longer needed are to leave."""
        leaving = {order.worker for order in self.outputs if isinstance(order, LeaveOrder)}
        applied = {order.worker for order in self.outputs if isinstance(order, ApplyOrder)}
        self.expect("committed" not in kinds or applied == {*self._members}, "a member does not hear of a commit")
        if isinstance(event, WorkerEvent) and not isinstance(event, WorkerLost):
            hears = event.worker in self._roster or event.worker in leaving
            self.expect(hears, f"worker {event.worker} is fenced, and is not told to leave")
        if isinstance(event, WorkerFailed) and event.worker in self._roster:
            self.expect(self.world.group.status == "failed", "an error of the user does not end the run")
        if self.world.group.status != "running" and self._roster:
            self.expect(leaving == self._roster and not self.world.group.roster, "workers stay after the end")

    def _check_liveness(self) -> None:
        """Check that the dead are found."""
        world, group = self.world, self.world.group
        most = 8 * world.schedule.lost_after + 60 * world.schedule.delay + 10.0  # its last words may be late
        for number, worker in world.workers.items():
            late = not worker.alive and world.time - worker.died > most
            self.expect(not late or number not in group.roster, f"worker {number} ended, and is not lost")

    def _check_memory(self) -> None:
        group, most = self.world.group, self.world.schedule.shards
        values = (getattr(group, attribute.name) for attribute in fields(type(group)))
        held = [len(value) for value in values if isinstance(value, Collection)]
        self.expect(sum(held) <= 8 * most + most**2 + 100, "the group remembers too much")
        settles = group.computing or len(group.joined) < len(group.members)
        self.expect(settles or len(group.members) <= group.size, "there are more members than wanted")

    def check_end(self) -> None:
        """Check that training has ended as it should, and that no worker is left."""
        world = self.world
        if world.finished:
            n = self.committed.position.iteration
            self.expect(n == world.schedule.steps, f"training ends after {n} of {world.schedule.steps} iterations")
        left = [worker.number for worker in world.workers.values() if worker.alive]
        self.expect(not left, f"workers {left} are left after the end")


CHECKS: dict[str, Callable[[GroupChecks, Notice], None]] = {
    "committed": GroupChecks._check_commit,
    "rewound": GroupChecks._check_rewind,
    "lost": GroupChecks._check_lost,
    "generation": GroupChecks._check_generation,
    "failed": GroupChecks._check_failure,
}
