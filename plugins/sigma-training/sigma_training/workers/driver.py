"""The operator's side of a group: a thread hears the workers, and training waits for their bursts.

Events of workers and ticks reach the group by a thread of its own, so that hooks and people do not hold them up. The
training thread asks for a burst, waits for its notice, and takes the new state: after each burst, the run has it as if
it had been computed here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NoReturn

from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Batches, Burst, Compute, Hook, Iterations
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.contracts.grouping import (
    Advance,
    Blueprint,
    Commit,
    Dismiss,
    GroupEvent,
    GroupOperator,
    KeepState,
    Notice,
    Position,
    ReplaceState,
    Resize,
    StateKept,
    StateSent,
    Tick,
    Transport,
    Withdraw,
)
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaConfigError, SigmaTrainingError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.dumping import Dumper
from sigma_step.graphs import training_step
from sigma_step.steps import Steps
from sigma_training.group.asynchronous import RepeatedStep, read_ages, write_ages
from sigma_training.group.group import WorkerGroup
from sigma_training.group.merging import LocalExchange
from sigma_training.group.sharding import BurstWithdrawn
from sigma_training.history.replay import AGES
from sigma_training.hooks.background import HookCall
from sigma_training.passes import SplitPass, SplitPiece
from sigma_training.session.current import CurrentRun
from sigma_training.session.goals import end_iteration
from sigma_training.session.snapshot import take_snapshot
from sigma_training.session.state import Present, learned_from
from sigma_training.workers.attendance import Attendance
from sigma_training.workers.blueprint import make_blueprint
from sigma_training.workers.calls import describe_hook, send_call
from sigma_training.workers.replica import CALLS, MEASURED, BurstRecords

WAIT = 0.02  # seconds that the thread waits for events
ROWS = ("joined", "lost", "generation")  # notices that are rows of the journal
TRIES = 8  # times that all workers may be lost before a burst is committed


@frozen(eq=False)
class Held:
    """The state that the workers hold, as the run has it."""

    setup: Any
    live: Any
    arrays: Mapping[str, Any]
    iteration: int

    def fits(self, run: Present) -> bool:
        """Return whether the run is in this state; layer state that begins anew with an epoch, workers renew too."""
        begins = not run.setup.feed.iteration_in_epoch(run.state.cursor)
        return self.equals(run, run.setup.model.fresh_state() if begins else ())

    def equals(self, run: Present, but: Collection[str] = ()) -> bool:
        """Return whether the run is in this state, but for some arrays."""
        state = run.state
        if run.setup is not self.setup or state.live is not self.live or state.moment.iteration != self.iteration:
            return False
        return all(value is self.arrays.get(name) for name, value in state.arrays.items() if name not in but)


@define(eq=False)
class GroupDriver:
    """Compute bursts, and run hooks of local scope, by the workers of an operator.

    Args:
        current: The run.
        operator: The settings, and the transport.
        again: Computes bursts in this process, to the same bits; a replay needs no workers.
    """

    current: CurrentRun
    operator: GroupOperator
    again: Compute
    _group: WorkerGroup = field(init=False)
    _transport: Transport | None = field(default=None, init=False)
    _folder: TemporaryDirectory[str] | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _gate: threading.Condition = field(factory=threading.Condition, init=False)
    _notices: deque[Notice] = field(factory=deque, init=False)
    _state: Checkpoint = field(init=False)  # the last one that workers were given, or have sent
    _tables: dict[str, tuple[Hook, Any]] = field(factory=dict, init=False)  # of hooks of local scope, by name
    _error: BaseException | None = field(default=None, init=False)  # which has ended training, such as of the thread
    _held: Held | None = field(default=None, init=False)
    _version: int = field(default=0, init=False)
    _attendance: Attendance = field(factory=Attendance, init=False)
    _lost: int = field(default=0, init=False)  # workers, since the last commit
    _ended: bool = field(default=False, init=False)
    _save: Command = field(init=False)  # when there are too few workers
    _asks: bool = field(default=False, init=False)  # the burst has no iterations

    def __enter__(self) -> GroupDriver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._transport is not None:
            self._end(self._transport)
        if self._folder is not None:
            self._folder.cleanup()
        self.current.show_workers({})

    def _end(self, transport: Transport) -> None:
        """End the workers."""
        try:
            self._tell(Dismiss())
        finally:
            self._ended = True
            assert self._thread is not None
            self._thread.join()
            transport.close()

    # -- bursts --------------------------------------------------------------------------------------------------------
    def compute(self, steps: Iterations, batches: Batches) -> Burst:
        """Return the burst that the workers compute; raise BurstWithdrawn if a command comes while nobody does."""
        if self.current.recorder.replay is not None:
            return self._repeat(steps, batches)
        run = self.current.present
        self._share(run)
        state, setup = run.state, run.setup
        live = {**state.operator_settings(setup), "end": end_iteration(run)}
        records, saved = self._run_burst(len(batches.rows), live)
        if ages := write_ages(records.ages):
            self.current.note({"event": AGES, AGES: ages})
        arrays = {name: setup.to_device(saved.arrays[name]) for name in steps.arrays}
        self._held = Held(setup, state.live, arrays, state.moment.iteration + records.done)
        setup.evaluator.delegate_to(self.measure)
        return Burst(arrays, records.ring, records.done, records.published)

    def _repeat(self, steps: Iterations, batches: Batches) -> Burst:
        """Return a burst of the journal, computed in this process; its gradients have the ages that they had."""
        current = self.current
        if not (ages := current.recorder.ages(current.moment)):
            return self.again(steps, batches)
        current.note({"event": AGES, AGES: ages})
        shards, exchange = self.operator.shards, LocalExchange(current.state.workers(current.setup))
        return RepeatedStep(shards, read_ages(ages, min(shards, batches.rows.shape[1])), exchange)(steps, batches)

    def _run_burst(self, n: int, live: Mapping[str, int | None]) -> tuple[BurstRecords, Checkpoint]:
        """Return the records of a burst and the state after it; it is computed once more if all workers are lost."""
        while True:
            records = self._advance(lambda begin: evolve(begin, iteration=begin.iteration + n), live)
            self._tell(KeepState())
            if self._await("kept", "rewound").kind == "kept":
                return records[0], self._state

    def _ask(self, live: Mapping[str, Any]) -> Sequence[Any]:
        """Return what the members report of a burst without iterations, which leaves the state as it is."""
        self._raise_version()
        self._asks = True
        try:
            return self._advance(lambda begin: evolve(begin, version=self._version), live)
        finally:
            self._asks = False

    def _raise_version(self) -> None:
        """Take a version of the position that no earlier burst has had."""
        held = 0 if self._transport is None else self._group.commit.position.version
        self._version = 1 + max(self._version, held)

    def _advance(self, end: Callable[[Position], Position], live: Mapping[str, Any]) -> Sequence[Any]:
        """Return what the members report of a burst, once it is committed."""
        while True:
            with self._gate:
                if self._group.burst is None:  # else the group has gone back before it was ordered
                    begin = self._group.commit.position
                    self._tell(Advance(begin, end(begin), live))
            if (notice := self._await("committed", "rewound")).kind == "committed":
                self._lost = 0
                return notice.records  # type: ignore[no-any-return]

    # -- hooks of local scope ------------------------------------------------------------------------------------------
    def run_calls(self, calls: Sequence[HookCall]) -> bool:
        """Run hooks of local scope in the workers, at the present state; return whether these could.

        A replay has none; nor has a run that waits for workers, if a command waits for it.
        """
        if self.current.recorder.replay is not None:
            return False
        run = self.current.present
        self._share(run)
        try:
            reports = self._ask({CALLS: [send_call(call, self._table(call.name, call.hook), run) for call in calls]})
        except BurstWithdrawn:
            return False
        results = {scope: result for report in reports for scope, result in report.items()}
        for call in calls:
            result = results[call.scope]
            call.take_result(result.row, result.seconds, result.files)
            if result.traceback:
                self.current.log(f"hook {call.name!r} failed in {call.scope.rstrip('.')}: {result.traceback}")
        return True

    def _table(self, name: str, hook: Hook) -> Any:
        """Return the table by which workers make a hook."""
        if name not in self._tables or self._tables[name][0] is not hook:
            self._tables[name] = hook, describe_hook(f"{self.current.setup.name}.hooks.{name}", hook)
        return self._tables[name][1]

    # -- passes over a split -------------------------------------------------------------------------------------------
    def measure(self, steps: Steps, what: SplitPass) -> list[SplitPiece] | None:
        """Return what the workers measure of a pass over a split; None if it is to be measured in this process.

        So it is if there is one worker, or if they do not hold the state, or cannot make the metrics.
        """
        run = self.current.present
        if self._ended or self._held is None or steps.arrays is not run.state.arrays or not self._held.equals(run):
            return None
        if self._group.size == 1 or (plain := write_pass(what)) is None:
            return None
        try:
            reports = self._ask({MEASURED: plain})
        except BurstWithdrawn:
            return None
        if error := next((report.error for report in reports if report.error), ""):
            self.current.log(f"a pass over the split {what.on!r} is measured by the operator alone: {error}")
            return None
        pieces = {number: part for report in reports for number, part in report.pieces.items()}
        return [piece for number in sorted(pieces) for piece in pieces[number]]

    # -- the state of the run ------------------------------------------------------------------------------------------
    def _share(self, run: Present) -> None:
        """Let the workers have the state of the run, and let there be as many as are wanted."""
        if self._held is None or not self._held.fits(run):
            self._give(run)
            self._held = Held(run.setup, run.state.live, run.state.arrays, run.state.moment.iteration)
        if self._group.size != (workers := run.state.workers(run.setup)):
            self._tell(Resize(workers))

    def _give(self, run: Present) -> None:
        """Let the workers have the state of the run: they start with it, or it replaces theirs."""
        self._state = saved = without_hooks(take_snapshot(run))
        self._raise_version()
        position = Position(run.state.moment.epoch, run.state.moment.iteration, self._version)
        if self._transport is None:
            self._start(Commit(position), saved)
            return
        commit = Commit(position, self._group.generation)
        self._transport.provide(commit, lambda: saved)
        self._tell(ReplaceState(commit))

    def _start(self, commit: Commit, saved: Checkpoint) -> None:
        """Start the workers."""
        state, setup, operator = self.current.state, self.current.setup, self.operator
        self._save = self.current.commands.make("save", keep=False)
        if not setup.model.optimisers:
            training_step(setup.model, setup.feed.batch_size)  # raises what is wrong here, before a worker does
        for name, hook in setup.order.hooks.items():
            if hook.scope == "local" and not hook.background:
                self._table(name, hook)  # the same
        self._folder = TemporaryDirectory(prefix="sigma-")
        trainer, folder = self.current.environment.trainers[setup.name], Path(self._folder.name)
        blueprint = make_blueprint(trainer, learned_from(state, setup), folder, operator)
        self._group = WorkerGroup(operator.shards, operator.at_least, operator.lost_after, commit)
        self._transport = start_transport(operator, blueprint, state.workers(setup))
        self._transport.provide(commit, lambda: saved)
        self._thread = threading.Thread(target=self._listen, name="sigma-group", daemon=True)
        self._thread.start()

    # -- the thread that hears the workers -----------------------------------------------------------------------------
    def _listen(self) -> None:
        assert self._transport is not None
        following = 0.0
        try:
            while not self._ended:
                for event in self._transport.events(WAIT):
                    self._tell(event)
                    if isinstance(event, StateSent):
                        self._keep(event)
                if (now := time.monotonic()) >= following:
                    following = now + self.operator.lost_after / 8
                    self._tell(Tick(now))
        except BaseException as error:  # raised again in the training thread
            with self._gate:
                self._error = error
                self._gate.notify_all()

    def _keep(self, event: StateSent) -> None:
        """Keep a state that a worker has sent, if it is the committed one."""
        assert self._transport is not None
        with self._gate:
            if event.commit != self._group.commit:
                return
            self._transport.provide(event.commit, lambda: event.state)
            self._state = event.state
            self._tell(StateKept(event.commit))
            self._notices.append(Notice("kept", self._group.generation, event.commit.position))
            self._gate.notify_all()

    def _tell(self, event: GroupEvent) -> None:
        """Tell the group of an event; send its orders, and keep its notices for the training thread."""
        assert self._transport is not None
        with self._gate:
            outputs = self._group.on(event)
            self._attendance.note(event, outputs, self._group.roster, self.current.setup.feed.batch_size)
            self._transport.send([output for output in outputs if not isinstance(output, Notice)])
            self._notices.extend(output for output in outputs if isinstance(output, Notice))
            self._gate.notify_all()

    # -- the training thread waits -------------------------------------------------------------------------------------
    def _await(self, *kinds: str) -> Notice:
        """Return the next notice of these kinds; act on those before it."""
        while True:
            with self._gate:
                if self._error is not None:
                    raise self._error
                notice = self._notices.popleft() if self._notices else None
                if notice is None:
                    self._gate.wait(WAIT)
            if notice is None:
                self._look_for_commands()
            elif notice.kind in kinds:
                return notice
            else:
                self._act(notice)

    def _act(self, notice: Notice) -> None:
        if notice.kind in ROWS:
            about = {"worker": notice.worker} if notice.kind != "generation" else {"generation": notice.generation}
            self.current.show_workers(self._attendance.rows)
            self.current.note({"event": notice.kind, **about, **({"text": notice.text} if notice.text else {})})
        if notice.kind == "lost":
            self._replace_worker(notice)
        elif notice.kind == "paused":
            self._wait_for_workers(notice)
        elif notice.kind == "failed":
            who = "the workers" if notice.worker is None else f"worker {notice.worker}"
            self._fail(f"{who}: {notice.text.strip()}")

    def _wait_for_workers(self, notice: Notice) -> None:
        """Say so; save a checkpoint, if there is a folder, unless training has not begun."""
        if notice.generation == 0:
            self.current.log("workers start")
            return
        self.current.log(f"waits for workers: there are {notice.text}")
        self.current.commands.post(self._save)

    def _replace_worker(self, notice: Notice) -> None:
        self._lost += 1
        self.current.log(f"worker {notice.worker} is lost: {notice.text}. Another one is requested.")
        if self._lost > TRIES * self._group.size:
            self._fail(
                f"{self._lost} workers were lost, and no burst was computed: the last one, {notice.text}. Look at what"
                " the workers have written to the terminal."
            )
        self._tell(Resize(self._group.size))

    def _fail(self, text: str) -> NoReturn:
        """End training: raise SigmaTrainingError, now and whenever the workers are asked again."""
        self._error = SigmaTrainingError(text)
        raise self._error

    def _look_for_commands(self) -> None:
        """Withdraw the burst if the group waits for workers, and a command for the burst.

        The driver's own save withdraws iterations alone: hooks and passes would run here, which may have ended workers.
        """
        with self._gate:
            own = self._save if self._asks else None
            if not (self._group.is_waiting and self.current.queue.has_requests(own)):
                return
            self._tell(Withdraw())
        raise BurstWithdrawn


def without_hooks(saved: Checkpoint) -> Checkpoint:
    """Return a snapshot for workers, which have no hooks: those of local scope are sent with each call."""
    changes = {name: change for name, change in saved.values["changes"].items() if name not in ("hooks", "times")}
    return evolve(saved, values={**saved.values, "changes": changes, "hooks": {}})


def write_pass(what: SplitPass) -> SplitPass | None:
    """Return a pass with its metrics as plain values; None for metrics that other processes cannot make."""
    try:
        return what if what.metrics is None else evolve(what, metrics=Dumper(catalogue()).dump(what.metrics))
    except SigmaConfigError:  # such as a class of a script
        return None


def start_transport(operator: GroupOperator, blueprint: Blueprint, workers: int) -> Transport:
    """Return a transport that is ready for workers; close it if it cannot be started."""
    transport = operator.connect()
    try:
        transport.start(blueprint, workers)
    except BaseException:
        transport.close()
        raise
    return transport
