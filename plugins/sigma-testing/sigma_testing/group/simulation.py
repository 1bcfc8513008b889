"""A group of workers under simulated faults, with an invariant after each event.

::

    for seed in range(300):
        simulate_group(seed)

Time, network, processes and arrays are simulated: thousands of schedules need a few seconds. The state of a replica is
a hash of all sums of shards so far: it differs from the reference from the first iteration on in which a shard was
computed twice, not at all, at another position or from another state. The reference has a tree of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add
from random import Random
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.contracts import merge_in_tree
from sigma_kernel.contracts.grouping import (
    Advance,
    Commit,
    ComputeOrder,
    Dismiss,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    KeepState,
    Notice,
    Position,
    ReplaceState,
    Resize,
    StartOrder,
    StateKept,
    Tick,
    Withdraw,
    WorkerComputed,
    WorkerCut,
    WorkerFailed,
    WorkerJoined,
    WorkerLost,
)
from sigma_testing.group.checks import TRACEBACK, GroupChecks
from sigma_testing.group.network import OPERATOR, SimulatedNetwork
from sigma_testing.group.reference import Digest, ReferenceRun, digest, next_state
from sigma_testing.group.schedules import FaultSchedule, WorkerFault, draw_schedule
from sigma_testing.group.workers import (
    RunningBurst,
    SimulatedWorker,
    SumPlace,
    held_state,
    is_same_burst,
    sum_place,
)
from sigma_training.group.group import WorkerGroup
from sigma_training.group.member import (
    CopyState,
    DropState,
    EndWorker,
    GroupMember,
    MemberAction,
    PromoteState,
    RunBurst,
    SendState,
)

GRACE = 600.0  # simulated seconds in which a run ends once there are no faults
PATIENCE = 5.0  # of workers for the operator
REPLACED = 3  # states that the operator replaces at most


@define(eq=False)
class GroupSimulation:
    """One schedule: a group, its operator, workers, and the network between them."""

    schedule: FaultSchedule
    group: Any
    make_member: Callable[[int, float], Any]

    events: int = field(default=0, init=False)  # of the group
    workers: dict[int, SimulatedWorker] = field(factory=dict, init=False)
    reference: ReferenceRun = field(init=False)
    checks: GroupChecks = field(init=False)
    draw: Random = field(init=False)
    network: SimulatedNetwork = field(init=False)
    finished: bool = field(default=False, init=False)
    replaced: int = field(default=0, init=False)  # states
    states: dict[Commit, int] = field(factory=dict, init=False)  # the last that the operator has received
    board: dict[SumPlace, dict[int, tuple[int, Digest]]] = field(factory=dict, init=False)
    _asleep: float = field(default=-3.0, init=False)  # until then, the operator is suspended

    def __attrs_post_init__(self) -> None:
        self.reference, self.draw = self._make_reference(), Random(self.schedule.seed + 1)
        self.network, self.checks = SimulatedNetwork(self.schedule, self.draw), GroupChecks(self)
        self.states[self.group.commit] = self.reference.go_back(self.group.commit)

    def _make_reference(self) -> ReferenceRun:
        return ReferenceRun(self.schedule)

    @property
    def time(self) -> float:
        """Return the simulated time, in seconds."""
        return self.network.time

    @property
    def operator_is_dead(self) -> bool:
        """Return whether the operator has ended."""
        return 0 <= self.schedule.death <= self.time

    @property
    def is_over(self) -> bool:
        """Return whether training has ended, in one way or another."""
        return self.finished or self.group.status != "running" or self.operator_is_dead

    def run(self) -> int:
        """Simulate until all workers have ended; return the number of events. Raises InvariantError."""
        for fault in self.schedule.faults:
            self.network.call_later(fault.at, self._strike, fault)
        self._tell(Resize(self.schedule.workers))
        self._tick()
        self._advance(self.group.commit.position)
        calm = max((fault.at + fault.seconds for fault in self.schedule.faults), default=0.0)
        while not self.is_over:
            self.checks.expect(self.time < calm + GRACE, "no progress: training does not end")
            self.network.step()
        end = self.time + calm + 4 * PATIENCE + 400 * self.schedule.delay  # until the latest messages have arrived
        while self.network.is_busy and self.time < end:
            self.network.step()
        self.checks.check_end()
        return self.events

    # -- the operator --------------------------------------------------------------------------------------------------
    def _tell(self, event: GroupEvent) -> None:
        """Let the operator pass an event to its group, once it is awake."""
        if self.operator_is_dead:
            return
        if self.time < self._asleep:
            self.network.call_later(self._asleep - self.time, self._tell, event)
            return
        self.events += 1
        self.checks.begin_event(event)
        for output in self.checks.call(self.group, event):
            self.checks.check_output(output)
            if isinstance(output, Notice):
                self._hear(output)
            else:
                self._send(output)
        self.checks.check_event(event)

    def _tick(self) -> None:
        if not self.is_over:
            self._tell(Tick(self.time if self.time >= self._asleep else self._asleep))
            self.network.call_later(self.schedule.lost_after / 5, self._tick)

    def _hear(self, notice: Notice) -> None:
        if notice.kind in ("committed", "rewound", "refused"):
            pause = self.draw.uniform(0.0, 12.0) if self.draw.random() < 0.1 else 0.0  # hooks may take long
            self.network.call_later(pause, self._advance, notice.position)
        elif notice.kind in ("lost", "paused"):
            self.network.call_later(self.draw.uniform(0.1, 6.0), self._replace)

    def _replace(self) -> None:
        if not self.is_over:
            self._tell(Resize(self.group.size))

    def _advance(self, begin: Position) -> None:
        """Order the next burst, from where the group was when the operator decided."""
        if self.time < self._asleep:
            self.network.call_later(self._asleep - self.time, self._advance, begin)
            return
        if self.is_over or self.group.burst is not None:
            return
        if self.group.commit.position.iteration >= self.schedule.steps:
            self.finished = True
            self._tell(Dismiss())
            return
        if self.replaced < REPLACED and self.draw.random() < 0.1:
            begin = self._replace_state()
        if self.draw.random() < 0.3:
            self._tell(KeepState())
        self._tell(Advance(begin, self.reference.end(begin, self.draw), self.reference.live(begin.iteration)))
        if self.draw.random() < 0.05:
            self.network.call_later(self.draw.uniform(0.0, 1.0), self._withdraw)

    def _replace_state(self) -> Position:
        """Go back to any state before the present one, as a command does; return its position."""
        self.replaced += 1
        n = self.draw.choice(self.reference.places(self.group.commit.position.iteration))
        commit = Commit(evolve(self.reference.position(n), version=1000 * self.replaced), self.group.generation)
        self.states = {commit: self.reference.go_back(commit)}
        self._tell(ReplaceState(commit))
        return commit.position

    def _withdraw(self) -> None:
        """Withdraw the burst, as for a command; if nobody has computed it, order the next one."""
        if self.is_over or self.time < self._asleep:
            return
        waiting, left = self.group.is_waiting, self.group.computing
        self._tell(Withdraw())
        self.checks.expect((self.group.burst is None) != left, "a burst that waits stays, or one that runs goes")
        if waiting:
            self._advance(self.group.commit.position)

    # -- the network ---------------------------------------------------------------------------------------------------

    def _send(self, order: GroupOrder) -> None:
        if isinstance(order, StartOrder) and order.worker not in self.workers:
            member = self.make_member(order.worker, PATIENCE)
            worker = self.workers[order.worker] = SimulatedWorker(order.worker, member)
            self.network.call_later(self.draw.uniform(0.0, 1.0), self._tick_worker, worker)
        elif self.network.reaches(OPERATOR, order.worker):
            self.network.carry(self._receive, self.workers[order.worker], order)

    def _receive(self, worker: SimulatedWorker, message: GroupOrder | GroupEvent) -> None:
        """Let a worker take an order, or an event of its own, and do what follows."""
        if not worker.alive:
            return
        if worker.frozen:
            worker.inbox.append((self._receive, (worker, message)))
            return
        for answer in self.checks.call(worker.member, message):
            if isinstance(answer, MemberAction):
                self._act(worker, answer)
            elif self.network.reaches(worker.number, OPERATOR):
                self.network.carry(self._tell, answer)

    # -- the engine of a worker ----------------------------------------------------------------------------------------
    def _act(self, worker: SimulatedWorker, action: MemberAction) -> None:
        match action:
            case CopyState(order):
                self.network.carry(self._fetch, worker, order)
            case RunBurst(order):
                self.checks.expect(worker.run is None, f"worker {worker.number} begins a burst that it computes")
                worker.run = RunningBurst(order, order.commit.position.iteration, worker.state)
                self.network.call_soon(self._post, worker, worker.run)
            case PromoteState():
                worker.state = worker.beside
                self.checks.check_state(worker)
            case DropState():
                worker.run = None
            case SendState(commit):
                if self.network.reaches(worker.number, OPERATOR):
                    self.network.carry(self._keep, commit, worker.state)
            case EndWorker():
                self._end_worker(worker)

    def _fetch(self, worker: SimulatedWorker, order: JoinOrder) -> None:
        """Copy a state from a donor that has it, or from the operator."""
        donor = OPERATOR if order.donor is None else order.donor
        if not self.network.reaches(worker.number, donor):
            self.network.carry(self._tell, WorkerCut(worker.number, order.generation, (donor,)))
            return
        state = self.states.get(order.commit) if donor == OPERATOR else held_state(self.workers[donor], order.commit)
        if state is not None:
            self.network.call_soon(self._adopt, worker, order, state)

    def _adopt(self, worker: SimulatedWorker, order: JoinOrder, state: int) -> None:
        if worker.frozen:
            worker.inbox.append((self._adopt, (worker, order, state)))
        elif worker.alive and worker.member.generation == order.generation and not worker.member.joined:
            worker.state = state
            self._receive(worker, WorkerJoined(worker.number, order.generation))
            self.checks.check_state(worker)

    def _keep(self, commit: Commit, state: int) -> None:
        if self.operator_is_dead:
            return
        if self.time < self._asleep:
            self.network.call_later(self._asleep - self.time, self._keep, commit, state)
            return
        if commit == self.group.commit:
            self.states = {commit: state}
        self._tell(StateKept(commit))

    def _post(self, worker: SimulatedWorker, run: RunningBurst) -> None:
        """Compute the shards of a worker for one iteration, and show them to the others."""
        if worker.frozen:
            worker.inbox.append((self._post, (worker, run)))
            return
        if not worker.alive or worker.run is not run:
            return
        if run.at == self.schedule.error and worker.number == 0:
            worker.run = None
            self._receive(worker, WorkerFailed(worker.number, TRACEBACK))
            return
        rate = run.order.live["rate"]
        shown = {i: digest(run.state, run.at, rate, i) for i in run.order.shards[worker.number]}
        if run.at == run.order.end.iteration:  # the state is measured
            report(self, worker, run, shown)
            return
        self.network.carry(self._show, worker.number, run.order, run.at, shown)

    def _show(self, number: int, order: ComputeOrder, n: int, shown: Mapping[int, Digest]) -> None:
        for key in [key for key in self.board if key[0] < self.group.generation - 3]:
            del self.board[key]
        entries = self.board.setdefault(sum_place(order.generation, order.commit, n), {})
        for shard, value in shown.items():
            owner, earlier = entries.setdefault(shard, (number, value))
            self.checks.expect(owner == number, f"shard {shard} of iteration {n} is computed by {owner} and {number}")
            self.checks.expect(earlier == value, f"worker {number} computes shard {shard} of iteration {n} differently")
        if len(entries) == self.schedule.shards:
            summed = merge_in_tree([entries[shard][1] for shard in range(self.schedule.shards)], add).value
            for worker in self.workers.values():
                if worker.run is not None and worker.run.at == n and is_same_burst(worker.run.order, order):
                    self.network.call_soon(self._update, worker, worker.run, n, summed)

    def _update(self, worker: SimulatedWorker, run: RunningBurst, n: int, summed: int) -> None:
        """Let a worker that sees all shards of an iteration go on with the next one."""
        if worker.frozen:
            worker.inbox.append((self._update, (worker, run, n, summed)))
            return
        if not worker.alive or worker.run is not run or run.at != n or missing_peers(self.network, worker.number, run):
            return
        run.at, run.state = n + 1, next_state(run.state, self.reference.position(n), summed)
        if run.at < run.order.end.iteration:
            self.network.call_soon(self._post, worker, run)
            return
        report(self, worker, run, {})

    def _tick_worker(self, worker: SimulatedWorker) -> None:
        if not worker.alive:
            return
        self.network.call_later(1.0, self._tick_worker, worker)
        if worker.frozen:
            return
        self._receive(worker, Tick(self.time))
        if (run := worker.run) is not None:
            self._post(worker, run)  # what was lost
            if peers := missing_peers(self.network, worker.number, run):
                self.network.carry(self._tell, WorkerCut(worker.number, run.order.generation, peers))

    # -- faults --------------------------------------------------------------------------------------------------------
    def _strike(self, fault: WorkerFault) -> None:
        running = [worker for worker in self.workers.values() if worker.alive]
        if self.is_over or not running:
            return
        FAULTS[fault.kind](self, fault, running[fault.choice % len(running)])

    def _kill(self, fault: WorkerFault, worker: SimulatedWorker) -> None:
        self._end_worker(worker, fault.noticed)

    def _end_worker(self, worker: SimulatedWorker, noticed: bool = False) -> None:
        """End a process; the transport always reports it if it has not yet joined."""
        worker.end(self.time)
        if noticed or worker.member.generation < 0:
            self.network.call_soon(self._tell, WorkerLost(worker.number, "the process has ended"))

    def _kill_all(self, fault: WorkerFault, worker: SimulatedWorker) -> None:
        for each in [each for each in self.workers.values() if each.alive]:
            self._kill(fault, each)

    def _freeze(self, fault: WorkerFault, worker: SimulatedWorker) -> None:
        worker.frozen += 1
        self.network.call_later(fault.seconds, self._thaw, worker)

    def _thaw(self, worker: SimulatedWorker) -> None:
        worker.frozen -= 1
        if not worker.frozen:
            waiting, worker.inbox = worker.inbox, []
            for function, arguments in waiting:
                function(*arguments)

    def _sleep(self, fault: WorkerFault, worker: SimulatedWorker) -> None:
        if self.time > self._asleep + 3.0:  # workers are patient
            self._asleep = self.time + min(fault.seconds, 3.0)


def report(
    simulation: GroupSimulation, worker: SimulatedWorker, run: RunningBurst, records: Mapping[int, Digest]
) -> None:
    """Let a worker report that it has computed a burst, with what it has measured."""
    worker.run, worker.beside = None, run.state
    commit = Commit(run.order.end, run.order.generation)
    simulation._receive(worker, WorkerComputed(worker.number, commit, str(run.state), records))


def isolate(simulation: GroupSimulation, fault: WorkerFault, worker: SimulatedWorker) -> None:
    """Cut the link between a worker and the operator for some time."""
    simulation.network.sever(OPERATOR, worker.number, fault.seconds)


def cut(simulation: GroupSimulation, fault: WorkerFault, worker: SimulatedWorker) -> None:
    """Cut the link between two workers for good."""
    peers = [*simulation.workers]
    peer = peers[fault.choice // 7 % len(peers)]
    if peer != worker.number:
        simulation.network.sever(peer, worker.number, GRACE)


def accuse(simulation: GroupSimulation, fault: WorkerFault, worker: SimulatedWorker) -> None:
    """Report a worker lost that is not."""
    simulation._tell(WorkerLost(worker.number, "the connection is closed"))


def resize(simulation: GroupSimulation, fault: WorkerFault, worker: SimulatedWorker) -> None:
    """Want another number of workers."""
    lowest, most = simulation.schedule.at_least, simulation.schedule.shards
    simulation._tell(Resize(lowest + fault.choice % (most - lowest + 1)))


FAULTS: dict[str, Callable[[GroupSimulation, WorkerFault, SimulatedWorker], None]] = {
    "kill": GroupSimulation._kill,
    "kill_all": GroupSimulation._kill_all,
    "freeze": GroupSimulation._freeze,
    "isolate": isolate,
    "cut": cut,
    "accuse": accuse,
    "resize": resize,
    "sleep": GroupSimulation._sleep,
}


def missing_peers(network: SimulatedNetwork, number: int, run: RunningBurst) -> list[int]:
    """Return the members of a burst that a worker does not reach."""
    return [peer for peer in run.order.shards if peer != number and not network.reaches(number, peer)]


def simulate_group(
    seed: int, make_group: Callable[..., Any] = WorkerGroup, make_member: Callable[[int, float], Any] = GroupMember
) -> int:
    """Simulate the schedule of a seed; return the number of events of the group.

    Raises InvariantError, with the last events, if an invariant does not hold. ``make_group`` and ``make_member`` take
    the arguments of the classes that are simulated by default.
    """
    schedule = draw_schedule(seed)
    group = make_group(schedule.shards, schedule.at_least, schedule.lost_after)
    return GroupSimulation(schedule, group, make_member).run()
