"""The operator's side of a group: a thread hears the workers, and training waits for their bursts.

Events of workers and ticks reach the group by a thread of its own, so that hooks and people do not hold them up. The
training thread asks for a burst, waits for its notice, and takes the new state: after each burst, the run has it as if
it had been computed here.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from attrs import define, field, frozen

from sigma_kernel.contracts import Batches, Burst, Compute, Iterations
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
from sigma_kernel.errors import SigmaTrainingError
from sigma_step.graphs import training_step
from sigma_training.group.group import WorkerGroup
from sigma_training.group.sharding import BurstWithdrawn
from sigma_training.session.current import CurrentRun
from sigma_training.session.snapshot import take_snapshot
from sigma_training.session.state import Present, learned_from
from sigma_training.workers.blueprint import make_blueprint
from sigma_training.workers.replica import BurstRecords

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
        state, setup = run.state, run.setup
        if setup is not self.setup or state.live is not self.live or state.moment.iteration != self.iteration:
            return False
        fresh = set() if setup.feed.iteration_in_epoch(state.cursor) else {*setup.model.fresh_state()}
        return all(value is self.arrays.get(name) for name, value in state.arrays.items() if name not in fresh)


@define(eq=False)
class GroupDriver:
    """Compute bursts by the workers of an operator.

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
    _state: StateSent | None = field(default=None, init=False)  # the last one that a worker has sent
    _error: BaseException | None = field(default=None, init=False)  # of the thread
    _held: Held | None = field(default=None, init=False)
    _version: int = field(default=0, init=False)
    _lost: int = field(default=0, init=False)  # workers, since the last commit
    _ended: bool = field(default=False, init=False)

    def __enter__(self) -> Compute:
        return self.compute

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._transport is not None:
            self._end(self._transport)
        if self._folder is not None:
            self._folder.cleanup()

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
            return self.again(steps, batches)
        run = self.current.present
        if self._held is None or not self._held.fits(run):
            self._give(run)
        if self._group.size != (workers := run.state.workers(run.setup)):
            self._tell(Resize(workers))
        records, state = self._run_burst(len(batches.rows), workers)
        arrays = {name: run.setup.to_device(state.arrays[name]) for name in steps.arrays}
        self._held = Held(run.setup, run.state.live, arrays, run.state.moment.iteration + records.done)
        return Burst(arrays, records.ring, records.done, records.published)

    def _run_burst(self, n: int, workers: int) -> tuple[BurstRecords, Checkpoint]:
        """Return the records of a burst and the state after it; it is computed once more if all workers are lost."""
        while True:
            begin = self._group.commit.position
            end = Position(begin.epoch, begin.iteration + n, begin.version)
            self._tell(Advance(begin, end, {"workers": workers}))
            committed = self._await("committed", "rewound")
            if committed.kind == "rewound":
                continue
            self._lost = 0
            self._tell(KeepState())
            if self._await("kept", "rewound").kind == "kept":
                assert self._state is not None
                return committed.records, self._state.state

    # -- the state of the run ------------------------------------------------------------------------------------------
    def _give(self, run: Present) -> None:
        """Let the workers have the state of the run: they start with it, or it replaces theirs."""
        saved, self._version = take_snapshot(run), self._version + 1
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
        if not setup.model.optimisers:
            training_step(setup.model, setup.feed.batch_size)  # raises what is wrong here, before a worker does
        self._folder = TemporaryDirectory(prefix="sigma-")
        trainer, folder = self.current.environment.trainers[setup.name], Path(self._folder.name)
        blueprint = make_blueprint(trainer, learned_from(state, setup), folder, operator.lost_after)
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
            self._state = event
            self._tell(StateKept(event.commit))
            self._notices.append(Notice("kept", self._group.generation, event.commit.position))
            self._gate.notify_all()

    def _tell(self, event: GroupEvent) -> None:
        """Tell the group of an event; send its orders, and keep its notices for the training thread."""
        assert self._transport is not None
        with self._gate:
            outputs = self._group.on(event)
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
            self.current.note({"event": notice.kind, **about, **({"text": notice.text} if notice.text else {})})
        if notice.kind == "lost":
            self._replace_worker(notice)
        elif notice.kind == "paused":
            self._wait_for_workers(notice)
        elif notice.kind == "failed":
            who = "the workers" if notice.worker is None else f"worker {notice.worker}"
            raise SigmaTrainingError(f"{who}: {notice.text.strip()}")

    def _wait_for_workers(self, notice: Notice) -> None:
        """Say so; save a checkpoint, if there is a folder, unless training has not begun."""
        if notice.generation == 0:
            self.current.log("workers start")
            return
        self.current.log(f"waits for workers: there are {notice.text}")
        self.current.commands.post(self.current.commands.make("save", keep=False))

    def _replace_worker(self, notice: Notice) -> None:
        self._lost += 1
        self.current.log(f"worker {notice.worker} is lost: {notice.text}. Another one is started.")
        if self._lost > TRIES * self._group.size:
            raise SigmaTrainingError(
                f"{self._lost} workers were lost, and no burst was computed: the last one, {notice.text}. Look at what"
                " the workers have written to the terminal."
            )
        self._tell(Resize(self._group.size))

    def _look_for_commands(self) -> None:
        """Withdraw the burst if the group waits for workers, and a command for the burst."""
        with self._gate:
            if not (self._group.is_waiting and self.current.queue.has_requests):
                return
            self._tell(Withdraw())
        raise BurstWithdrawn


def start_transport(operator: GroupOperator, blueprint: Blueprint, workers: int) -> Transport:
    """Return a transport that is ready for workers; close it if it cannot be started."""
    transport = operator.connect()
    try:
        transport.start(blueprint, workers)
    except BaseException:
        transport.close()
        raise
    return transport
