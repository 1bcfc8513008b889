"""The session: a prepared trainer, its training loop, the commands that it applies, and what its hooks see of it.

An operator's loop is: ``boundary()`` (apply commands; False when training is over) - ``distance()`` (iterations until
something is due) - ``advance(n)`` (one burst) - ``settle()`` (publish, run due hooks) - again.  All four belong to the
training thread; other threads send requests, which are answered at a boundary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.arrays import protected
from sigma_kernel.clock import Moment, Timed, TimeScale, scaled, until_due
from sigma_kernel.contracts import Arrays, Batches, Burst, Compute, Hook, Metric, RowLosses
from sigma_kernel.contracts.storing import Checkpoint, Checkpoints
from sigma_kernel.encoding import unpacked
from sigma_kernel.errors import (
    SigmaCheckpointError,
    SigmaDifferenceError,
    SigmaError,
    SigmaStateError,
    SigmaTrainingError,
    said,
)
from sigma_kernel.graph.node import Spec
from sigma_kernel.registry.addresses import literal
from sigma_kernel.registry.registry import Registry
from sigma_kernel.training.checkpoints.compatibility import made_with, with_counts
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.commands.changes import updated
from sigma_kernel.training.commands.queue import Queue, Request
from sigma_kernel.training.data.dataset import gathered
from sigma_kernel.training.history.metrics import EACH
from sigma_kernel.training.history.recorder import Recorder
from sigma_kernel.training.history.replay import RESUMED, STOP, Replay, Row
from sigma_kernel.training.hooks.background import Background, Firing
from sigma_kernel.training.hooks.order import REPEATED, check_read, check_write, ends, reads, seen
from sigma_kernel.training.hooks.outlook import check_end, ended, renew
from sigma_kernel.training.hooks.runner import Budgets, fail, holds, limit
from sigma_kernel.training.names import KEPT
from sigma_kernel.training.session.bindings import PHASES, Binding, bindings, numbers, settable, shown, written
from sigma_kernel.training.session.editing import edited
from sigma_kernel.training.session.epochal import foresee, wanted
from sigma_kernel.training.session.progress import NONE, Goal, Phase, TrainingProgress, concerned
from sigma_kernel.training.session.reconfigure import reconfigured
from sigma_kernel.training.session.recovery import Recovery, check_goes_on, recovering
from sigma_kernel.training.session.snapshot import reconciled, restored, snapshot
from sigma_kernel.training.session.state import RunState, Setup, count_burst, renew_layer_state, steps_of
from sigma_kernel.training.session.undo import recorded, undoable, undone
from sigma_kernel.training.step.evaluator import Evaluator
from sigma_kernel.training.step.initial import Initial
from sigma_kernel.training.step.measuring import curves
from sigma_kernel.training.step.model import LAYERS, OPTIMISERS
from sigma_kernel.training.step.steps import Iteration, Steps, fused
from sigma_kernel.training.step.weights import weighed

NUMBERS = (int, float)
LATER = "Lower the learning rate, clip the gradients, or add a nan_guard hook."
FIRST = (
    "No update was made yet: look for data or labels that the cost does not accept, such as more labels than ctc has "
    "steps for, for numbers that are too large for the precision, and for initial values that are too large."
)
Saves = list[tuple[str, commands.Save]]  # wanted at one boundary, each with the hook that wants it


@define(eq=False, kw_only=True, repr=False)
class Session:
    """One prepared trainer: its setup, its state and its progress."""

    setup: Setup
    initial: Initial
    recorder: Recorder
    registry: Registry
    state: RunState = field(init=False)
    progress: TrainingProgress = field(factory=TrainingProgress, init=False)
    queue: Queue = field(factory=Queue, init=False)
    background: Background = field(init=False)
    phases: dict[str, float] = field(factory=lambda: dict.fromkeys(PHASES, 0.0), init=False)  # seconds
    observed: Mapping[str, np.ndarray] = field(factory=dict, init=False)
    iteration: Iteration | None = field(default=None, init=False)  # the last one, if a hook is due that repeats it
    workers: int = field(default=1, init=False)
    saver: Checkpoints | None = field(default=None, init=False)
    recovery: Recovery = field(factory=Recovery, init=False)
    finite: bool = field(default=True, init=False)  # the last loss
    _settled: Moment = field(factory=Moment, init=False)
    _budgets: Budgets = field(factory=Budgets, init=False)
    _bound: dict[str, Binding] = field(factory=dict, init=False)
    _saves: Saves | None = field(default=None, init=False)  # of hooks that are due together
    _changing: bool = field(default=False, init=False)  # a command is applied that is undone as a whole
    # the goals before those of a replayed ``begin``
    _own_goals: TrainingProgress = field(factory=TrainingProgress, init=False)
    _published: dict[str, Any] = field(factory=dict, init=False)  # that the present state alone holds, or others
    _stays_paused: bool = field(default=False, init=False)  # after a resume
    _goes_back: int | None = field(default=None, init=False)  # to this iteration, once the journal is replayed
    _counted: float = field(factory=time.perf_counter, init=False)  # when seconds were last counted

    def __attrs_post_init__(self) -> None:
        """Copy the initial state to the device, and bind every address."""
        self.background = Background(self.setup.evaluator.aside(), self.recorder.log)
        self.state = restored(Checkpoint(self.initial.arrays(), {}), self.setup)
        for placed in self.setup.model.network.layers:
            self.registry.branch(f"{LAYERS}{placed.name}", placed.kind)
        self._rebind()
        self._settle_numbers()

    # -- the loop ------------------------------------------------------------------------------------------------------
    def begin(self, epochs: int | None = None, iterations: int | None = None) -> None:
        """Start training, optionally for this many more epochs or iterations, in the thread that was claimed.

        A state that was saved during training continues it, to its own goals if no others are given.
        """
        replay, before = self.recorder.replay, self.progress
        self.recovery.record_start(self.setup, self.state, before, self.recorder.position)
        if replay is not None and (row := replay.begin(self.moment.iteration)) is not None:
            epochs, iterations = row["epochs"], row["iterations"]
        if before.underway and epochs is None and iterations is None:
            self.progress = evolve(before, interrupted=False)
        else:
            phase = Phase.PAUSED if before.phase is Phase.PAUSED else Phase.RUNNING
            goal = self._goal_after(iterations, epochs)
            self.progress = TrainingProgress(phase, end=goal, start=self.moment.start + 1)
        self._own_goals = before if before.underway else self.progress
        self._settle_numbers()  # again after a resume
        if self._at_end() and self.progress.phase is not Phase.ENDED:
            self.progress = self.progress.to(Phase.ENDING)
        self._seconds()
        if not before.underway:
            self.note({"event": "begin", "epochs": epochs, "iterations": iterations})
            self._go_on()
            if epochs or iterations:
                renew(self.setup.order, self.state.memory)
            self.tick(TimeScale.START)
        elif replay is None:
            self._train_on()
        if self._at_end() and self.progress.end == NONE:
            self.recorder.log(f"nothing to train: {self.epochs:g} epochs are over already")
        if reason := ended(self.setup.order, self.state.memory, self.lookup, self.moment):
            self.recorder.log(f"nothing to train: {reason}")
            self.finished()

    def check_end(self) -> None:
        """Raise SigmaConfigError if training would begin that nothing ends; a resumed one goes on as it began."""
        if self.recorder.replay is None and not self.progress.underway:
            check_end(self.setup.name, self.epochs, self.setup.order.hooks)

    def end(self) -> None:
        """Run the hooks that are due at a stop, and end training."""
        self._count_seconds()
        self.finish()
        if self.progress.phase is not Phase.ENDED:  # else a snapshot was taken after them
            self.progress = self.progress.to(Phase.ENDED)
            self.tick(TimeScale.STOP)
        about: dict[str, Any] = {"failed": False}
        if not self.finite:  # a hook has stopped it
            self.recovery.find_good(self.recorder.log)
            about["good"] = self._save_good()
        self._end(Phase.STOPPED, about)

    def fail(self, error: BaseException) -> None:
        """End training that failed: save the newest good state first, unless training was aborted.

        An error of saving it is added to the notes of ``error``.
        """
        about: dict[str, Any] = {"failed": True}
        try:
            self._count_seconds()
            if isinstance(error, Exception) and not isinstance(error, SigmaDifferenceError):
                self.recovery.find_good(self.recorder.log)
                about |= {"why": said(error), "good": self._save_good()}
        except SigmaError as other:
            error.add_note(said(other))
        finally:
            self._end(Phase.FAILED, about)

    def _end(self, phase: Phase, about: Mapping[str, Any]) -> None:
        try:
            self._row(force=True)
            self.note({"event": "end", **about})
        finally:
            self.background.forget()
            self.progress = self.progress.to(phase)

    def _save_good(self) -> int | None:
        """Keep the newest good state for rewind, and write it to the disk; return its iteration, or None."""
        if (found := self.recovery.found) is None:
            self.recorder.log(f"{self.setup.name}: nothing is saved, as no state was finite")
            return None
        moment = Moment(**found.values["clock"])
        self.recorder.past.forget_after(moment.iteration)  # those after it are not known to be good
        self.recorder.past.keep(moment, found)
        if self.saver is not None:
            self._store(moment.iteration, found)
            self.saver.flush()
            self.recorder.log(f"{self.setup.name}: iteration {moment.iteration} is saved, the last good one")
        return moment.iteration

    def leave(self, phase: Phase | None = None) -> None:
        """Release the training thread."""
        if phase is not None:
            self.progress = self.progress.to(phase)
        self.queue.release()

    @recovering
    def boundary(self) -> bool:
        """Apply commands, and wait here while paused; return whether training continues."""
        while goes_on := self._answered():
            if not self._begin_epoch():
                break
        return goes_on

    def _begin_epoch(self) -> bool:
        """At the beginning of an epoch, put edits of the data and the batch size in force; return whether any changed.

        Commands may follow at the same iteration, in a replay too.
        """
        feed, data = self.setup.feed, wanted(self.state.changes)
        if data == self.state.data or feed.iteration_in_epoch(self.state.cursor):
            return False
        setup, state = self._reconfigured(evolve(self.state, data=data))
        self._adopt(setup, evolve(state, cursor=evolve(setup.feed.start(), epoch=state.cursor.epoch)))
        counts = {split: setup.counts(split) for split in data.get("edits", ())}
        self.note({"event": "data", "batch_size": setup.feed.batch_size, "splits": counts})
        return True

    def _answered(self) -> bool:
        """Apply commands, and wait while paused; return whether training continues."""
        if (replay := self.recorder.replay) is not None:
            self.relive(replay)
            if replay.rows and replay.goes_on:
                self._perhaps_leave(replay)
                return not self.progress.over  # other commands are applied after the replay
        else:
            self.catch_up()
        while True:
            self.queue.serve(lambda: self.progress.over)
            if self.progress.over or self.progress.phase is not Phase.PAUSED:
                return not self.progress.over
            self.queue.wait()

    def split(self, workers: int) -> None:
        """Set the number of workers, for each of which hooks of local scope run once."""
        self.workers = workers

    def distance(self) -> int:
        """Return the number of iterations until something is due, at least 1."""
        now, feed, order = self.moment, self.setup.feed, self.setup.order
        per_epoch, done = feed.iterations_per_epoch, feed.iteration_in_epoch(self.state.cursor)
        steps = [order.hooks[name].every for name in order.active(self.state.memory)]
        due = until_due(steps, now, iterations_per_epoch=per_epoch, iteration_in_epoch=done, batch=feed.batch_size)
        ahead = [goal - now.iteration for goal in (self._first(*self.progress.pause), self.until) if goal is not None]
        if (replay := self.recorder.replay) is not None and (next_ := replay.ahead(now.iteration)) is not None:
            ahead.append(next_)
        return max(1, min([per_epoch - done, *ahead, *([] if due is None else [due])]))

    @recovering
    def advance(self, n: int, compute: Compute | None = None) -> int:
        """Run at most ``n`` iterations as one burst; return how many were run.

        Layer state that begins anew does so at the beginning of an epoch.  The feed gives a block on the device and the
        rows of its next minibatches, of which the compiled step takes one in each iteration.  ``compute`` replaces the
        fused program, for operators that cut batches into shards.
        """
        self.recovery.record_start(self.setup, self.state, self.progress, self.recorder.position, compute)
        self.state = renew_layer_state(self.state, self.setup)
        with Timed(self.phases, "data"):
            batches = self.batches(n)
        compute = compute or fused
        wanted, self.observed = self._observed_after(batches), {}
        done = self._observe(wanted, batches, compute) if wanted else self._run(batches, compute)
        self.recovery.record_burst(self.state, done, self.finite)
        return done

    def _observe(self, wanted: tuple[str, ...], batches: Batches, compute: Compute) -> int:
        before, last = (evolve(batches, rows=rows) for rows in (batches.rows[:-1], batches.rows[-1:]))
        done = self._run(before, compute) if len(before.rows) else 0
        if done == len(before.rows) and (not done or self.finite):
            self.observed = self.setup.evaluator.observe(self.steps(), last, wanted)
            done += self._run(last, compute, REPEATED in wanted)
        return done

    def batches(self, most: int) -> Batches:
        """Return the next minibatches of the block that the cursor is in."""
        return self.setup.feed.next(self.state.cursor, most)

    @recovering
    def settle(self) -> None:
        """Run the hooks that are due, and check the goals."""
        before, now = self._settled, self.moment
        self._settled = now
        due = self._due(before, now)
        with self._together():
            with Timed(self.phases, "hooks"):
                for name in due if self.finite else self._guards(due):
                    self.fire(name)
            now = self.moment  # a hook may have rewound the run
            self._row(force=before.epoch < now.epoch <= EACH)
            self.recorder.remember(now, self.snapshot, self.setup.order, now.epoch > before.epoch)
            if self.progress.due_to_pause(now.iteration, now.epoch):
                self._pause()
            if self._at_end():
                self.finished()

    # -- its parts -----------------------------------------------------------------------------------------------------
    @property
    def moment(self) -> Moment:
        """Return the current moment."""
        return self.state.moment

    @property
    def status(self) -> str:
        """Return prepared, running, paused, stopped or failed."""
        phase = self.progress.phase
        if self.queue.busy:
            return phase if phase in (Phase.PAUSED, Phase.FAILED) else Phase.RUNNING
        return phase if phase in (Phase.STOPPED, Phase.FAILED) else Phase.PREPARED

    @property
    def waits(self) -> bool:
        """Return whether it has failed, and no command has told it to go on, or to end."""
        return self.status == Phase.FAILED and not self.progress.interrupted

    def finished(self) -> None:
        """End training at the next boundary, since a goal is reached."""
        if not self.progress.over:
            self.progress = self.progress.to(Phase.ENDING)

    def _goal_after(self, iterations: int | None = None, epochs: int | None = None) -> Goal:
        """Return the goal that is so many iterations or epochs ahead."""
        now = self.moment
        until = None if iterations is None else now.iteration + iterations
        return until, None if epochs is None else now.epoch + epochs

    def iteration_at(self, epochs: float) -> float:
        """Return the iteration after this many epochs in total, if all to come are like the present one."""
        feed, now = self.setup.feed, self.moment
        begun = now.iteration - feed.iteration_in_epoch(self.state.cursor)
        return begun + (epochs - now.epoch) * feed.iterations_per_epoch

    def _first(self, iteration: int | None, epochs: float | None) -> int | None:
        """Return the iteration of the first of two goals."""
        goals = [float(iteration)] if iteration is not None else []
        goals += [self.iteration_at(int(epochs))] if epochs is not None and epochs != inf else []
        return int(min(goals)) if goals else None

    @property
    def epochs(self) -> float | None:
        """Return the total number of epochs: as it was set last, else as configured."""
        total: float | None = self.state.changes.get("epochs", {}).get("total", self.setup.epochs)
        return total

    @property
    def until(self) -> int | None:
        """Return the iteration at which training ends: the goal of ``fit``, else that of the total number of epochs.

        A total that was set during ``fit`` takes the place of its goal.
        """
        progress, since = self.progress, self.state.changes.get("epochs", {}).get("start")
        own = progress.end != NONE and since != progress.start
        return self._first(*progress.end) if own else self._first(None, self.epochs)

    def _at_end(self) -> bool:
        return self.until is not None and self.moment.iteration >= self.until

    def goal(self) -> int | None:
        """Return the iteration at which training ends at the latest, if it is known."""
        goals = [] if self.until is None else [float(self.until)]
        hooks = (self.setup.order.hooks[name] for name in self.setup.order.active(self.state.memory))
        goals += (goal for hook in hooks if hook.stops for goal in ends(hook, self.iteration_at))
        return int(min(goals)) if goals else None

    def steps(self, weights: str = "") -> Steps:
        """Return the steps that compute iterations from the current state, or evaluate the weights of a modifier."""
        arrays = weighed(self.state.arrays, weights, self.setup.to_host) if weights else self.state.arrays
        return steps_of(self.state, self.setup, arrays)

    def _run(self, batches: Batches, compute: Compute, repeatable: bool = False) -> int:
        steps = self.steps()
        begun = Iteration.begun(compute, steps, batches) if repeatable else None
        with Timed(self.phases, "burst"):
            result = compute(steps, batches)
        self.iteration = begun and begun.ended(result)
        self._count(batches, result)
        return result.done

    def _count(self, batches: Batches, result: Burst) -> None:
        """Take the new state of a burst, count its iterations, and publish what it measured."""
        before = self.moment
        self.state, found = count_burst(self.state, self.setup, batches, result, self._seconds())
        self.finite = bool(isfinite(result.ring["loss"][-1]))
        self._show(result.published)
        self.recorder.measured(curves(found), before, self.moment)

    def _row(self, force: bool) -> None:
        """Write a row of metrics if it is time, or with ``force``."""
        self.recorder.row(self.moment, force, [*self.state.data.get("edits", ())])

    def _observed_after(self, batches: Batches) -> tuple[str, ...]:
        """Return the addresses to observe at the last iteration; hooks that go by seconds may be due at any."""
        if not (observers := self.setup.order.observers):
            return ()
        now, n, feed = self.moment, len(batches.rows), self.setup.feed
        turns = feed.iteration_in_epoch(self.state.cursor) + n >= feed.iterations_per_epoch
        then = now.advanced(n, batches.rows.size, inf, int(turns))
        due = self.setup.order.due(self.state.memory, now, then)
        return tuple(dict.fromkeys(address for name in due for address in observers.get(name, ())))

    def _seconds(self) -> float:
        """Return the seconds since the last call, or since training continued."""
        last, self._counted = self._counted, time.perf_counter()
        return self._counted - last

    def _count_seconds(self) -> None:
        self.state = evolve(self.state, moment=self.moment.advanced(0, 0, self._seconds()))

    # -- hooks ---------------------------------------------------------------------------------------------------------
    def tick(self, scale: TimeScale) -> None:
        """Run the hooks that are due at an event, such as start or stop."""
        before, now = self.moment, self.moment.ticked(scale)
        self.state = evolve(self.state, moment=now)
        self._settled = now
        with self._together():
            for name in self.setup.order.active(self.state.memory) if scale is TimeScale.STOP else ():
                self._conclude(name)
            for name in self._due(before, now):
                self.fire(name, at_once=scale is TimeScale.STOP)  # nothing trains at that time

    def fire(self, name: str, at_once: bool = False) -> None:
        """Run one hook if its criterion holds; a hook of local scope once for each worker.

        A background hook is queued with a snapshot, unless it is to run ``at_once``.
        """
        self._in_each_scope(name, lambda scope: self._fire(name, scope, at_once))

    def _conclude(self, name: str) -> None:
        """Let a hook act at the end of training."""
        self._in_each_scope(name, lambda scope: (view := HookView(self, name, scope)).hook.at_end(view))

    def _in_each_scope(self, name: str, act: Callable[[str], None]) -> None:
        hook = self.setup.order.hooks.get(name)
        local = hook is not None and hook.scope == "local"
        for scope in [f"workers.{worker}." for worker in range(self.workers)] if local else [""]:
            if self._active(name, hook):  # an earlier firing may have detached or muted it
                self._attempt(name, partial(act, scope))

    def _fire(self, name: str, scope: str, at_once: bool) -> None:
        view, order, memory = HookView(self, name, scope), self.setup.order, self.state.memory
        if name in self.setup.listening:
            self._hear(name)
        asked = partial(holds, view.hook, memory[name], view, scope)
        if name not in order.judged:
            fires = asked()
        elif fires := (second := self.recorder.judge(self.moment, name, scope, asked)) is not None:
            view = HookView(self, name, scope, second)
        if not fires:
            return
        if at_once or not order.in_background(name, memory):
            self._budgets.run(name, view.hook, view)
        elif self.recorder.replay is None:  # else its results are in the journal
            self.background.submit(view.freeze())

    def _hear(self, name: str) -> None:
        """Take over what other trainers have published last of what a hook reads; the journal holds it."""
        others, known, new = self.setup.others, self.state.published, dict[str, Any]()
        for other, asked in self.setup.listening[name]:
            told = others[other].told(asked) if other in others else {}
            full = {f"{other}.{address}": value for address, value in told.items()}
            new |= {address: value for address, value in full.items() if known.get(address) != value}
        if heard := self.recorder.hear(self.moment, name, new):
            self.state = evolve(self.state, published={**known, **heard})

    def _attempt(self, name: str, act: Callable[[], None]) -> None:
        """Run a hook's code; its error policy applies to whatever that raises."""
        hook = self.setup.order.hooks[name]
        try:
            act()
        except (Exception, SystemExit) as error:  # it must not end the process
            self._failed(name, hook, error)

    def _failed(self, name: str, hook: Any, error: BaseException | str) -> None:
        there = self.setup.order.hooks.get(name) is hook
        fail(name, hook, self.state.memory[name] if there else {}, self.recorder.log, error)

    def _active(self, name: str, hook: Any) -> bool:
        """Return whether this hook is still attached and not muted."""
        return hook is not None and self.setup.order.hooks.get(name) is hook and not self.state.memory[name]["muted"]

    def _due(self, before: Moment, now: Moment) -> list[str]:
        """Return the hooks that are due; in a replay, all that depend on the wall clock too: the journal decides."""
        order = self.setup.order
        due = order.due(self.state.memory, before, now)
        if self.recorder.replay is None:
            return due
        return [name for name in order.names if name in due or name in order.judged]

    def _guards(self, due: list[str]) -> list[str]:
        order = self.setup.order
        for name in (name for name in due if order.hooks[name].repeats):  # they find wrong numbers: a possible cause
            self.fire(name)
        if not (guards := order.guards(self.state.memory)):
            now, what = self.moment, f"{self.setup.name}: the loss is {self.state.published['training.loss']}"
            raise SigmaTrainingError(
                f"{what} at iteration {now.iteration} (epoch {now.epoch}). {LATER if now.iteration > 1 else FIRST} "
                "The backend 'debug' (sigma run --debug-ops) names the op that it comes from."
            )
        return list(dict.fromkeys((*guards, *due)))

    def catch_up(self) -> None:
        """Apply results of background hooks, and the consequences of exceeded budgets."""
        while (firing := self.background.result()) is not None:
            if isinstance(firing.error, KeyboardInterrupt):
                raise firing.error
            if self._active(firing.name, firing.hook):
                self._budgets.took(firing.name, firing.hook, firing.seconds)
                self._apply(firing.row)
        for name, then in self._budgets.spent(self.setup.order, self.state.memory).items():
            self._apply({"event": "budget", "hook": name, "then": then})

    def _apply(self, row: Row) -> None:
        """Write a background result, or an exceeded budget, to the journal; then apply it."""
        self.note(row)
        name, order, memory = row["hook"], self.setup.order, self.state.memory
        if name not in order.hooks:  # detached since it was submitted
            return
        hook = order.hooks[name]
        if row["event"] == "budget":
            limit(name, hook, memory[name], self.recorder.log, row["then"])
            return
        with self._together():
            self._attempt(name, lambda: HookView(self, name, row["scope"]).apply(row))
            if "error" in row:
                self._failed(name, hook, row["error"])

    def finish(self) -> None:
        """Wait for background hooks and apply their results, unless training was interrupted."""
        if self.recorder.replay is None and not self.progress.interrupted:
            self.background.finish()
            self.catch_up()
        if left := self.background.forget():
            self.recorder.log(f"{self.setup.name}: training ended; background hooks dropped: {', '.join(left)}")

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: commands.Command) -> Request:
        """Queue a command for the next boundary; the request's result is the moment at which it was applied."""
        return self.queue.submit(Request(partial(self.act, command), command, lambda: self.recorder.journal.durable()))

    def post(self, command: commands.Command) -> None:
        """Queue a command for the next boundary without waiting for a lock, from a signal handler for instance."""
        self.queue.post(Request(partial(self.act, command), command))

    def ask(self, question: Callable[[], Any]) -> Any:
        """Evaluate a function of the state between bursts, and return its result."""
        return self.queue.submit(Request(question)).result()

    def set(self, address: str, value: Any) -> None:
        """Set the value at an address of this session, at the next boundary."""
        self.check_free()
        self.send(commands.Set(address, value)).result()

    def check(self, command: commands.Command) -> None:
        """Raise a SigmaError for a command that cannot be applied, before it is queued."""
        self.check_free()
        match command:
            case commands.Set(pattern, value):
                found = self.registry.addresses(pattern)
                for address in found:
                    self.registry.kind(address).check(f"{self.setup.name}.{address}", value)
                self._foresee(dict.fromkeys(found, value))
            case commands.Edit():
                foresee(self.setup, edited(self.setup, self.state.changes, command))
            case commands.Attach() | commands.Detach() | commands.Swap():
                self.setup.factory.changed(self.state.changes, command)
            case commands.Undo():
                undoable(self.setup.name, self.state)

    def check_free(self) -> None:
        """Raise SigmaStateError between a resume and the replay of its journal."""
        if self.recorder.behind and not self.queue.busy:
            raise SigmaStateError(
                f"{self.setup.name}: was resumed at iteration {self.moment.iteration}, and what its journal holds "
                "after that is not replayed yet. Send commands once it trains: they apply after the replay."
            )

    def act(self, command: commands.Command) -> Moment:
        """Apply a command now, and write it to the journal; one that raises changes nothing."""
        match command:
            case commands.Set() | commands.Attach() | commands.Detach() | commands.Swap() | commands.Edit():
                self._change(command)
            case commands.Undo():
                self._undo()
            case commands.Pause() | commands.Go() | commands.StepBy():
                self._steer(command)
            case commands.StopTraining():
                self._stop(command)
            case commands.Save():
                self._save(command)
            case commands.Rewind():
                self._rewind(command)
            case commands.Reset():
                self._row(force=True)
                self.note(command.to_dict())
                self.recorder.go_back(self.recorder.branch, 0)
                self.restore(Checkpoint(self.initial.arrays(), {}))
                self.tick(TimeScale.RESET)
        return self.moment

    def note(self, what: Mapping[str, Any]) -> None:
        """Write a row to the journal, at the current moment."""
        self.recorder.note(self.moment, what)

    def _change(self, command: commands.Command) -> None:
        """Apply a change atomically; commands from outside can be undone."""
        if self._changing:  # a part of another command
            self._apply_change(command)
            return
        setup, before, self._changing = self.setup, self.state, True
        self._published = {}  # ``before`` stays as it is
        try:
            self._apply_change(command)
            self.note(command.to_dict())
        except Exception:
            self._adopt(setup, before)
            raise
        finally:
            self._changing = False
        if not self.recorder.by:
            self.state = recorded(commands.NAMES[type(command)], before, self.state, setup, self.setup)

    def _apply_change(self, command: commands.Command) -> None:
        if isinstance(command, commands.Set):
            self.registry.set(command.pattern, command.value, self._write)
        elif isinstance(command, commands.Edit):
            changes = edited(self.setup, self.state.changes, command)
            foresee(self.setup, changes)
            self.state = evolve(self.state, changes=changes)
        else:
            changes = self.setup.factory.changed(self.state.changes, command)
            self._adopt(*self._reconfigured(evolve(self.state, changes=changes)))

    def _write(self, values: Mapping[str, Any]) -> None:
        """Set the values at addresses of this session; the numbers of hooks are published."""
        self._foresee(values)
        numbers = settable(self.setup)
        others = {address: value for address, value in values.items() if address not in numbers}
        self._adopt(*self._reconfigured(written(self.state, self.setup, others)))
        for address in values.keys() - others.keys():
            self.publish(address, values[address])
        self._settle_numbers()

    def _foresee(self, values: Mapping[str, Any]) -> None:
        """Raise a SigmaError for epochs that are over, or a batch size that does not fit; compile for that."""
        total, size = values.get("epochs"), values.get("batch_size")
        if total is not None and total <= self.moment.epoch:
            raise SigmaStateError(
                f"{self.setup.name}.epochs: epoch {total} is over already ({self.moment.epoch} are done). To end "
                "training now, stop it."
            )
        if size is not None:
            foresee(self.setup, updated(self.state.changes, batch_size=size))

    def _undo(self) -> None:
        entry, there = undoable(self.setup.name, self.state), self.setup.order.hooks
        setup, state = self._reconfigured(evolve(self.state, changes=entry["changes"]))
        self._adopt(setup, undone(state, setup, entry, there))
        self.note({**commands.Undo().to_dict(), "undoes": entry["command"]})

    def _steer(self, command: commands.Command) -> None:
        name = commands.NAMES[type(command)]
        if self.status not in (wanted := concerned(name)) or not self.queue.busy:
            raise SigmaStateError(f"{self.setup.name}: cannot {name} while {self.status}. It must be {wanted[0]}.")
        if self.progress.phase is Phase.FAILED:
            check_goes_on(self.setup.name, name, self.finite, self.recovery.found)
        self.note(command.to_dict())
        if isinstance(command, commands.Pause):
            self._pause()
            return
        if isinstance(command, commands.StepBy):
            self.progress = evolve(self.progress, pause=self._goal_after(**{f"{command.scale}s": command.count}))
        self.progress = self.progress.to(Phase.RUNNING)
        self._seconds()
        self.tick(TimeScale.RESUME)

    def _pause(self) -> None:
        """Pause: the training thread waits at the next boundary."""
        self._count_seconds()
        self.progress = self.progress.to(Phase.PAUSED)
        self.tick(TimeScale.PAUSE)

    def _stop(self, command: commands.StopTraining) -> None:
        """End training at this boundary; if stopped from outside, save first, so that it can be resumed."""
        if self.progress.over or not self.queue.busy:
            if self.status == Phase.FAILED:  # nobody waits for a command to go on any more
                self.progress = evolve(self.progress, interrupted=True)
            return
        place = self.recorder.position
        self.note(command.to_dict())
        if self.recorder.by:
            self.finished()
            return
        self.progress = evolve(self.progress, interrupted=True)
        if self.saves:
            self._write_checkpoint([(STOP, commands.Save(command.cause))], place)

    # -- checkpoints ---------------------------------------------------------------------------------------------------
    @property
    def saves(self) -> bool:
        """Return whether checkpoints can be saved, or a replay behaves as if they were."""
        return self.saver is not None or self.recorder.replays_only

    def attach(self, saver: Checkpoints) -> None:
        """Save checkpoints with this saver from now on."""
        saver.retain(self.setup.order.hooks.values(), self.setup.direction)
        self.saver = saver

    def _save(self, command: commands.Save) -> None:
        """Save now, or once after all hooks that are due together."""
        if not self.saves:
            raise SigmaStateError("save: this environment has no folder. Give it one: Environment(..., folder='runs').")
        if self.progress.interrupted and self.queue.busy:
            return  # the stop has saved already
        with self._together() as saves:
            saves.append((self.recorder.by, command))

    @contextmanager
    def _together(self) -> Iterator[Saves]:
        """Save once, after all hooks inside, if any of them asked: a checkpoint belongs between two boundaries."""
        outer = self._saves
        saves = self._saves = [] if outer is None else outer
        try:
            yield saves
        finally:
            self._saves = outer
        if saves and outer is None:
            self._write_checkpoint(saves)

    def _write_checkpoint(self, wanted: Saves, place: int | None = None) -> None:
        """Write one checkpoint, with its position in the journal, by default the current one.

        It is marked to keep if any save asks for that; of several scores, the last one counts.
        """
        recorder = self.recorder
        for by, save in wanted:
            with recorder.on_behalf(by):
                self.note(save.to_dict())
        found = self.snapshot()
        recorder.keep(self.moment, found)  # as a resume does, so that both rewind to the same state
        with recorder.on_behalf(wanted[-1][0]):
            recorder.digest(self.moment, found, self.setup.order)
        if self.saver is None:
            return
        place = recorder.position if place is None else place
        score = next((save.score for _, save in reversed(wanted) if save.score is not None), None)
        found = evolve(found, values={**found.values, "journal": place}, score=score)
        self._store(self.moment.iteration, evolve(found, keep=any(save.keep for _, save in wanted)))

    def _store(self, number: int, found: Checkpoint) -> None:
        """Queue a snapshot to be written as a checkpoint."""
        assert self.saver is not None  # the callers have checked
        self.saver.retain(self.setup.order.hooks.values(), self.setup.direction)  # the hooks may have changed
        values = {"branch": self.recorder.branch, "ranking": self.saver.ranking()}
        made, chain = self.made_with(), self.recorder.chain(found.values["journal"])
        self.saver.save(number, evolve(found, values={**found.values, **values}, made_with=made, chain=chain))

    def made_with(self) -> dict[str, str]:
        """Return the versions, libraries, processor and backend that the bits of this session depend on."""
        return made_with(self.backend_name, self.setup.programs.backend.about)

    @property
    def backend_name(self) -> str:
        """Return the display name of the backend."""
        return self.setup.factory.backend_name(self.state.changes)

    def _rewind(self, command: commands.Rewind) -> None:
        """Restore a snapshot in memory, and continue from it on a new branch."""
        recorder = self.recorder
        moment, found = recorder.past.before(command.to, command.scale, partial(self._saved, command))
        branch = {"branch": recorder.branch + 1, "parent": recorder.branch}
        self._row(force=True)
        self.note({**commands.Rewind(moment.iteration).to_dict(), **branch})
        recorder.go_back(branch["branch"], moment.iteration)
        self.restore(found, self.progress if self.progress.underway else TrainingProgress())
        self._go_on()
        if self.saves:
            with recorder.on_behalf("rewind"):
                self.act(commands.Save())
        if self.saver is not None:  # only now that there is a checkpoint to resume from
            self.saver.set_aside(moment.iteration, branch["parent"])

    def _saved(self, command: commands.Rewind) -> list[tuple[Moment, Checkpoint]]:
        """Return the newest intact checkpoint of this branch on disk at or before the moment of a rewind, if any."""
        if self.saver is None:
            return []
        self.saver.wait()
        for number in reversed(self.saver.numbers()):
            with suppress(SigmaCheckpointError):  # damaged: an older one will do
                values = self.saver.about(str(number), self.recorder.log)["values"]
                moment = Moment(**values["clock"])
                if "lacks" not in values and moment.on(scaled(command.scale)) <= command.to:
                    return [(moment, self.saver.read(str(number), self.recorder.log))]
        return []

    # -- replay --------------------------------------------------------------------------------------------------------
    def resumed(self, replay: Replay | None, row: Mapping[str, Any], stays_paused: bool = False) -> None:
        """Continue from a restored checkpoint: write the ``resumed`` row, and replay the journal after it."""
        self._stays_paused = stays_paused
        self.note(row)
        self.recorder.compare(replay)

    def rewind_after_replay(self, to: int) -> None:
        """Rewind to the checkpoint of an iteration as soon as the journal is replayed."""
        self._goes_back = to

    def relive(self, replay: Replay) -> None:
        """Replay the rows of this moment; at the end of the journal, end training or continue."""
        self._budgets.spent(self.setup.order, self.state.memory)  # the consequences are in the journal
        replay.pass_by(self.moment.iteration)
        while (found := replay.outside(self.moment.iteration)) is not None:
            if isinstance(found, commands.Command):
                replay.attempt(partial(self.act, found), self.recorder.log)
            elif found["event"] == RESUMED:
                self.note(found)
                self.recorder.past.keep(self.moment, self.snapshot())  # as that resume did
            else:
                self._apply(found)
        if replay.rows:
            if replay.next(self.moment.iteration, event="end") is not None:
                self.finished()
            return
        if not replay.goes_on:
            self.finished()
            return
        self.recorder.compare(None)
        if replay.differs:
            self.recorder.log(f"{self.setup.name}: the replay differs from the journal. At {replay.differs}.")
        if self._goes_back is not None:
            self.act(commands.Rewind(self._goes_back))
        self._train_on()

    def _train_on(self) -> None:
        """Continue a run that was interrupted while paused or stepping, unless it is to stay paused."""
        if self._stays_paused:
            return
        if self.progress.pause != NONE and self.progress.phase is Phase.RUNNING:
            self.act(commands.Pause())
        if self.progress.phase is Phase.PAUSED:
            self.act(commands.Go())

    def _perhaps_leave(self, replay: Replay) -> None:
        """Stop during replay if requested, or at a goal; the next resume replays the rest."""
        if self.queue.awaits(commands.StopTraining) or (self.progress.over and replay.ahead(self.moment.iteration)):
            phase = Phase.RUNNING if self.progress.phase is Phase.ENDING else self.progress.phase
            self.progress = evolve(self._own_goals, phase=phase, interrupted=False)
            replay.leave()
            self.act(commands.StopTraining("interrupted"))

    # -- the state -----------------------------------------------------------------------------------------------------
    def snapshot(self) -> Checkpoint:
        """Return a copy of the whole state: arrays by name, and everything else as JSON values."""
        found = snapshot(self.state, self.setup)
        return evolve(found, values={**found.values, "progress": self.progress.saved()})

    def restore(
        self,
        saved: Checkpoint,
        progress: TrainingProgress | None = None,
        check: Callable[[Checkpoint, Arrays], Any] = lambda saved, arrays: None,
    ) -> None:
        """Restore a snapshot, with its components; training in progress keeps its own progress.

        Whatever ``check`` raises about the snapshot and the arrays of these components leaves everything as it was.
        """
        saved = reconciled(saved, self.setup)
        kept = {name: saved.values[name] for name in ("changes", "data")}
        setup, state = self._reconfigured(evolve(self.state, **kept))
        saved = with_counts(saved, state.arrays)
        check(saved, state.arrays)
        state, progress = restored(saved, setup), progress or TrainingProgress.restored(saved.values.get("progress"))
        self.background.forget()
        self._adopt(setup, state)
        self._settled, self.observed, self.finite = self.moment, {}, True
        self.recovery.forget()
        if not self.queue.busy and (progress.underway or self.progress.underway):
            self.progress = progress

    def _reconfigured(self, state: RunState) -> tuple[Setup, RunState]:
        """Return the setup with the components that a state asks for, and the state adapted to them."""
        return reconfigured(self.setup, state, self.state)

    def _adopt(self, setup: Setup, state: RunState) -> None:
        """Replace setup and state; stop the background work of the former setup."""
        former, self.setup, self.state = self.setup, setup, state
        if setup.feed is not former.feed:
            former.feed.close()
        if setup.evaluator is not former.evaluator:
            former.evaluator.close()
            self.background.evaluate_by(setup.evaluator.aside())
        if setup is not former:
            self._rebind()
        else:
            self._show(state.published)
        self._settle_numbers()

    def _settle_numbers(self) -> None:
        """Record the numbers that can be set, as far as they have changed."""
        self.recorder.settled(numbers(self), self.moment)

    def _rebind(self) -> None:
        """Bind the addresses of the setup, and remove those that are gone."""
        wanted = bindings(self.setup, self.state.published)
        for address in self._bound.keys() - wanted.keys():
            self.registry.remove(address)
            del self._bound[address]
        self._bind({address: binding for address, binding in wanted.items() if self._bound.get(address) != binding})

    def _show(self, addresses: Iterable[str]) -> None:
        """Bind published values at addresses that are not bound yet."""
        if new := [address for address in addresses if address not in self._bound]:
            self._bind(shown(new))

    def _bind(self, new: Mapping[str, Binding]) -> None:
        for address, binding in new.items():
            put = None if binding.kind is None else partial(self.set, address)
            kind = binding.kind or binding.shown
            self.registry.bind(address, partial(binding.read, self, address), put, kind, remote=True)
            self._bound[address] = binding

    # -- reading and publishing ----------------------------------------------------------------------------------------
    def host(self, name: str) -> np.ndarray:
        """Return a copy of an array of the state; for the training thread, or inside a request."""
        return self.setup.to_host(self.state.arrays[name])

    def lookup(self, address: str, scope: str = "") -> Any:
        """Return the value at an address for criteria and hooks, local values first, or None.

        For a pattern, return a dictionary of all matches.
        """
        published = self.state.published
        found = seen({**self.observed, **published} if self.observed else published, address, scope)
        if literal(address):
            return dict(self.registry.find(address)).get(address) if found is None else found
        return {**dict(self.registry.find(address)), **found}

    def publish(self, address: str, value: Any) -> None:
        """Publish a value at an address of this trainer."""
        if type(value) is not float and isinstance(value, np.generic):
            value = value.item()
        if self._published is not self.state.published:  # another state may hold them
            self._published = dict(self.state.published)
            self.state = evolve(self.state, published=self._published)
        self._published[address] = value
        if isinstance(value, NUMBERS) and value is not True and value is not False:
            self.recorder.history.add(address, float(value), self.state.moment)
        elif isinstance(value, str):
            self.recorder.history.texts[address] = value
        if address not in self._bound:
            self._bind(shown([address]))

    def evaluate(
        self, on: str, metrics: Mapping[str, Metric | str], edited: bool = True, weights: str = ""
    ) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data, edited or not, at the current parameters."""
        with Timed(self.phases, "evaluation"):
            return self.setup.evaluator.evaluate(self.steps(weights), on, metrics, edited)

    def generate(self, *how: Any, weights: str = "") -> str:
        """Return the continuation of a text, at the current parameters."""
        with Timed(self.phases, "evaluation"):
            return "".join(self.setup.evaluator.continuation(self.steps(weights), *how))

    # -- for monitors, from any thread ---------------------------------------------------------------------------------
    def copied(self, weights: str = "") -> Steps:
        """Return the steps with copies on the host of all arrays but those of optimisers."""
        steps, copy = self.steps(weights), self.setup.to_host
        return evolve(steps, arrays={n: copy(x) for n, x in steps.arrays.items() if not n.startswith(OPTIMISERS)})

    def beside(self) -> tuple[Evaluator, Steps]:
        """Return what evaluates in the calling thread, without delaying training, and the steps to evaluate with.

        The training thread copies the parameters at the next boundary.
        """
        evaluator, steps = self.ask(lambda: (self.background.evaluator, self.copied()))
        return evaluator, steps.placed()

    def row_losses(self, split: str = "training", most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split, or of the ``most`` with the greatest, without delaying training."""
        evaluator, steps = self.beside()
        return evaluator.losses(steps, split, most)

    def rows_of(self, split: str, rows: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Return the sections of numbered rows of a split as they are in the data, or preprocessed.

        Classes are indices.  Labels that were changed are in :meth:`edits`.
        """
        evaluator = self.setup.evaluator
        found = gathered(evaluator.data(split, edited=False), rows)
        return evaluator.prepare(found) if prepared else found

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return the edits by split, as they are wanted: the rows ``excluded``, and new ``labels`` by row.

        With targets in several sections, a label is a dictionary by section.  Edits act from the next epoch on; how
        many are in force is at the addresses ``data.<split>.*``.
        """
        known = self.state.changes.get("edits", {}).items()
        several = len({cost.layer.targets for cost in self.setup.model.network.targeted}) > 1
        labels = {split: dict(own.get("labels", ())).items() for split, own in known}
        plain = {split: {row: x if several else next(iter(x.values())) for row, x in labels[split]} for split in labels}
        return {split: {"excluded": [*own.get("excluded", ())], "labels": plain[split]} for split, own in known}

    def keep(self, hook: str) -> None:
        """Keep a copy of the parameters, of layer state, of the optimiser's slots and of scores, for a hook."""
        names = [name for name in self.state.arrays if name.startswith((LAYERS, *OPTIMISERS))]
        kept = {f"{KEPT}{hook}.{name}": self.host(name) for name in names}
        scores = [name for name in self.state.published if name.partition(".")[0] in self.setup.factory.splits]
        kept |= {f"{KEPT}{hook}.{n}": np.array(x) for n in scores if isinstance(x := self.state.published[n], float)}
        self.state = evolve(self.state, kept={**self.state.kept, **kept})

    def bring_back(self, hook: str) -> None:
        """Restore the copy that was kept last for a hook; once training has ended, keep what it goes on from."""
        if self.progress.phase is Phase.ENDED and not self.state.set_aside:
            self.keep("")
        kept, arrays = self.state.kept, self.state.arrays
        held = {name: kept[f"{KEPT}{hook}.{name}"] for name in arrays if f"{KEPT}{hook}.{name}" in kept}
        placed = {name: self.setup.to_device(value) for name, value in held.items()}
        scores = {n: kept[f"{KEPT}{hook}.{n}"].item() for n in self.state.published if f"{KEPT}{hook}.{n}" in kept}
        self.state = evolve(self.state, arrays={**arrays, **placed}, published={**self.state.published, **scores})
        self.finite = self.finite or bool(placed)

    def _go_on(self) -> None:
        """Return to the state in which training ended, if a hook has brought back an earlier one since."""
        self.bring_back("")
        self.state = self.state.chosen()

    def close(self) -> None:
        """End training if it is in progress, and stop all background work."""
        if self.queue.busy:
            self.send(commands.StopTraining())
        self.setup.close()
        self.background.close()


# -- the context of a hook ---------------------------------------------------------------------------------------------
@define(eq=False)
class HookView:
    """The context of one hook; a local scope is a prefix of addresses, such as ``workers.0.``."""

    session: Session
    name: str
    scope: str = ""
    second: float | None = None  # of the journal, for a hook that depends on the wall clock
    hook: Hook = field(init=False)
    _memory: dict[str, Any] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Hold the hook and its memory, as the hook may detach itself."""
        self.hook, self._memory = self.session.setup.order.hooks[self.name], self.session.state.memory[self.name]

    @property
    def moment(self) -> Moment:
        """Return the current moment; for a hook that depends on the wall clock, with the second at which it fired."""
        now = self.session.state.moment
        return now if self.second is None else evolve(now, second=self.second)

    @property
    def memory(self) -> dict[str, Any]:
        """Return the hook's own memory."""
        memory: dict[str, Any] = self.session.state.memory.get(self.name, self._memory)["hook"]
        return memory.setdefault(self.scope, {}) if self.scope else memory

    @property
    def folder(self) -> Path | None:
        """Return the run's folder, if it has one."""
        return None if self.session.recorder.stored is None else self.session.recorder.stored.path

    def write(self, name: str, data: bytes) -> Path | None:
        """Write a file of the run, if it has a folder."""
        run = self.session.recorder.stored
        return None if run is None else run.write(name, data, durable=False)

    def read(self, address: str) -> Any:
        """Return a value that the hook declared in ``reads``, or None if there is none yet."""
        check_read(self.name, self.hook, address)
        return protected(self.session.lookup(address, self.scope))

    def direction(self, address: str) -> str:
        """Return which values at an address are better."""
        return self.session.setup.direction(address)

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address that the hook declared in ``writes``, unless it has detached itself."""
        check_write(self.name, self.hook, address, value)
        if self.session.setup.order.hooks.get(self.name) is self.hook:
            self.session.publish(self.scope + address, value)

    def command(self, command: str, **arguments: Any) -> None:
        """Apply a command at this boundary."""
        with self.session.recorder.on_behalf(self.name):
            self.session.act(commands.command(command, arguments))

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data."""
        return self.session.evaluate(on, metrics, weights=self.hook.weights)

    def losses(self, on: str, most: int | None = None) -> RowLosses:
        """Return the loss of each row of a split of the data."""
        with Timed(self.session.phases, "evaluation"):
            return self.session.setup.evaluator.losses(self.session.steps(self.hook.weights), on, most)

    def ends(self, layer: str = "", section: str = "") -> tuple[Spec, Spec]:
        """Return the specs of one sample of an input section, and of one row of a layer's output."""
        return self.session.setup.model.ends(layer, section)

    def excite(self, samples: np.ndarray, directions: np.ndarray, **at: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's output for samples of an input section, and its slopes along directions."""
        return self.session.setup.evaluator.excite(self.session.steps(self.hook.weights), samples, directions, **at)

    def generate(self, text: str, length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """Return the continuation of a text."""
        return self.session.generate(text, length, temperature, seed, weights=self.hook.weights)

    @property
    def iteration(self) -> Iteration | None:
        """Return the last iteration, if a hook is due that repeats it."""
        return self.session.iteration

    def keep(self) -> None:
        """Keep a copy of the parameters, of layer state, and of the optimiser's slots."""
        self.session.keep(self.name)

    def bring_back(self) -> None:
        """Restore the copy that was kept last."""
        self.session.bring_back(self.name)

    def log(self, text: str) -> None:
        """Log a message for people."""
        self.session.recorder.log(text)

    # -- the background ------------------------------------------------------------------------------------------------
    def freeze(self) -> Firing:
        """Return a background firing of the hook, on copies of everything that it declared."""
        hook, background = self.hook, self.session.background
        known: dict[str, Any] = {}
        for address in reads(hook):
            found = self.session.lookup(address, self.scope)
            known |= {address: found} if literal(address) else {**found, **self.session.lookup(self.scope + address)}
        return Firing(
            self.name, self.scope, hook, self.moment, self.session.recorder.stored,
            known=deepcopy(known),
            fresh=background.fresh(self.moment),
            memory=deepcopy(self.memory),
            evaluator=background.evaluator,
            steps=self.session.copied(hook.weights) if hook.splits else evolve(self.session.steps(), arrays={}),
            metrics=self.session.setup.metrics,
        )  # fmt: skip

    def apply(self, row: Mapping[str, Any]) -> None:
        """Apply the results of a background firing from its journal row."""
        if "memory" in row:
            self.memory.clear()
            self.memory.update(unpacked(row["memory"]))
        for text in row["logged"]:
            self.log(text)
        for address, value in row["published"].items():
            self.publish(address, unpacked(value))
        for command, arguments in row["commands"]:
            self.command(command, **unpacked(arguments))
