"""The replayer: repeats what a journal holds, and continues training where that ends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.contracts.commanding import Command
from sigma_training.history.replay import RESUMED, Replay
from sigma_training.session.current import CurrentRun
from sigma_training.session.hook_runner import HookRunner
from sigma_training.session.progress import NONE, Phase, TrainingProgress
from sigma_training.session.snapshot import take_snapshot


@define(eq=False, repr=False)
class Replayer:
    """Replay the journal of the current run."""

    current: CurrentRun
    hooks: HookRunner
    _own_goals: TrainingProgress = field(factory=TrainingProgress, init=False)  # before those of a replayed ``begin``
    _stays_paused: bool = field(default=False, init=False)  # after a resume
    _goes_back: int | None = field(default=None, init=False)  # to this iteration, once the journal is replayed
    has_arrived: bool = field(default=False, init=False)  # at the iteration at which the replay was to stop

    def resume(self, replay: Replay | None, row: Mapping[str, Any], stays_paused: bool = False) -> None:
        """Continue from a restored checkpoint: write the ``resumed`` row, and replay the journal after it."""
        self._stays_paused = stays_paused
        self.current.note(row)
        self.current.recorder.compare(replay)

    def rewind_afterwards(self, to: int) -> None:
        """Rewind to the checkpoint of an iteration as soon as the journal is replayed."""
        self._goes_back = to

    def remember_goals(self, progress: TrainingProgress) -> None:
        """Remember the goals to which training goes on if the replay is left early."""
        self._own_goals = progress

    def replay_rows(self, replay: Replay) -> None:
        """Replay the rows of this moment; at the end of the journal, end training or continue."""
        current = self.current
        self.hooks.forget_budgets()  # the consequences are in the journal
        replay.pass_by(current.moment.iteration)
        find = current.commands.find
        while not self._arrives(replay) and (entry := replay.next_external(current.moment.iteration, find)) is not None:
            if isinstance(entry, Command):
                who = str(replay.rows[0].get("who", ""))
                replay.attempt(partial(self.current.commands.apply, entry, who), current.recorder.log)
            elif entry["event"] == RESUMED:
                current.note(entry)
                current.recorder.past.keep(current.moment, take_snapshot(current.present))  # as that resume did
            else:
                self.hooks.apply_result(entry)
        if self.has_arrived:
            current.set_progress(evolve(current.progress, interrupted=True))
        elif not replay.rows and replay.goes_on:
            self._go_on(replay)
        elif replay.is_over or replay.next_row(current.moment.iteration, event="end") is not None:
            current.set_progress(current.progress.ending())

    def _arrives(self, replay: Replay) -> bool:
        """Leave the replay at the iteration at which it is to stop, before what was commanded there; return whether."""
        if replay.reaches(self.current.moment.iteration):
            self.has_arrived = True
            replay.leave()
        return self.has_arrived

    def _go_on(self, replay: Replay) -> None:
        """Train on from the end of the journal."""
        self.current.recorder.compare(None)
        if replay.differs:
            self.current.log(f"the replay differs from the journal. At {replay.differs}.")
        if self._goes_back is not None:
            self.current.commands.apply(self.current.commands.make("rewind", to=self._goes_back))
        self.train_on()

    def train_on(self) -> None:
        """Continue a run that was interrupted while paused or stepping, unless it is to stay paused."""
        if self._stays_paused:
            return
        progress = self.current.progress
        if progress.pause != NONE and progress.phase is Phase.RUNNING:
            self.current.commands.apply(self.current.commands.make("pause"))
        if self.current.progress.phase is Phase.PAUSED:
            self.current.commands.apply(self.current.commands.make("go"))

    def leave_early(self, replay: Replay) -> None:
        """Stop during replay if requested, or at a goal; the next resume replays the rest."""
        progress, now = self.current.progress, self.current.moment.iteration
        if self.current.queue.awaits("stop") or (progress.is_over and replay.iterations_to_next(now)):
            phase = Phase.RUNNING if progress.phase is Phase.ENDING else progress.phase
            self.current.set_progress(evolve(self._own_goals, phase=phase, interrupted=False))
            replay.leave()
            self.current.commands.apply(self.current.commands.make("stop", cause="interrupted"))
