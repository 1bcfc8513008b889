"""Time scales, moments in training, and time steps, which say when something is due.

The time scales:

- ``iteration``: after the update of an iteration; the first iteration is 1.
- ``epoch``: at the end of an epoch, before the first update of the next one.
- ``sample``: at the first boundary at or after a number of samples.
- ``second``: at the first boundary at or after a number of seconds of wall-clock time since training began. This
  includes hooks, evaluation and compilation, but neither pauses nor the time between two runs.
- ``start``: before the first update of every run; ``stop``: after the last one.
- ``pause``, ``resume``, ``reset``: at the next boundary after this event.

A time step has no state. Whether it is due is a function of two moments, so a burst of many iterations fires the same
hooks as single iterations. It fires once for several due points between two boundaries.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from attrs import Factory, evolve, field, frozen

from sigma_kernel.errors import SigmaConfigError, suggest_name
from sigma_kernel.settings import is_finite


class TimeScale(Enum):
    """The scale on which a time step counts."""

    ITERATION = "iteration"
    EPOCH = "epoch"
    SAMPLE = "sample"
    SECOND = "second"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    RESET = "reset"
    STOP = "stop"


COUNTED = (TimeScale.ITERATION, TimeScale.EPOCH, TimeScale.SAMPLE, TimeScale.SECOND)
EVENTS = tuple(scale for scale in TimeScale if scale not in COUNTED)
NAMES = {name: scale for scale in TimeScale for name in (scale.value, f"{scale.value}s")}
UNITS = {name: scale for name, scale in NAMES.items() if scale in COUNTED}
Scale = TimeScale | str


@frozen
class Moment:
    """The count of each time scale; ``second`` is wall-clock time since training began, without pauses."""

    iteration: int = 0
    epoch: int = 0
    sample: int = 0
    second: float = 0.0
    start: int = 0
    pause: int = 0
    resume: int = 0
    reset: int = 0
    stop: int = 0

    def count(self, scale: TimeScale) -> float:
        """Return the count of one scale."""
        return getattr(self, scale.value)  # type: ignore[no-any-return]

    def advance(self, iterations: int, samples: int = 0, seconds: float = 0.0, epochs: int = 0) -> Moment:
        """Return the moment after more iterations."""
        done, rows, passed = self.iteration + iterations, self.sample + samples, self.second + seconds
        events = self.start, self.pause, self.resume, self.reset, self.stop
        return Moment(done, self.epoch + epochs, rows, passed, *events)

    def tick(self, scale: TimeScale) -> Moment:
        """Return the moment with the count of one scale increased by 1."""
        return evolve(self, **{scale.value: getattr(self, scale.value) + 1})


# -- amounts of time ---------------------------------------------------------------------------------------------------
_NUMBER = r"\d++\.?\d*+(?:e[+-]?\d++)?"


def time_scale(scale: Scale) -> TimeScale:
    """Return a time scale by its name, singular or plural; raises SigmaConfigError if there is none."""
    if isinstance(scale, str) and scale not in NAMES:
        choices = ", ".join(member.value for member in TimeScale)
        raise SigmaConfigError(f"{scale!r} is not a time scale.{suggest_name(scale, NAMES)} There are {choices}.")
    return NAMES[scale] if isinstance(scale, str) else scale


def amount(count: Any, scale: TimeScale) -> float:
    """Return a count of a scale as an int, or a float of seconds; raises SigmaConfigError for an invalid one."""
    if not is_finite(count) or count <= 0:
        raise SigmaConfigError(f"{count!r} {scale.value}s: must be a number above 0.")
    if count == int(count):
        return int(count)
    if scale is not TimeScale.SECOND:
        raise SigmaConfigError(f"{count!r} {scale.value}s: must be a whole number.")
    return float(count)


def spoken(number: float) -> str:
    """Return the shortest exact text of a number: ``0.1``, ``10``, ``1e-05``."""
    return repr(number).removesuffix(".0")


def words(count: float, scale: TimeScale) -> str:
    """Return the text of a duration: ``1 epoch``, ``2.5 seconds``."""
    return f"{spoken(count)} {scale.value}{'' if count == 1 else 's'}"


def duration(text: str) -> tuple[float, TimeScale]:
    """Parse a duration, such as ``5 epochs``, ``100 iterations`` or ``2.5 seconds``; return its count and scale.

    Raises SigmaConfigError for a missing or unknown unit, and for fractions of units other than seconds.
    """
    match = re.fullmatch(rf"({_NUMBER})\s*+([a-z]*+)", text.strip())
    if match is None:
        raise SigmaConfigError(f"{text!r} is not a duration. Write a number and a unit, such as '2 epochs'.")
    if match[2] not in UNITS:
        hint = suggest_name(match[2], UNITS) if match[2] else f" Add one, such as '{match[1]} epochs'."
        raise SigmaConfigError(f"{text!r}: the unit must be epochs, iterations, samples or seconds.{hint}")
    return amount(float(match[1]), UNITS[match[2]]), UNITS[match[2]]


# -- steps -------------------------------------------------------------------------------------------------------------
_STEP = re.compile(
    rf"after (?P<once>{_NUMBER} ?[a-z]*+)"
    rf"|(?:(?:every )?(?P<often>{_NUMBER} ?[a-z]*+)|every (?P<each>[a-z]++))"
    rf"(?: from (?P<first>{_NUMBER})| between (?P<low>{_NUMBER}) and (?P<high>{_NUMBER}))?"
)


@frozen
class TimeStep:
    """Due at ``first``, ``first + interval``, ... up to ``last`` on one scale; an event is due whenever it happens.

    Raises SigmaConfigError for a time step that is never due.
    """

    scale: TimeScale = field(converter=time_scale)
    interval: float = 1
    first: float = Factory(lambda step: step.interval, takes_self=True)
    last: float | None = None

    def __attrs_post_init__(self) -> None:
        """Convert the counts to plain numbers, and check them."""
        for name in ("interval", "first", "last"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else amount(value, self.scale))
        if self.scale in EVENTS and (self.interval, self.first, self.last) != (1, 1, None):
            raise SigmaConfigError(f"{self.scale.value}: is an event, which takes no number.")
        if self.last is not None and self.last < self.first:
            raise SigmaConfigError(f"{self}: is never due. Put the smaller number first.")

    def due(self, before: Moment, now: Moment) -> bool:
        """Return whether there is a due point after the first moment, up to and including the second."""
        point = self.next_due(before.count(self.scale))
        return point is not None and point <= now.count(self.scale)

    def next_due(self, count: float) -> float | None:
        """Return the first due point after a count of the scale, or None if there is none."""
        passed = (count - self.first) // self.interval + 1 if count >= self.first else 0
        point = self.first + passed * self.interval
        if point <= count:  # because of rounding, in seconds
            point = self.first + (passed + 1) * self.interval
        return None if self.last is not None and point > self.last else point

    def __str__(self) -> str:
        if self.scale in EVENTS:
            return self.scale.value
        if self.first == self.last and self.interval == 1:
            return f"after {words(self.first, self.scale)}"
        each = f"every {words(self.interval, self.scale)}"
        if self.last is not None:
            return f"{each} between {spoken(self.first)} and {spoken(self.last)}"
        return each if self.first == self.interval else f"{each} from {spoken(self.first)}"

    @classmethod
    def parse(cls, text: str) -> TimeStep:
        """Parse a time step: ``1 epoch``, ``every 2 epochs``, ``after 10 iterations``, ``start``; inverse of str().

        Raises SigmaConfigError for invalid text.
        """
        plain = " ".join(text.split())
        if plain in [scale.value for scale in EVENTS]:
            return cls(plain)
        match = _STEP.fullmatch(plain)
        if match is None:
            hint = suggest_name(plain, [scale.value for scale in EVENTS])
            legal = "Write 'every 2 epochs', '100 iterations', 'after 30 seconds', 'start' or 'stop'."
            raise SigmaConfigError(f"{text!r} is not a time step.{hint or ' ' + legal}")
        if match["once"]:
            return after(*duration(match["once"]))
        count, scale = duration(match["often"] or f"1 {match['each']}")
        first, last = match["first"] or match["low"], match["high"]
        return cls(scale, count, float(first) if first else count, float(last) if last else None)


def every(interval: float, scale: Scale) -> TimeStep:
    """Return a time step that is due at each multiple of the interval."""
    return TimeStep(scale, interval)


def after(count: float, scale: Scale) -> TimeStep:
    """Return a time step that is due once, at a count of the scale."""
    return TimeStep(scale, 1, count, count)


def between(first: float, last: float, scale: Scale, interval: float = 1) -> TimeStep:
    """Return a time step that is due at ``first`` and then at every interval, up to ``last``."""
    return TimeStep(scale, interval, first, last)
