"""The training loop: bursts, and what happens at the boundaries between them.

An operator's loop is: ``boundary()`` (apply commands; False when training is over) - ``distance()`` (iterations until
something is due) - ``advance(n)`` (one burst) - ``settle()`` (publish, run due hooks) - again.  All four belong to the
training thread; other threads send requests, which are answered at a boundary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import partial
from math import inf
from typing import Any, Protocol

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.clock import Moment, TimeScale
from sigma_kernel.contracts import Batches, Burst, Compute, Iterations, Merger
from sigma_kernel.errors import SigmaComponentError, SigmaDifferenceError, SigmaError, error_text
from sigma_step.measuring import curves
from sigma_step.steps import Iteration, compute_fused
from sigma_training.group.averaging import choose_step
from sigma_training.group.merging import LocalExchange
from sigma_training.group.sharding import BurstWithdrawn
from sigma_training.history.metrics import EACH
from sigma_training.hooks.background import HookCall
from sigma_training.hooks.order import REPEATED
from sigma_training.hooks.outlook import check_end, end_reason, renew
from sigma_training.session import goals
from sigma_training.session.ahead import AheadCompiler
from sigma_training.session.checkpoint_policy import CheckpointPolicy
from sigma_training.session.current import CurrentRun
from sigma_training.session.epochal import pending_changes
from sigma_training.session.hook_runner import HookRunner
from sigma_training.session.keeping import leave_kept
from sigma_training.session.observing import observe
from sigma_training.session.pace import Pace
from sigma_training.session.progress import NONE, Phase, TrainingProgress
from sigma_training.session.reconfigure import with_components
from sigma_training.session.recovery import Recovery, recovering
from sigma_training.session.replayer import Replayer
from sigma_training.session.snapshot import take_snapshot
from sigma_training.session.state import LastBurst, Present, count_burst, next_rounds, renew_layer_state
from sigma_training.session.timing import Timed

NOTHING: Mapping[str, np.ndarray] = {}


class Driver(Protocol):
    """What trains by workers elsewhere."""

    def compute(self, steps: Iterations, batches: Batches) -> Burst:
        """Return the burst that the workers compute."""

    def run_calls(self, calls: Sequence[HookCall]) -> bool:
        """Run hooks of local scope in the workers; return whether these could."""


Drive = Callable[[CurrentRun, Any, Compute], AbstractContextManager[Driver]]  # of a GroupOperator


@define(eq=False, repr=False)
class TrainingLoop:
    """Train the current run: the ``Work`` that an operator drives."""

    current: CurrentRun
    hooks: HookRunner
    checkpoints: CheckpointPolicy
    replayer: Replayer
    recovery: Recovery
    drive: Drive
    _compiler: AheadCompiler = field(factory=AheadCompiler, init=False)
    _settled: bool = field(default=True, init=False)

    @property
    def moment(self) -> Moment:
        """Return the current moment."""
        return self.current.moment

    # -- how operators train -------------------------------------------------------------------------------------------
    def train(self, seconds: float, compute: Compute | None = None, again: Compute | None = None) -> None:
        """Train until the end, in bursts of at most so many seconds; see :class:`Pace`."""
        pace = Pace(seconds)
        while self.boundary():
            n = pace.limit_burst(self.distance())
            began = time.perf_counter()
            try:
                done = self.advance(n, compute, again)
            except BurstWithdrawn:
                continue
            pace.learn(done, time.perf_counter() - began)
            self.settle()

    def shard(self, shards: int, merger: Merger | None, pool: Executor | None) -> Compute:
        """Return what computes bursts in shards of every batch; the fused program if there is one shard."""
        if shards == 1:
            return compute_fused

        def compute_sharded(steps: Iterations, batches: Batches) -> Burst:
            setup, state = self.current.setup, self.current.state
            exchange = LocalExchange(state.workers(setup), merger, pool)
            return choose_step(shards, state.every(setup), exchange, merger is not None)(steps, batches)

        return compute_sharded

    def train_in_group(self, operator: Any) -> None:
        """Train until the end by the workers of a GroupOperator."""
        again = self.shard(operator.shards, None, None)
        with self.drive(self.current, operator, again) as driver:
            self.hooks.run_elsewhere(driver.run_calls)
            try:
                self.train(operator.burst_seconds, driver.compute, again)
            finally:
                self.hooks.run_elsewhere(None)

    # -- begin and end -------------------------------------------------------------------------------------------------
    def begin(self, epochs: int | None = None, iterations: int | None = None) -> None:
        """Start training, optionally for this many more epochs or iterations, in the thread that was claimed.

        A state that was saved during training continues it, to its own goals if no others are given.
        """
        current, recorder = self.current, self.current.recorder
        replay, before, self._settled = recorder.replay, current.progress, True
        self.recovery.record_start(current.setup, current.state, before, recorder.position)
        if replay is not None and (row := replay.begin(self.moment.iteration)) is not None:
            epochs, iterations = row["epochs"], row["iterations"]
        current.set_progress(begin_progress(current.present, epochs, iterations))
        self.replayer.remember_goals(before if before.underway else current.progress)
        current.record_numbers()  # again after a resume
        if goals.is_at_end(current.present) and current.progress.phase is not Phase.ENDED:
            current.set_progress(current.progress.with_phase(Phase.ENDING))
        current.read_stopwatch()
        if not before.underway:
            self._begin_anew(epochs, iterations)
        elif replay is None:
            self.replayer.train_on()
        if self.moment.iteration == 0:
            recorder.keep(self.moment, take_snapshot(current.present))
        self._end_if_nothing_is_left(before.cause)

    def _begin_anew(self, epochs: int | None, iterations: int | None) -> None:
        """Begin training that no snapshot continues: write a row, and run the hooks that are due at a start."""
        current = self.current
        current.note({"event": "begin", "epochs": epochs, "iterations": iterations})
        current.put(leave_kept(current.present))
        if epochs or iterations:
            renew(current.setup.order, current.state.memory)
        self.hooks.tick(TimeScale.START)

    def _end_if_nothing_is_left(self, cause: str) -> None:
        """End training that has ended before, for the same cause."""
        current = self.current
        run, log = current.present, current.recorder.log
        if goals.is_at_end(run) and run.progress.end == NONE:
            log(f"nothing to train: {goals.total_epochs(run):g} epochs are over already")
        if reason := end_reason(run.setup.order, run.state.memory, current.lookup, run.state.moment):
            log(f"nothing to train: {reason}")
            current.set_progress(run.progress.ending(cause))

    def check_end(self) -> None:
        """Raise SigmaConfigError if training would begin that nothing ends; a resumed one goes on as it began."""
        run = self.current.present
        if self.current.recorder.replay is None and not run.progress.underway:
            check_end(run.setup.name, goals.total_epochs(run), run.setup.order.hooks)
            goals.check_schedules(run)

    def end(self) -> None:
        """Run the hooks that are due at a stop, and end training."""
        current = self.current
        current.count_seconds()
        self.hooks.finish()
        if current.progress.phase is not Phase.ENDED:  # else a snapshot was taken after them
            current.set_progress(current.progress.with_phase(Phase.ENDED))
            self.hooks.tick(TimeScale.STOP)
        about: dict[str, Any] = {"failed": False}
        if not current.present.last.finite:  # a hook has stopped it
            about["good"] = self._save_good()
        self._close(Phase.STOPPED, about)

    def fail(self, error: BaseException) -> None:
        """End training that failed: save the newest good state first, unless training was aborted.

        An error of saving it is added to the notes of ``error``.
        """
        about: dict[str, Any] = {"failed": True}
        try:
            self.current.count_seconds()
            if isinstance(error, Exception) and not isinstance(error, SigmaDifferenceError):
                about |= {"why": error_text(error), "good": self._save_good()}
                self.hooks.report_failure(error_text(error))
        except SigmaError as other:
            error.add_note(error_text(other))
        finally:
            self._close(Phase.FAILED, about)

    def _save_good(self) -> int | None:
        self.recovery.find_good(self.current.recorder.log)
        return self.checkpoints.save_good(self.recovery.found)

    def _close(self, phase: Phase, about: Mapping[str, Any]) -> None:
        current = self.current
        try:
            current.write_metrics(force=True)
            current.note({"event": "end", **about})
        finally:
            current.background.forget()
            self._compiler.close()
            current.set_progress(current.progress.with_phase(phase))

    def leave(self, phase: Phase | None = None) -> None:
        """Release the training thread."""
        if phase is not None:
            self.current.set_progress(self.current.progress.with_phase(phase))
        self.current.queue.release()

    # -- the boundary --------------------------------------------------------------------------------------------------
    @recovering
    def boundary(self) -> bool:
        """Apply commands, and wait here while paused; return whether training continues."""
        while goes_on := self._answer():
            if not self._begin_epoch():
                break
        return goes_on

    def _begin_epoch(self) -> bool:
        """At the beginning of an epoch, put edits of the data and the batch size in force; return whether any changed.

        Commands may follow at the same iteration, in a replay too.
        """
        run = self.current.present
        feed, state, data = run.setup.feed, run.state, pending_changes(run.state.changes)
        if data == state.data or feed.iteration_in_epoch(state.cursor):
            return False
        new = with_components(run, evolve(state, data=data))
        setup, start = new.setup, new.setup.feed.start()
        self.current.adopt(new.with_state(evolve(new.state, cursor=evolve(start, epoch=state.cursor.epoch))))
        counts = {split: setup.counts(split) for split in data.get("edits", ())}
        self.current.note({"event": "data", "batch_size": setup.feed.batch_size, "splits": counts})
        return True

    def _answer(self) -> bool:
        """Apply commands, and wait while paused; return whether training continues."""
        current = self.current
        if (replay := current.recorder.replay) is not None:
            self.replayer.replay_rows(replay)
            if replay.rows and replay.goes_on:
                self.replayer.leave_early(replay)
                return not current.progress.is_over  # other commands are applied after the replay
        else:
            self.hooks.catch_up()
        while True:
            current.queue.serve(lambda: current.progress.is_over)
            if current.progress.is_over or current.progress.phase is not Phase.PAUSED:
                return not current.progress.is_over
            current.write_metrics(force=True)  # so that readers see everything that was measured before the pause
            current.queue.wait()

    def distance(self) -> int:
        """Return the number of iterations until something is due, at least 1."""
        replay = self.current.recorder.replay
        row = None if replay is None else replay.iterations_to_next(self.moment.iteration)
        return goals.distance(self.current.present, row)

    # -- the burst -----------------------------------------------------------------------------------------------------
    @recovering
    def advance(self, n: int, compute: Compute | None = None, again: Compute | None = None) -> int:
        """Run at most ``n`` iterations, or as many as end a round of replicas, as one burst; return how many were run.

        Layer state that begins anew does so at the beginning of an epoch.  The feed gives a block on the device and the
        rows of its next minibatches, of which the compiled step takes one in each iteration.  ``compute`` replaces the
        fused program, for operators that cut batches into shards; ``again`` computes iterations once more.
        """
        current, run = self.current, self.current.present
        if not self._settled:
            raise SigmaComponentError("operator: calls work.advance() again before work.settle(). Settle each burst.")
        self._compiler.look_ahead(run.setup.programs, run.state.moment.iteration, goals.latest_end, run)
        self.recovery.record_start(run.setup, run.state, run.progress, current.recorder.position, again or compute)
        last = evolve(run.last, observed=NOTHING) if run.last.observed else run.last
        current.put(Present(run.setup, renew_layer_state(run.state, run.setup), run.progress, last))
        with Timed(current.phases, "data"):
            batches = self.batches(n)
            for lane in () if again else batches.lanes:  # workers read their own
                len(lane.block)
        compute = compute or compute_fused
        observed = observed_after(current.present, batches)
        done = self._observe(observed, batches, compute, again) if observed else self._compute(batches, compute)
        self.recovery.record_burst(current.state, done, current.present.last.finite)
        self._settled = False
        return done

    def batches(self, most: int) -> Batches:
        """Return the next minibatches of the block that the cursor is in; if replicas are averaged, whole rounds.

        A burst whose gradients lacked updates is replayed whole.
        """
        replayed = len(self.current.recorder.ages(self.moment).split())
        return next_rounds(self.current.state, self.current.setup, replayed or most)

    def _observe(
        self, wanted: Mapping[str, tuple[str, ...]], batches: Batches, compute: Compute, again: Compute | None
    ) -> int:
        """Run a burst whose last iteration is observed."""
        before, last = (evolve(batches, rows=rows) for rows in (batches.rows[:-1], batches.rows[-1:]))
        done = self._compute(before, compute) if len(before.rows) else 0
        run = self.current.present
        if done == len(before.rows) and (not done or run.last.finite):
            observed = observe(run, last, wanted)
            repeats = REPEATED in wanted.get("global", ())
            done += self._compute(last, compute, observed, (again or compute) if repeats else None)
        return done

    def _compute(
        self,
        batches: Batches,
        compute: Compute,
        observed: Mapping[str, np.ndarray] = NOTHING,
        again: Compute | None = None,
    ) -> int:
        steps = goals.steps_to_end(self.current.present)
        begun = Iteration.begin(again, steps, batches) if again else None
        with Timed(self.current.phases, "burst"):
            result = compute(steps, batches)
        finite = bool(np.isfinite(result.ring["loss"]).all())
        self._count(batches, result, LastBurst(observed, begun and begun.with_outcome(result), finite))
        return result.done

    def _count(self, batches: Batches, result: Burst, last: LastBurst) -> None:
        """Take the new state of a burst, count its iterations, and publish what it measured."""
        current, run = self.current, self.current.present
        before = run.state.moment
        state, measurements = count_burst(run.state, run.setup, batches, result, current.read_stopwatch())
        current.put(Present(run.setup, state, run.progress, last))
        current.show(result.published)
        current.recorder.record_values(curves(measurements), before, state.moment)

    # -- after the burst -----------------------------------------------------------------------------------------------
    @recovering
    def settle(self) -> None:
        """Run the hooks that are due, and check the goals."""
        current, self._settled = self.current, True
        with self.checkpoints.save_together():
            before = self.hooks.run_due()
            run = current.present
            now = run.state.moment  # a hook may have rewound the run
            current.write_metrics(force=before.epoch < now.epoch <= EACH)
            snapshot = partial(take_snapshot, run)
            current.recorder.remember(now, snapshot, run.setup.order, now.epoch > before.epoch)
            if run.progress.due_to_pause(now.iteration, now.epoch):
                current.commands.pause()
            if goals.is_at_end(current.present):
                current.set_progress(current.progress.ending())


def observed_after(run: Present, batches: Batches) -> dict[str, tuple[str, ...]]:
    """Return the addresses to observe at the last iteration of a burst, by the scope of the hooks that read them.

    Hooks that go by seconds may be due at any.
    """
    if not (observers := run.setup.order.observers):
        return {}
    now, n, feed = run.state.moment, len(batches.rows), run.setup.feed
    turns = feed.iteration_in_epoch(run.state.cursor) + n >= feed.iterations_per_epoch
    then = now.advance(n, batches.rows.size, inf, int(turns))
    due = run.setup.order.due(run.state.memory, now, then)
    every = [(run.setup.order.hooks[name].scope, a) for name in due for a in observers.get(name, ())]
    return {scope: tuple(dict.fromkeys(a for s, a in every if s == scope)) for scope, _ in every}


def begin_progress(run: Present, epochs: int | None, iterations: int | None) -> TrainingProgress:
    """Return the progress of a run that begins, or goes on to its own goals if no others are given."""
    before = run.progress
    if before.underway and epochs is None and iterations is None:
        return evolve(before, interrupted=False)
    phase = Phase.PAUSED if before.phase is Phase.PAUSED else Phase.RUNNING
    return TrainingProgress(phase, end=goals.goal_after(run, iterations, epochs), start=run.state.moment.start + 1)
