"""How long each of several others has been silent, by ticks instead of a clock."""

from __future__ import annotations

from attrs import define, field

STEPS = 4  # ticks that a silence lasts at least
MOST = 4.0  # limits that a patience lasts at most


@define
class Silence:
    """Measure silences by ticks.

    A tick counts for a quarter of the limit at most: if the listener itself was suspended, others were not silent.  A
    silence begins with the tick after a sign of life, so that none is said to last longer than it does.
    """

    limit: float
    limits: float = field(default=1.0, init=False)  # that a patience lasts
    time: float = field(default=0.0, init=False)
    _last: float | None = field(default=None, init=False)
    _heard: dict[int, float] = field(factory=dict, init=False)
    _since: set[int] = field(factory=set, init=False)  # heard since the last tick

    @property
    def step(self) -> float:
        """Return the seconds that one tick counts for at most."""
        return self.limit / STEPS

    @property
    def patience(self) -> float:
        """Return the seconds after which another is silent."""
        return self.limit * self.limits

    def stretch(self, factor: float) -> None:
        """Multiply the patience, within one and four limits."""
        self.limits = min(max(factor * self.limits, 1.0), MOST)

    def tick(self, seconds: float) -> None:
        """Note the time, in seconds since any moment."""
        self.time += 0.0 if self._last is None else min(max(seconds - self._last, 0.0), self.step)
        self._last = seconds
        self._heard.update(dict.fromkeys(self._since, self.time))
        self._since.clear()

    def hear(self, other: int) -> None:
        """Note a sign of life."""
        self._heard[other] = self.time
        self._since.add(other)

    def forget(self, other: int) -> None:
        """Listen no more."""
        self._heard.pop(other, None)
        self._since.discard(other)

    def silent(self) -> list[int]:
        """Return those that were silent for the patience."""
        return sorted(other for other, heard in self._heard.items() if self.time - heard >= self.patience)
