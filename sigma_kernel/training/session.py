"""A prepared trainer: programs, state, data, clock and hooks, and the moves that an operator makes with them.

An operator's loop is: ``boundary()`` (commands act; False when it is over) - ``distance()`` (iterations until something
is due) - ``advance(n)`` (one burst) - ``settle()`` (publish, run due hooks) - again.  All four belong to the training
thread; others speak to it through ``control``, which answers at a boundary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.clock import Clock, Moment, Timed, TimeScale, until_due
from sigma_kernel.contracts import Burst, Metric, Step
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.registry import NOTHING, Registry, literal
from sigma_kernel.training import commands
from sigma_kernel.training.background import Background, Sight, beside, catch_up, finish, hand_over
from sigma_kernel.training.changes import Changes, Makeup
from sigma_kernel.training.checkpoint import Checkpoint
from sigma_kernel.training.chronicle import Chronicle
from sigma_kernel.training.control import Control
from sigma_kernel.training.feed import Batches, Feed
from sigma_kernel.training.hooks import Runner, ends, seen
from sigma_kernel.training.live import Live
from sigma_kernel.training.programs import Evaluator, Programs
from sigma_kernel.training.records import Records
from sigma_kernel.training.replay import Replay
from sigma_kernel.training.state import capture, put_back
from sigma_kernel.training.step import Model

PHASES = ("burst", "data", "hooks", "evaluation")  # what seconds are spent on; hooks evaluate


@define(eq=False)
class Session:
    """One trainer at work."""

    name: str
    programs: Programs
    feed: Feed
    live: Live
    runner: Runner
    evaluator: Evaluator
    records: Records
    registry: Registry
    initial: Callable[[], Mapping[str, np.ndarray]]
    save_as: Callable[[Checkpoint], Any] | None
    context: Callable[[Session, str, str], Sight]  # of a hook, by its name and its scope
    act: Callable[[Session, commands.Command], Moment]
    makeup: Makeup
    remake: Callable[[Session, Changes], None]
    classes: tuple[str, ...] = ()  # what the data set calls them, in the order of their indices
    forsake: Callable[[int, int], None] | None = None  # checkpoints beyond an iteration, on a branch that is left
    workers: int = 1
    clock: Clock = field(factory=Clock, init=False)
    arrays: dict[str, Any] = field(factory=dict, init=False)
    kept: dict[str, np.ndarray] = field(factory=dict, init=False)
    published: dict[str, Any] = field(factory=dict, init=False)
    observed: dict[str, np.ndarray] = field(factory=dict, init=False)
    phases: dict[str, float] = field(factory=lambda: dict.fromkeys(PHASES, 0.0), init=False)
    control: Control = field(init=False)
    settled: Moment = field(factory=Moment, init=False)
    pause_at: int | None = field(default=None, init=False)  # iterations
    until: int | None = field(default=None, init=False)
    midway: str = field(default="", init=False)  # put back as it was during training: running, paused, or over
    halted: bool = field(default=False, init=False)  # ended from outside
    chronicle: Chronicle = field(init=False)
    background: Background = field(init=False)
    _last: float = field(factory=time.perf_counter, init=False)  # when the clock's seconds were counted last

    def __attrs_post_init__(self) -> None:
        """Put the initial state onto the device."""
        self.control, self.chronicle = Control(partial(self.act, self)), Chronicle(self.records)
        self.background = Background(evolve(self.evaluator), self.records.say)
        self.reset()

    # -- the moves of an operator --------------------------------------------------------------------------------------
    def begin(self, epochs: int | None = None, iterations: int | None = None) -> None:
        """Start training; optionally end after so much more of it.  The calling thread must have been claimed.

        A state that was saved during training goes on where it was: that is no new start.
        """
        replay = self.chronicle.replay
        if replay is not None and (row := replay.begin(self.clock.moment.iteration)) is not None:
            epochs, iterations = row["epochs"], row["iterations"]
        further, midway = epochs is not None or iterations is not None, self.midway
        if not midway or further:
            self.pause_at, self.until = None, self.ahead(epochs, iterations)
        self._elapsed()
        self.control.over = self._reached(self.until) or (midway == "over" and not further)
        if not midway:
            self.note({"event": "begin", "epochs": epochs, "iterations": iterations})
            self.tick(TimeScale.START)
        self.midway, self.halted = "", False
        if midway == "paused":
            self.control.status = midway  # for what the journal holds of it; if that is nothing, training goes on
            if replay is None:
                self.act(self, commands.Go())

    def end(self, failed: bool = False) -> None:
        """Leave the training thread, after the hooks that are due at a stop."""
        try:
            self.clock.advance(0, seconds=self._elapsed())
            if not failed:
                failed = True  # if one of these fails
                finish(self)
                self.tick(TimeScale.STOP)
                failed = False
            self.records.row(self.clock.moment, force=True)
            self.note({"event": "end", "failed": failed})
        finally:
            self.background.forget()
            self.control.end("failed" if failed else "stopped")

    def boundary(self) -> bool:
        """Let commands act, and wait here while paused; return whether training goes on."""
        if (replay := self.chronicle.replay) is not None:
            self.relive(replay)
            if replay.rows and replay.goes_on:
                self._perhaps_leave(replay)
                return not self.control.over  # who gives other commands waits until all is done again
        else:
            catch_up(self)
        return self.control.boundary()

    def relive(self, replay: Replay) -> None:
        """Let the commands act that the journal holds for this moment; when it is at its end, end, or go on freely."""
        self.runner.spent()  # the journal says what becomes of them
        while (found := replay.outside(self.clock.moment.iteration)) is not None:
            if isinstance(found, commands.Command):
                replay.attempt(partial(self.act, self, found), self.records.say)
            else:
                beside(self, found)
        if replay.rows:
            self.control.over |= replay.next(self.clock.moment.iteration, event="end") is not None
            return
        if not replay.goes_on:
            self.control.over = True
            return
        self.chronicle.replay = None
        if replay.differs:
            self.records.say(f"{self.name}: what is done again differs from the journal. At {replay.differs}.")
        if self.control.status == "paused":
            self.act(self, commands.Go())

    def _perhaps_leave(self, replay: Replay) -> None:
        """End training, if that is asked for, before all is done again; the rest waits for who resumes the run."""
        if self.control.awaits(commands.Stop) or (self.control.over and replay.ahead(self.clock.moment.iteration)):
            self.control.over, replay.left = False, True
            self.act(self, commands.Stop("interrupted"))

    def distance(self) -> int:
        """Return the number of iterations until something is due, at least 1."""
        now = self.clock.moment
        per_epoch, done = self.feed.iterations_per_epoch, self.feed.iteration_in_epoch
        steps = [hook.every for hook in self.runner.active()]
        due = until_due(steps, now, iterations_per_epoch=per_epoch, iteration_in_epoch=done, batch=self.feed.batch_size)
        goals = [goal - now.iteration for goal in (self.pause_at, self.until) if goal is not None]
        if (replay := self.chronicle.replay) is not None and (ahead := replay.ahead(now.iteration)) is not None:
            goals.append(ahead)
        return max(1, min([per_epoch - done, *goals, *([] if due is None else [due])]))

    def goal(self) -> int | None:
        """Return the iteration at which training will end at the latest, if that is known."""
        goals = [] if self.until is None else [float(self.until)]
        for hook in self.runner.active():
            if hook.ends:
                goals += ends(hook, self.feed.iterations_per_epoch)
        return int(min(goals)) if goals else None

    def advance(self, n: int, burst: Callable[[Session, Batches], Burst] | None = None) -> int:
        """Run at most ``n`` iterations as one burst; return how many were run.

        ``burst`` replaces the fused program, for operators that cut batches into shards.
        """
        with self.timed("data"):
            batches = self.feed.next(n)  # what one block holds
        burst, wanted, self.observed = burst or Session.fused, self._observed_after(batches), {}
        if not wanted:
            return self._run(batches, burst)
        before, last = (evolve(batches, rows=rows) for rows in (batches.rows[:-1], batches.rows[-1:]))
        done = self._run(before, burst) if len(before.rows) else 0
        if done == len(before.rows) and (not done or self._finite()):
            self.observed = self.evaluator.observe(self.arrays, self.steer, last.block, last.rows, wanted)
            done += self._run(last, burst)
        return done

    def _run(self, batches: Batches, burst: Callable[[Session, Batches], Burst]) -> int:
        with self.timed("burst"):
            result = burst(self, batches)
        self.arrays = result.state
        self._count(batches, result)
        return result.done

    def _finite(self) -> bool:
        return isfinite(self.published.get("training.loss", 0.0))

    def fused(self, batches: Batches) -> Burst:
        """Run whole steps on the given minibatches."""
        n, size = batches.rows.shape
        step, program = self.programs.get(Model.training, size)
        return program.run(self.arrays, batches.block, batches.rows, self.steer(step, n), n)

    def settle(self) -> None:
        """Run the hooks that are due, and see whether a goal is reached."""
        before, now = self.settled, self.clock.moment
        self.settled = now
        due = self.chronicle.due(self.runner, before, now)
        with self.chronicle.together():
            with self.timed("hooks"):
                for name in due if self._finite() else self._guards(due):
                    self.fire(name)
            now = self.clock.moment  # a hook may have gone back
            self.records.row(now, force=now.epoch > before.epoch)
            self.chronicle.remember(now, self.snapshot, self.runner, now.epoch > before.epoch)
            if self._reached(self.pause_at):
                self.pause()
            self.control.over |= self._reached(self.until)

    # -- their parts ---------------------------------------------------------------------------------------------------
    @property
    def model(self) -> Model:
        """Return what is trained."""
        return self.programs.model

    def steer(self, step: Step, n: int = 1, offset: int = 0) -> dict[str, Any]:
        """Return the live values in force for ``n`` iterations of a step, ``offset`` iterations from now."""
        return self.live.at(step, self.clock.moment, n, offset)

    def timed(self, phase: str) -> Timed:
        """Add the seconds that are spent inside to a phase."""
        return Timed(self.phases, phase)

    def ahead(self, epochs: int | None = None, iterations: int | None = None) -> int | None:
        """Return the iteration at which so many epochs will have ended, or so many iterations passed, if earlier."""
        goals = [] if iterations is None else [iterations]
        if epochs is not None:
            goals.append(epochs * self.feed.iterations_per_epoch - self.feed.iteration_in_epoch)
        return self.clock.moment.iteration + min(goals) if goals else None

    def _reached(self, goal: int | None) -> bool:
        return goal is not None and self.clock.moment.iteration >= goal

    def _observed_after(self, batches: Batches) -> tuple[str, ...]:
        """Return what hooks want to see of the last iteration; those that go by seconds might at any."""
        if not self.runner.observers:
            return ()
        now, n = self.clock.moment, len(batches.rows)
        turns = self.feed.iteration_in_epoch + n >= self.feed.iterations_per_epoch
        then = evolve(
            now, iteration=now.iteration + n, epoch=now.epoch + turns, sample=now.sample + batches.rows.size, second=inf
        )
        return tuple(dict.fromkeys(a for n in self.runner.due(now, then) for a in self.runner.observers.get(n, ())))

    def _elapsed(self) -> float:
        """Return the seconds since this was last asked, or since training went on."""
        last, self._last = self._last, time.perf_counter()
        return self._last - last

    def _count(self, batches: Batches, result: Burst) -> None:
        epoch, size = self.feed.cursor.epoch, batches.rows.shape[1]
        self.feed.advance(batches, result.done)
        self.clock.advance(result.done, samples=result.done * size, seconds=self._elapsed())
        if self.feed.cursor.epoch > epoch:
            self.clock.tick(TimeScale.EPOCH)
        ring = self._measured(result.ring, size)
        self.chronicle.measured(ring["training.loss"])
        self.published.update({name: values[-1].tolist() for name, values in ring.items()})
        self.records.measured({name: values for name, values in ring.items() if values.ndim == 1})

    def _measured(self, ring: Mapping[str, np.ndarray], rows: int) -> dict[str, np.ndarray]:
        measured = {"training.loss": ring["loss"]}
        for name, metric in self.model.metrics.items():
            measured[f"training.{name}"] = np.array([metric.value(t, rows) for t in ring[f"metrics.{name}"]])
        return measured

    def _guards(self, due: list[str]) -> list[str]:
        guards = self.runner.guards()
        if not guards:
            now = self.clock.moment
            raise SigmaTrainingError(
                f"{self.name}: the loss is {self.published['training.loss']} at iteration {now.iteration} "
                f"(epoch {now.epoch}). Lower the learning rate, clip the gradients, or add a nan_guard hook."
            )
        return list(dict.fromkeys((*guards, *due)))

    def fire(self, name: str, at_once: bool = False) -> None:
        """Run one hook, if its criterion holds; a hook of local scope once for each worker.

        One in the background is only handed over, unless it is to run ``at_once``.
        """
        hook = self.runner.hooks.get(name)
        local = hook is not None and hook.scope == "local"
        for scope in [f"workers.{worker}." for worker in range(self.workers)] if local else [""]:
            if hook is not None and self.runner.wants(name, hook):  # still, after what was just done
                self.runner.attempt(name, partial(self._fire, name, scope, at_once))

    def _fire(self, name: str, scope: str, at_once: bool) -> None:
        context, runner = self.sight(name, scope), self.runner
        holds, moment = partial(runner.holds, name, context, scope), self.clock.moment
        if not (self.chronicle.judge(moment, name, scope, holds) if name in runner.judged else holds()):
            return
        if runner.behind(name) and not at_once:
            hand_over(self, context)
        else:
            runner.run(name, context)

    def sight(self, name: str, scope: str = "") -> Sight:
        """Return what a hook sees in a scope."""
        return self.context(self, name, scope)

    def tick(self, scale: TimeScale) -> None:
        """Let an event happen: run the hooks that are due at it."""
        before = self.clock.moment
        self.clock.tick(scale)
        self.settled = self.clock.moment
        with self.chronicle.together():
            for name in self.chronicle.due(self.runner, before, self.clock.moment):
                self.fire(name, at_once=scale is TimeScale.STOP)  # nothing goes on beside it

    def pause(self) -> None:
        """Stop after the present burst, and wait."""
        self.clock.advance(0, seconds=self._elapsed())
        self.control.status, self.pause_at = "paused", None
        self.tick(TimeScale.PAUSE)

    def go(self) -> None:
        """Go on after a pause."""
        self.control.status = "running"
        self._elapsed()
        self.tick(TimeScale.RESUME)

    # -- the state tree ------------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Go back to the initial state, at iteration 0."""
        self.restore(Checkpoint(self.initial(), {}))

    def snapshot(self) -> Checkpoint:
        """Return the whole state tree: arrays by name, and all else as JSON values."""
        return capture(self)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Put a state tree back; what it does not hold starts afresh."""
        self.background.forget()
        put_back(self, checkpoint)
        for address in self.published:
            self.show(address)

    def adopt(self, changes: Changes) -> None:
        """Go over to components that differ so from those of the settings."""
        self.remake(self, changes)

    def note(self, what: Mapping[str, Any]) -> None:
        """Write into the journal what happens now."""
        self.chronicle.note(self.clock.moment, what)

    # -- reading -------------------------------------------------------------------------------------------------------
    def host(self, name: str) -> np.ndarray:
        """Return a copy of a state entry; belongs to the training thread, or to a question."""
        return self.programs.backend.to_host(self.arrays[name])

    def lookup(self, address: str, scope: str = "") -> Any:
        """Return what criteria and hooks see under an address, or None if it is not there yet; local values first.

        Under a pattern they see a dictionary of all that match.
        """
        found, bound = seen({**self.observed, **self.published}, address, scope), dict(self.registry.find(address))
        if literal(address):
            return bound.get(address) if found is None else found
        return {**bound, **found}

    def publish(self, address: str, value: Any) -> None:
        """Publish a value under an address of this trainer."""
        value = value.item() if isinstance(value, np.generic) else value
        self.published[address] = value
        if isinstance(value, int | float) and not isinstance(value, bool):
            self.records.measured({address: np.array([value], float)})

    def show(self, address: str) -> None:
        """Let what is published under an address be read there, if it is not yet; local values stay apart."""
        if address not in self.registry and not address.startswith("workers."):
            self.registry.bind(address, lambda: self.published.get(address, NOTHING))
            self.makeup.shown.add(address)

    def evaluate(self, on: str, metrics: Mapping[str, Metric]) -> dict[str, Any]:
        """Return the loss and the metrics over a split of the data, at the present parameters."""
        with self.timed("evaluation"):
            return self.evaluator.evaluate(self.arrays, self.steer, on, metrics)
