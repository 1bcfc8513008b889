"""Which trial is asked, or repeated, next: a state machine without a clock, threads, processes or files.

Trial n is asked once the trials up to n - parallel are told, and what it is asked for follows from these alone.  So the
trials of a search do not depend on the order in which they end.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

FAILED = "failed"


@frozen
class Outcome:
    """The results of a trial.

    Args:
        status: finished, pruned or failed.
        value: The value that is maximised or minimised; None if there is none.
        values: Those recorded on the way: iteration, epoch, value.
    """

    status: str
    value: float | None = None
    values: tuple[tuple[int, int, float], ...] = ()


@frozen
class Protocol:
    """The trials of a search, at one moment; methods return the next one.

    Args:
        trials: How many there will be.
        parallel: How many train at a time, at most.
        attempts: How often a trial begins that fails, or whose process is lost, until it is told as failed.
        asked: How many have begun.
        told: The outcomes of those that have ended, by number.
        tried: How often trials have failed, by number.
        again: The trials to be repeated.
    """

    trials: int
    parallel: int
    attempts: int = 3
    asked: int = 0
    told: Mapping[int, Outcome] = field(factory=dict)
    tried: Mapping[int, int] = field(factory=dict)
    again: frozenset[int] = frozenset()

    @property
    def training(self) -> frozenset[int]:
        """Return the trials that train now."""
        return frozenset(range(self.asked)) - self.told.keys() - self.again

    def next_number(self) -> int | None:
        """Return the number of the trial to begin now; None if there is none before another has ended."""
        if len(self.training) >= self.parallel:
            return None
        if self.again:
            return min(self.again)
        is_known = all(number in self.told for number in range(self.asked - self.parallel + 1))
        return self.asked if self.asked < self.trials and is_known else None

    def outcomes_for(self, number: int) -> list[Outcome]:
        """Return the outcomes that trial ``number`` may depend on: those of the trials up to number - parallel."""
        return [self.told[earlier] for earlier in range(number - self.parallel + 1)]

    def begin(self, number: int) -> Protocol:
        """Begin the trial that is next."""
        return evolve(self, asked=max(self.asked, number + 1), again=self.again - {number})

    def end(self, number: int, outcome: Outcome) -> Protocol:
        """Tell the outcome of a trial."""
        return evolve(self, told={**self.told, number: outcome})

    def lose(self, number: int) -> Protocol:
        """Repeat a trial that has failed, or whose process was lost; after enough attempts, it is told as failed."""
        tried = self.tried.get(number, 0) + 1
        later = evolve(self, tried={**self.tried, number: tried})
        if tried >= self.attempts:
            return later.end(number, Outcome(FAILED))
        return evolve(later, again=later.again | {number})
