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

from sigma_kernel.clock import TimeScale, until_due
from sigma_kernel.contracts import Burst
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.training.checkpoints.format import Checkpoint
from sigma_kernel.training.commands import types as commands
from sigma_kernel.training.commands.queue import Control
from sigma_kernel.training.data.feed import Batches
from sigma_kernel.training.history.chronicle import Chronicle
from sigma_kernel.training.history.replay import RESUMED, Replay, Row
from sigma_kernel.training.hooks.background import Background
from sigma_kernel.training.hooks.order import REPEATED, ends
from sigma_kernel.training.session.context import Context
from sigma_kernel.training.session.state import State
from sigma_kernel.training.step.iteration import Iteration
from sigma_kernel.training.step.model import Model


@define(eq=False, kw_only=True)
class Session(State):
    """One trainer at work."""

    initial: Callable[[], Mapping[str, np.ndarray]]
    save_as: Callable[[Checkpoint], Any] | None = None
    forsake: Callable[[int, int], None] = lambda after, branch: None  # what was saved on a branch that is left
    workers: int = 1
    _former: tuple[int | None, int | None] = field(default=(None, None), init=False)  # goals of what is done again
    _last: float = field(factory=time.perf_counter, init=False)  # when the clock's seconds were counted last

    def __attrs_post_init__(self) -> None:
        """Put the initial state onto the device."""
        self.control = Control(partial(self.act, self), lambda: self.records.journal.durable())
        self.chronicle = Chronicle(self.records)
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
        former = self.pause_at, self.until
        if not midway or further:
            self.pause_at, self.until = None, self.ahead(epochs, iterations)
        self._former = former if midway else (self.pause_at, self.until)
        self._elapsed()
        self.control.over = self._reached(self.until) or (midway in ("over", "ended") and not further)
        if not midway:
            self.note({"event": "begin", "epochs": epochs, "iterations": iterations})
            self.tick(TimeScale.START)
        self.midway, self.halted = "ended" if midway == "ended" and not further else "", False
        if midway == "paused":
            self.control.status = midway  # for what the journal holds of it
        if midway and replay is None:
            self._onward()

    def end(self, failed: bool = False, hold: bool = False) -> None:
        """Leave the training thread after the hooks that are due at a stop; ``hold`` it if more is to be done again."""
        try:
            self.clock.advance(0, seconds=self._elapsed())
            if not failed:
                failed = True  # if one of these fails
                self.finish()
                if self.midway != "ended":  # else it was saved after them
                    self.midway = "ended"
                    self.tick(TimeScale.STOP)
                failed = False
            self.records.row(self.clock.moment, force=True)
            self.note({"event": "end", "failed": failed})
        finally:
            self.midway = ""
            self.background.forget()
            self.control.end("failed" if failed else "stopped", behind=hold and self.chronicle.behind)

    def boundary(self) -> bool:
        """Let commands act, and wait here while paused; return whether training goes on."""
        if (replay := self.chronicle.replay) is not None:
            self.relive(replay)
            if replay.rows and replay.goes_on:
                self._perhaps_leave(replay)
                return not self.control.over  # who gives other commands waits until all is done again
        else:
            self.catch_up()
        return self.control.boundary()

    def relive(self, replay: Replay) -> None:
        """Let the commands act that the journal holds for this moment; when it is at its end, end, or go on freely."""
        self.runner.spent()  # the journal says what becomes of them
        while (found := replay.outside(self.clock.moment.iteration)) is not None:
            if isinstance(found, commands.Command):
                replay.attempt(partial(self.act, self, found), self.records.say)
            elif found["event"] == RESUMED:
                self.note(found)
                self.chronicle.past.keep(self.clock.moment, self.snapshot())  # as whoever resumed the run did
            else:
                self.beside(found)
        if replay.rows:
            self.control.over |= replay.next(self.clock.moment.iteration, event="end") is not None
            return
        if not replay.goes_on:
            self.control.over = True
            return
        self.chronicle.replay = None
        if replay.differs:
            self.records.say(f"{self.name}: what is done again differs from the journal. At {replay.differs}.")
        self._onward()

    def _onward(self) -> None:
        """Train on where the run was paused, or stepped, when it broke off: whoever did that is gone."""
        if self.chronicle.waits:
            return
        if self.pause_at is not None and self.control.status == "running":
            self.act(self, commands.Pause())
        if self.control.status == "paused":
            self.act(self, commands.Go())

    def _perhaps_leave(self, replay: Replay) -> None:
        """End training, if that is asked for, before all is done again; the rest waits for who resumes the run."""
        if self.control.awaits(commands.Stop) or (self.control.over and replay.ahead(self.clock.moment.iteration)):
            self.control.over, replay.left = False, True
            self.pause_at, self.until = self._former
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
            done += self._run(last, burst, REPEATED in wanted)
        return done

    def _run(self, batches: Batches, burst: Callable[[Session, Batches], Burst], repeatable: bool = False) -> int:
        begun = Iteration.begun(self, burst, batches) if repeatable else None
        with self.timed("burst"):
            result = burst(self, batches)
        self.arrays, self.repeatable = result.state, begun and begun.ended(result)
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
        for name in (name for name in due if self.runner.hooks[name].repeats):  # wrong numbers may be why
            self.fire(name)
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
        context, runner = Context(self, name, scope), self.runner
        holds, moment = partial(runner.holds, name, context, scope), self.clock.moment
        if not (self.chronicle.judge(moment, name, scope, holds) if name in runner.judged else holds()):
            return
        if at_once or not runner.behind(name):
            runner.run(name, context)
        elif self.chronicle.replay is None:  # else the journal says what it did
            self.background.hand_over(context.freeze())

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

    # -- what comes back from beside training --------------------------------------------------------------------------
    def catch_up(self) -> None:
        """Let act what has come about beside training: what hooks did, and budgets that were exceeded."""
        while (firing := self.background.result()) is not None:
            if isinstance(firing.error, KeyboardInterrupt):
                raise firing.error
            if self.runner.wants(firing.name, firing.hook):
                self.runner.took(firing.name, firing.seconds)
                self.beside(firing.row())
        for name, then in self.runner.spent().items():
            self.beside({"event": "budget", "hook": name, "then": then})

    def beside(self, row: Row) -> None:
        """Let something act that came about beside training, after it is written to the journal."""
        self.note(row)
        name, runner = row["hook"], self.runner
        if name not in runner.hooks:  # any more
            return
        if row["event"] == "budget":
            runner.limit(name, row["then"])
            return
        hook = runner.hooks[name]
        with self.chronicle.together():
            runner.attempt(name, lambda: Context(self, name, row["scope"]).do_again(row))
            if "error" in row:
                runner.failed(name, hook, row["error"])

    def finish(self) -> None:
        """Wait for what is under way, and let it act, unless training was stopped from outside and may go on later."""
        if self.chronicle.replay is None and not self.halted:
            self.background.finish()
            self.catch_up()
        if left := self.background.forget():
            self.records.say(f"{self.name}: training ended before {', '.join(left)} in the background did: left out")

    # -- the beginning -------------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Go back to the initial state, at iteration 0."""
        self.restore(Checkpoint(self.initial(), {}))
