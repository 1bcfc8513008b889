"""When things happen: time scales, moments on them, and steps between moments.

Exactly when each scale fires:

- ``iteration``: after the update of that iteration; iteration 1 is the first one.
- ``epoch``: at the end of the epoch, before the next one's first update; what runs then sees the state of its end.
- ``sample``: at the first boundary at or after so many samples; ``second``: likewise, in seconds of training.
- ``start``: before the first update of every run; ``stop``: after the last one.
- ``pause``, ``resume``, ``reset``: when that has just happened.

A time step remembers nothing: whether it is due is a function of two moments, so that a burst of many iterations
fires what single ones would have fired.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import Enum
from typing import Any

from attrs import Factory, asdict, define, evolve, field, frozen

from sigma_kernel.errors import SigmaConfigError, near


class TimeScale(Enum):
    """What a step counts."""

    ITERATION = "iteration"
    EPOCH = "epoch"
    SAMPLE = "sample"
    SECOND = "second"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    RESET = "reset"
    STOP = "stop"


COUNTED = (TimeScale.ITERATION, TimeScale.EPOCH, TimeScale.SAMPLE, TimeScale.SECOND)  # the others are events
Scale = TimeScale | str


@frozen
class Moment:
    """How often each scale has ticked so far; ``second`` is time spent training."""

    iteration: int = 0
    epoch: int = 0
    sample: int = 0
    second: float = 0.0
    start: int = 0
    pause: int = 0
    resume: int = 0
    reset: int = 0
    stop: int = 0

    def on(self, scale: TimeScale) -> float:
        """Return the count of one scale."""
        return getattr(self, scale.value)  # type: ignore[no-any-return]


def _positive(step: TimeStep, attribute: Any, value: float | None) -> None:
    if value is not None and not value > 0:
        raise SigmaConfigError(f"time step: {attribute.name} must be more than 0 (got {value!r}).")


@frozen
class TimeStep:
    """Due at ``first``, ``first + interval``, ... up to ``last``, counted on one scale."""

    scale: TimeScale
    interval: float = field(default=1, validator=_positive)
    first: float = field(validator=_positive, default=Factory(lambda step: step.interval, takes_self=True))
    last: float | None = field(default=None, validator=_positive)

    def due(self, before: Moment, now: Moment) -> bool:
        """Return whether a due point lies after one moment and not after the other."""
        point = self.next(before.on(self.scale))
        return point is not None and point <= now.on(self.scale)

    def next(self, count: float) -> float | None:
        """Return the first due point after a count of the scale, or None if there is none left."""
        passed = math.floor((count - self.first) / self.interval) + 1 if count >= self.first else 0
        point = self.first + passed * self.interval
        return None if self.last is not None and point > self.last else point

    def __str__(self) -> str:
        if self.scale not in COUNTED:
            return self.scale.value
        if self.first == self.last:
            return f"after {words(self.first, self.scale)}"
        each = f"every {words(self.interval, self.scale)}"
        if self.last is None:
            return each if self.first == self.interval else f"{each} from {self.first:g}"
        return f"{each} between {self.first:g} and {self.last:g}"

    @classmethod
    def parse(cls, text: str) -> TimeStep:
        """Return what a text says: ``1 epoch``, ``every 2 epochs``, ``after 10 iterations``, ``start``.

        Raises SigmaConfigError for anything else.
        """
        if text in [scale.value for scale in TimeScale if scale not in COUNTED]:
            return cls(TimeScale(text))
        found = re.fullmatch(
            r"(?P<kind>every |after )?(?P<duration>[^ ]+ [a-z]+|[^ ]+)"
            r"( from (?P<first>[\d.]+)| between (?P<low>[\d.]+) and (?P<high>[\d.]+))?",
            " ".join(text.split()),
        )
        if found is None:
            raise SigmaConfigError(_illegal(text))
        count, scale = duration(found["duration"])
        if found["kind"] == "after ":
            return after(count, scale)
        if found["low"]:
            return between(float(found["low"]), float(found["high"]), scale, count)
        return cls(scale, count, _whole(float(found["first"])) if found["first"] else count)


def _illegal(text: str) -> str:
    return f"{text!r} is no time step. Write 'every 2 epochs', '100 iterations', 'after 30 seconds', 'start' or 'stop'."


def _whole(count: float) -> float:
    return int(count) if count == int(count) else count


def words(count: float, scale: TimeScale) -> str:
    """Return a duration as people write it: ``1 epoch``, ``2.5 seconds``."""
    return f"{count:g} {scale.value}{'' if count == 1 else 's'}"


def duration(text: str) -> tuple[float, TimeScale]:
    """Return the count and the scale of a duration, such as ``5 epochs``, ``100 iterations`` or ``2.5 seconds``.

    Raises SigmaConfigError for a number without a unit, an unknown unit, or a part of a thing that has none.
    """
    found = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([a-z]*)\s*", text)
    try:
        count = float(found[1]) if found else math.nan
    except ValueError:
        count = math.nan
    if not found or not count > 0:
        raise SigmaConfigError(f"{text!r} is no duration. Write a number and a unit, such as '2 epochs'.")
    units = {scale.value: scale for scale in COUNTED}
    unit = found[2].removesuffix("s")
    if unit not in units:
        hint = near(unit, units) if unit else " Add one."
        raise SigmaConfigError(f"{text!r}: the unit must be epochs, iterations, samples or seconds.{hint}")
    if units[unit] is not TimeScale.SECOND and count != int(count):
        raise SigmaConfigError(f"{text!r}: there is no part of {unit}. Use a whole number.")
    return _whole(count), units[unit]


def every(interval: float, scale: Scale) -> TimeStep:
    """Return a step that is due at each multiple of the interval."""
    return TimeStep(TimeScale(scale), interval)


def after(count: float, scale: Scale) -> TimeStep:
    """Return a step that is due once, when so much has passed."""
    return TimeStep(TimeScale(scale), count, count, count)


def between(first: float, last: float, scale: Scale, interval: float = 1) -> TimeStep:
    """Return a step that is due at ``first`` and then at every interval, up to ``last``."""
    return TimeStep(TimeScale(scale), interval, _whole(first), _whole(last))


def until_due(
    steps: Iterable[TimeStep], moment: Moment, *, iterations_per_epoch: int, iteration_in_epoch: int, batch: int
) -> int | None:
    """Return the number of iterations before something is due, at least 1, or None if nothing ever is.

    ``batch`` is the greatest number of samples in an iteration.  Seconds do not bound iterations: the operator bounds
    bursts in time.
    """
    least: list[int] = []
    for step in steps:
        point = step.next(moment.on(step.scale))
        if point is None:
            continue
        if step.scale is TimeScale.ITERATION:
            least.append(int(point) - moment.iteration)
        elif step.scale is TimeScale.EPOCH:
            whole = int(point) - moment.epoch
            least.append(whole * iterations_per_epoch - iteration_in_epoch)
        elif step.scale is TimeScale.SAMPLE:
            least.append(-(-(int(point) - moment.sample) // batch))
    return max(1, min(least)) if least else None


@define
class Clock:
    """The present moment of one trainer."""

    moment: Moment = field(factory=Moment)

    def advance(self, iterations: int, samples: int, seconds: float) -> None:
        """Count iterations that were done."""
        now = self.moment
        self.moment = evolve(
            now, iteration=now.iteration + iterations, sample=now.sample + samples, second=now.second + seconds
        )

    def tick(self, scale: TimeScale) -> None:
        """Count one more of a scale."""
        self.moment = evolve(self.moment, **{scale.value: int(self.moment.on(scale)) + 1})

    def state(self) -> dict[str, Any]:
        """Return the moment as plain values."""
        return asdict(self.moment)

    def restore(self, state: dict[str, Any]) -> None:
        """Set the moment from plain values."""
        self.moment = Moment(**state)
