"""Which backend to take, from the times of all of them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from math import ceil, inf
from typing import Any

from attrs import frozen

from sigma_bench.contest import Result
from sigma_bench.report import time

COLUMNS = 80


@frozen
class Advice:
    """The fastest backend, and the number of iterations below which a faster start makes another one finish first."""

    best: Result
    next: Result | None
    sooner: Result | None
    even: int  # iterations from which the fastest finishes first
    configured: str

    @property
    def close(self) -> bool:
        """Return whether the next is as fast within the spread of the rounds."""
        return self.next is not None and _close(self.best, self.next)

    def __str__(self) -> str:
        return "\n".join(textwrap.fill(sentence, COLUMNS) for sentence in self.sentences)

    @property
    def sentences(self) -> Iterator[str]:
        """Yield what to take, and why."""
        name, took = self.best.name, time(self.best.median_s)
        if self.next is None:
            yield f"{name}: {took} an iteration. No other installed backend trains this."
        elif self.close:
            yield f"{name}: {took} an iteration, no faster than {self.next.name} within the spread."
        else:
            ratio = self.next.median_s / self.best.median_s
            yield f"{name}: {took} an iteration, {ratio:.2g} times as fast as the next ({self.next.name})."
        yield "It is what you have set." if name == self.configured else f'Set backend = "{name}".'
        if self.sooner is not None:
            ahead = time(begins(self.best) - begins(self.sooner))
            close = _close(self.best, self.sooner)
            few = f"For fewer than {self.even:,} iterations, {self.sooner.name} is done first: it"
            yield f"{self.sooner.name if close else few} starts and compiles {ahead} sooner."

    @property
    def entry(self) -> dict[str, Any]:
        """Return the entry of the JSON document."""
        sooner: dict[str, Any] | None = None
        if self.sooner is not None:
            even = None if _close(self.best, self.sooner) else self.even
            sooner = {"name": self.sooner.name, "up_to_iterations": even}
        return {"take": self.best.name, "close": self.close, "sooner": sooner}


def begins(result: Result) -> float:
    """Return the seconds before training is under way: start-up and compilation."""
    return result.started_s + result.compile_s


def take(results: Sequence[Result], configured: str) -> Advice:
    """Return the advice for one network."""
    best, *others = sorted(results, key=lambda one: one.median_s)
    sooner = max(others, key=lambda one: _break_even(best, one), default=None)
    even = 0.0 if sooner is None else _break_even(best, sooner)
    return Advice(best, others[0] if others else None, sooner if even >= 1 else None, ceil(min(even, 1e15)), configured)


def _close(best: Result, other: Result) -> bool:
    """Return whether the other is as fast as the best one within the spread of the rounds."""
    return other.median_s - best.median_s <= max(best.spread_s, other.spread_s)


def _break_even(best: Result, other: Result) -> float:
    """Return the iterations after which both have taken equally long, 0 if the best one also begins first."""
    ahead = begins(best) - begins(other)
    if ahead <= 0:
        return 0.0
    slower = other.median_s - best.median_s
    return ahead / slower if slower > 0 else inf
