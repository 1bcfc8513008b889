"""The global scope of workers: a state machine of events and orders, without clock, thread, array or engine.

A burst is a transaction. Members compute it beside the state that is committed; once all have reported the result,
it is committed, and replaces that state. If a member is lost before, the next generation drops what is not committed,
maps the shards to the members that are left, and computes the burst again, to the same bits. Members only measure the
state in a burst that raises the version of the position, and nothing else.

Each event changes the state; then :meth:`WorkerGroup._proceed` compares the state with what is wanted, and returns the
orders that are missing. What was lost on the way is repeated at ticks. ``docs/transports.md`` draws the states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import check_workers
from sigma_kernel.contracts.grouping import (
    Advance,
    ApplyOrder,
    Commit,
    ComputeOrder,
    Dismiss,
    GroupEvent,
    GroupOrder,
    JoinOrder,
    KeepOrder,
    KeepState,
    LeaveOrder,
    Notice,
    PauseOrder,
    PingOrder,
    Position,
    ReplaceState,
    Resize,
    StartOrder,
    StateKept,
    StateSent,
    Tick,
    Withdraw,
    WorkerAlive,
    WorkerComputed,
    WorkerCut,
    WorkerEvent,
    WorkerFailed,
    WorkerJoined,
    WorkerLost,
    WorkerReady,
)
from sigma_kernel.errors import SigmaConfigError, SigmaStateError
from sigma_kernel.settings import ge, gt
from sigma_training.group.shares import assign_shards, choose_outcasts
from sigma_training.group.silence import Silence

STARTING, WAITING, MEMBER = "starting", "waiting", "member"
Output = list[GroupOrder | Notice]


@define(eq=False)
class WorkerGroup:
    """Decide which workers are members, what they compute, and when a burst is committed.

    Args:
        shards: Parts of every batch, which the configuration fixes; at most so many workers.
        at_least: Fewer members than this wait until others join.
        lost_after: Seconds of silence after which a worker is lost. Each time that workers are, the seconds double, to
            four times as many; each commit halves them again.
        commit: The state to begin with, which the operator holds: that of the blueprint, or of a checkpoint.
    """

    shards: int = field(default=1, validator=ge(1))
    at_least: int = field(default=1, validator=ge(1))
    lost_after: float = field(default=5.0, validator=gt(0.0))
    commit: Commit = field(default=Commit(Position()))

    kept: Commit = field(init=False)  # the last state that the operator has received
    generation: int = field(init=False)
    status: str = field(default="running", init=False)  # running, failed, ended
    size: int = field(default=0, init=False)  # workers wanted
    numbers: int = field(default=0, init=False)  # workers started so far
    roster: dict[int, str] = field(factory=dict, init=False)  # all others are fenced
    members: tuple[int, ...] = field(default=(), init=False)  # of this generation
    joined: set[int] = field(factory=set, init=False)
    holders: set[int] = field(factory=set, init=False)  # members that hold the committed state
    newcomers: set[int] = field(factory=set, init=False)  # members that have not yet joined any generation
    burst: Advance | None = field(default=None, init=False)
    computing: bool = field(default=False, init=False)  # the burst was ordered in this generation
    computed: dict[int, WorkerComputed] = field(factory=dict, init=False)
    keeping: bool = field(default=False, init=False)  # the operator wants the committed state
    keeper: int | None = field(default=None, init=False)  # the member that sends it
    paused: bool = field(default=False, init=False)
    broken: bool = field(default=False, init=False)  # a member has left since the generation began
    cuts: set[frozenset[int]] = field(factory=set, init=False)
    _silence: Silence = field(init=False)
    _sent: float = field(default=-inf, init=False)  # when orders were repeated

    def __attrs_post_init__(self) -> None:
        if self.at_least > self.shards:
            raise SigmaConfigError(f"at_least = {self.at_least}: {self.shards} shards are for as many workers.")
        self.kept, self.generation, self._silence = self.commit, self.commit.generation, Silence(self.lost_after)

    @property
    def is_waiting(self) -> bool:
        """Return whether there is a burst that nobody computes yet."""
        return self.burst is not None and not self.computing

    def on(self, event: GroupEvent) -> Output:
        """Return orders and notices that follow from an event.

        Raises SigmaConfigError for a number of workers that is not possible, SigmaStateError for a burst or another
        state while a burst is computed, or for one that ends before it begins; nothing has changed then. A burst that
        begins elsewhere than at the committed position was decided before a rewind, say: the answer is the notice
        ``refused``.
        """
        if isinstance(event, WorkerEvent):
            if event.worker not in self.roster:
                return _fence(event)
            if isinstance(event, WorkerReady) and event.worker in self.joined:
                return []  # late, or its process was started again and holds nothing: no sign of life
            self._silence.hear(event.worker)
        elif self.status != "running":
            return []
        return HANDLERS[type(event)](self, event)

    # -- events of workers ---------------------------------------------------------------------------------------------
    def _on_ready(self, event: WorkerReady) -> Output:
        if self.roster[event.worker] != STARTING:
            return []
        self.roster[event.worker] = WAITING
        return self._proceed()

    def _on_joined(self, event: WorkerJoined) -> Output:
        worker = event.worker
        if event.generation != self.generation or worker in self.joined or worker not in self.members:
            return []
        self.joined.add(worker)
        self.holders.add(worker)
        notices: Output = [self._notice("joined", worker)] if worker in self.newcomers else []
        self.newcomers.discard(worker)
        return notices + self._proceed()

    def _on_computed(self, event: WorkerComputed) -> Output:
        late = event.commit.position <= self.commit.position  # of an earlier burst
        if not self.computing or event.commit.generation != self.generation or late:
            return []
        self.computed[event.worker] = event
        return self._finish_burst() if len(self.computed) == len(self.members) else []

    def _on_cut(self, event: WorkerCut) -> Output:
        if event.generation == self.generation:
            self.cuts |= {frozenset((event.worker, peer)) for peer in event.peers if peer in self.members}
        return []

    def _on_failed(self, event: WorkerFailed) -> Output:
        return self._fail(event.traceback, event.worker)

    # -- events of the operator ----------------------------------------------------------------------------------------
    def _on_tick(self, event: Tick) -> Output:
        self._silence.tick(event.seconds)
        reasons = dict.fromkeys(choose_outcasts(self.cuts), "other workers do not reach it")
        if silent := self._silence.silent():
            reasons |= dict.fromkeys(silent, f"silent for {self._silence.patience:g} s")
            self._silence.stretch(2.0)
        self.cuts.clear()
        orders = self._lose(reasons) if reasons else []
        if event.seconds - self._sent < self._silence.step / 2:
            return orders
        self._sent = event.seconds
        return orders + [_outstanding_order(self, worker, state) for worker, state in self.roster.items()]

    def _on_advance(self, event: Advance) -> Output:
        here = self.commit.position
        if event.begin != here:
            return [self._notice("refused", text=f"a burst from {event.begin}: the group is at {here}")]
        if self.burst is not None or event.end <= here:
            busy = f", and computes as far as {self.burst.end.iteration}" if self.burst else ""
            raise SigmaStateError(
                f"Advance to iteration {event.end.iteration}: the group is at iteration {here.iteration}{busy}. Wait"
                " for the notice `committed` or `rewound`, and advance from its position."
            )
        self.burst = event
        return self._proceed()

    def _on_withdraw(self, event: Withdraw) -> Output:
        if self.is_waiting:
            self.burst = None
        return []

    def _on_keep(self, event: KeepState) -> Output:
        self.keeping = True
        return self._proceed()

    def _on_kept(self, event: StateKept) -> Output:
        if event.commit != self.commit:
            return []
        self.kept, self.keeping, self.keeper = event.commit, False, None
        return self._proceed()

    def _on_replace(self, event: ReplaceState) -> Output:
        if self.burst is not None:
            raise SigmaStateError("the state is replaced while a burst is computed. Wait for its notice first.")
        self.commit = self.kept = event.commit
        self.keeping, self.broken = False, True
        self.holders.clear()
        return self._proceed()

    def _on_resize(self, event: Resize) -> Output:
        check_workers(event.workers, self.shards, self.at_least)
        self.size = event.workers
        leaving = self._leave([w for w in sorted(self.roster) if self.roster[w] != MEMBER][::-1][: self._surplus()])
        first, self.numbers = self.numbers, self.numbers + max(-self._surplus(), 0)
        self.roster |= dict.fromkeys(range(first, self.numbers), STARTING)
        return [*leaving, *(StartOrder(worker) for worker in range(first, self.numbers)), *self._proceed()]

    def _on_dismiss(self, event: Dismiss) -> Output:
        return self._end("ended", "training has ended")

    # -- members that leave --------------------------------------------------------------------------------------------
    def _surplus(self) -> int:
        """Return how many workers there are too many; negative if some are missing."""
        return len(self.roster) - self.size

    def _leave(self, workers: list[int]) -> Output:
        """Let workers go that are no longer wanted."""
        for worker in workers:
            self._strike(worker)
        return [LeaveOrder(worker, "fewer workers are wanted") for worker in workers]

    def _strike(self, worker: int) -> None:
        self.broken |= self.roster.pop(worker) == MEMBER
        self._silence.forget(worker)

    def _lose(self, reasons: Mapping[int, str]) -> Output:
        """Fence workers: from now on, all that they send is answered by an order to leave."""
        for worker in reasons:
            self._strike(worker)
        notices: Output = [self._notice("lost", worker, text) for worker, text in reasons.items()]
        return [*notices, *(LeaveOrder(worker, text) for worker, text in reasons.items()), *self._proceed()]

    def _fail(self, text: str, worker: int | None = None) -> Output:
        return [self._notice("failed", worker, text), *self._end("failed", "the run has failed")]

    def _end(self, status: str, reason: str) -> Output:
        leaving: Output = [LeaveOrder(worker, reason) for worker in self.roster]
        self.status, self.burst, self.computing = status, None, False
        self.roster.clear()
        self.computed.clear()
        return leaving

    # -- bursts --------------------------------------------------------------------------------------------------------
    def _finish_burst(self) -> Output:
        """Commit the burst, unless the members disagree about its result."""
        reports = [self.computed[worker] for worker in self.members]
        other = next((r for r in reports if (r.commit, r.digest) != (reports[0].commit, reports[0].digest)), None)
        if other is not None:
            return self._fail(_describe_difference(reports[0], other))
        self.commit, self.burst, self.computing = reports[0].commit, None, False
        self.computed.clear()
        self._silence.stretch(0.5)
        orders: Output = [ApplyOrder(worker, self.generation, self.commit) for worker in self.members]
        records = [report.records for report in reports]
        return [*orders, self._notice("committed", records=records), *self._proceed()]

    # -- from what there is to what is wanted --------------------------------------------------------------------------
    def _proceed(self) -> Output:
        """Return the orders that the present state needs: a new generation, or what is next in this one.

        Those that wait join between bursts or for want of members, and not while others join.
        """
        self.computing &= not self.broken
        orders = self._leave(self._superfluous()) if self._is_settled() else []
        is_open = self._is_settled() and (self.burst is None or len(self.members) < self.at_least)
        if self.broken or (is_open and WAITING in self.roster.values()):
            orders += self._form_generation()
        return orders + self._continue()

    def _is_settled(self) -> bool:
        """Return whether members may go: all hold the state, and none computes."""
        return not self.computing and len(self.joined) == len(self.members)

    def _superfluous(self) -> list[int]:
        """Return the members of the greatest numbers, as many as there are too many workers."""
        return [w for w in self.members[::-1] if w in self.roster][: max(self._surplus(), 0)]

    def _form_generation(self) -> Output:
        """Begin the next generation with the members that are left and all that wait."""
        self.newcomers |= {worker for worker, state in self.roster.items() if state == WAITING}
        self.members = tuple(sorted(worker for worker, state in self.roster.items() if state != STARTING))
        self.roster |= dict.fromkeys(self.members, MEMBER)
        self.generation += 1
        self.joined, self.computed, self.cuts = set(), {}, set()
        self.broken = False
        self.keeper = None
        self.holders &= {*self.members}
        self.newcomers &= {*self.members}
        notices: Output = [self._notice("generation", text=", ".join(map(str, self.members)))]
        notices += [] if self.holders else self._rewind()
        return [*notices, *(_join_order(self, worker) for worker in self.members)]

    def _rewind(self) -> Output:
        """Go back to the state that the operator holds: no member has a later one."""
        self.keeping = False
        if self.commit == self.kept:
            return []
        self.commit, self.burst = self.kept, None
        return [self._notice("rewound")]

    def _continue(self) -> Output:
        """Return what is next in this generation, if it is not under way: a pause, the state to keep, the burst."""
        orders = self._pause_or_go()
        if len(self.joined) < len(self.members) or not self.members:
            return orders
        if self.keeping and self.keeper is None:
            self.keeper = min(self.holders)
            return [*orders, KeepOrder(self.keeper, self.generation, self.commit)]
        if self.keeping or self.paused or self.burst is None or self.computing:
            return orders
        self.computing = True
        return [*orders, *(_compute_order(self, worker) for worker in self.members)]

    def _pause_or_go(self) -> Output:
        short = len(self.members) < self.at_least
        if not short or self.paused:
            self.paused = short
            return []
        self.paused = True
        self.keeping |= self.commit != self.kept
        orders: Output = [PauseOrder(worker, self.generation, self.commit) for worker in self.members]
        return [self._notice("paused", text=f"{len(self.members)} of at least {self.at_least} workers"), *orders]

    def _notice(self, kind: str, worker: int | None = None, text: str = "", records: Any = None) -> Notice:
        return Notice(kind, self.generation, self.commit.position, worker, text, records)


def _join_order(group: WorkerGroup, worker: int) -> GroupOrder:
    donor = min(group.holders, default=None)
    return JoinOrder(worker, group.generation, group.commit, group.members, donor)


def _compute_order(group: WorkerGroup, worker: int) -> GroupOrder:
    if group.burst is None:
        return PingOrder(worker)
    shards = assign_shards(group.shards, group.members)
    return ComputeOrder(worker, group.generation, group.commit, group.burst.end, group.burst.live, shards)


def _outstanding_order(group: WorkerGroup, worker: int, state: str) -> GroupOrder:
    """Return the order that a worker has not answered, or else a question whether it is alive."""
    if state == STARTING:
        return StartOrder(worker)
    if state == MEMBER and worker not in group.joined:
        return _join_order(group, worker)
    if group.computing and worker in group.members and worker not in group.computed:
        return _compute_order(group, worker)
    if worker == group.keeper:
        return KeepOrder(worker, group.generation, group.commit)
    return PingOrder(worker)


def _fence(event: WorkerEvent) -> Output:
    """Return the answer to a worker that is no member: one that was lost and is back, or speaks after the end."""
    return [] if isinstance(event, WorkerLost) else [LeaveOrder(event.worker, "no longer a member")]


def _describe_difference(a: WorkerComputed, b: WorkerComputed) -> str:
    at, of = a.commit.position.iteration, b.commit.position.iteration
    where = f"iteration {at}" if at == of else f"iterations {at} and {of}"
    return (
        f"workers {a.worker} and {b.worker} differ after {where}, from the same state. Some component does not repeat"
        " its results to the bit, or memory is damaged: compare both machines by `sigma diff`."
    )


HANDLERS: dict[type[GroupEvent], Callable[[WorkerGroup, Any], Output]] = {
    WorkerReady: WorkerGroup._on_ready,
    WorkerAlive: lambda group, event: [],
    WorkerJoined: WorkerGroup._on_joined,
    WorkerComputed: WorkerGroup._on_computed,
    WorkerCut: WorkerGroup._on_cut,
    WorkerLost: lambda group, event: group._lose({event.worker: event.reason}),
    StateSent: lambda group, event: [],
    WorkerFailed: WorkerGroup._on_failed,
    Tick: WorkerGroup._on_tick,
    Advance: WorkerGroup._on_advance,
    Withdraw: WorkerGroup._on_withdraw,
    KeepState: WorkerGroup._on_keep,
    StateKept: WorkerGroup._on_kept,
    ReplaceState: WorkerGroup._on_replace,
    Resize: WorkerGroup._on_resize,
    Dismiss: WorkerGroup._on_dismiss,
}
