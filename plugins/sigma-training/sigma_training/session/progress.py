"""The phases of training, and its goals."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import evolve, frozen


class Phase(StrEnum):
    """The phase of a trainer; in a snapshot, the phase that a resume continues with."""

    PREPARED = "prepared"
    RUNNING = "running"
    PAUSED = "paused"
    ENDING = "ending"  # training leaves at the next boundary; hooks at ``stop`` have not run
    ENDED = "ended"  # hooks at ``stop`` have run
    STOPPED = "stopped"
    FAILED = "failed"


Goal = tuple[int | None, int | None]  # the iteration, and the number of epochs, after which training pauses or ends
NONE: Goal = (None, None)


@frozen
class TrainingProgress:
    """The phase of training, and its goals: when it pauses, and when it ends.

    Goals in epochs are kept as such, because later epochs may have other numbers of iterations. ``interrupted``
    training ends at the next boundary, but keeps the phase that a resume continues with.
    """

    phase: Phase = Phase.PREPARED
    pause: Goal = NONE
    end: Goal = NONE  # in place of the number of epochs in the settings
    start: int | None = None  # which start of training it is
    interrupted: bool = False
    cause: str = ""  # how a hook ended training, if it said so

    @property
    def underway(self) -> bool:
        """Return whether training has begun and not finally ended: a resume of its snapshot continues it."""
        return self.phase in (Phase.RUNNING, Phase.PAUSED, Phase.ENDING, Phase.ENDED)

    @property
    def is_over(self) -> bool:
        """Return whether training leaves at the next boundary."""
        return self.interrupted or self.phase not in (Phase.RUNNING, Phase.PAUSED)

    def status(self, busy: bool) -> str:
        """Return prepared, running, paused, stopped or failed; ``busy`` says whether a thread trains."""
        if busy:
            return self.phase if self.phase in (Phase.PAUSED, Phase.FAILED) else Phase.RUNNING
        return self.phase if self.phase in (Phase.STOPPED, Phase.FAILED) else Phase.PREPARED

    def ending(self, cause: str = "") -> TrainingProgress:
        """Return this progress with an end at the next boundary, since a goal is reached, or a hook has a cause."""
        return self if self.is_over else evolve(self.with_phase(Phase.ENDING), cause=cause)

    def with_phase(self, phase: Phase) -> TrainingProgress:
        """Return this progress in another phase; pausing clears the goal to pause at."""
        return evolve(self, phase=phase, pause=NONE if phase is Phase.PAUSED else self.pause)

    def due_to_pause(self, iteration: int, epoch: int) -> bool:
        """Return whether training pauses at this iteration, of this epoch."""
        goals = zip(self.pause, (iteration, epoch), strict=True)
        return any(goal is not None and now >= goal for goal, now in goals)

    def to_list(self) -> list[int | str | None]:
        """Return phase and goals for a snapshot; training that is not in progress starts anew when restored."""
        pairs = zip(self.pause, self.end, strict=True)
        goals = [goal for pair in pairs for goal in pair]  # both in iterations, then both in epochs
        failed = self.phase is Phase.FAILED and self.start is not None
        phase = Phase.RUNNING if failed else self.phase  # a resume continues it from a state before
        cause = [self.cause] if self.cause else []  # a run that is killed at its end ends alike when it is resumed
        if self.underway or failed:
            return [phase.value, *goals, self.start, *cause]
        return [Phase.PREPARED.value, *([None] * 5 + cause if cause else [])]

    @classmethod
    def from_list(cls, saved: list[int | str | None] | None) -> TrainingProgress:
        """Return the progress in a snapshot."""
        phase, *rest = saved or (Phase.PREPARED,)
        iteration, until, epoch, last, start, cause = (*rest, *[None] * 6)[:6]  # an earlier version saved fewer
        pause: Any = iteration, epoch
        end: Any = until, last
        begun: Any = start
        return cls(Phase(str(phase)), pause, end, begun, cause=str(cause or ""))
