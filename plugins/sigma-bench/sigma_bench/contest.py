"""Contestants, and rounds in which they take turns: what slows the machine down for a while slows all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from math import ceil
from statistics import median, quantiles
from time import perf_counter

import numpy as np
from attrs import field, frozen

from sigma_bench.memory import peak_bytes
from sigma_kernel.errors import SigmaTrainingError

CHECKED = 20  # iterations whose losses must agree, in float64, before anything is measured
EXACT, NARROW = 1e-6, 1e-4  # relative: of all of these, and of the first loss in the precision that is measured
ROUND = 0.3  # seconds that a round takes at least
WHOLE = 2.0  # seconds up to which a round is made of whole epochs


class Contestant(ABC):
    """Something that does the same training as the others, some iterations at a time.

    ``unit`` iterations can only be run together; ``started_s`` are the seconds that it took to be ready for the first.
    """

    name: str
    unit: int = 1
    started_s: float = 0.0

    @abstractmethod
    def run(self, iterations: int) -> None:
        """Train for so many more iterations, a multiple of the unit."""

    @property
    @abstractmethod
    def losses(self) -> np.ndarray:
        """Return the losses of the first iterations, of as many as are compared at least."""

    def seconds(self, iterations: int) -> float:
        """Train for so many more iterations, and return how long that takes."""
        began = perf_counter()
        self.run(iterations)
        return perf_counter() - began

    @property
    def peak_bytes(self) -> int:
        """Return the most memory that the contestant's process has held."""
        return peak_bytes()

    def close(self) -> None:  # noqa: B027  (most have nothing to end)
        """End what was begun."""


@frozen
class Terms:
    """What holds for all contestants: the data's rows, the iterations that go through them once, how many rounds."""

    rows: int
    per_epoch: int
    rounds: int
    least: float = ROUND  # seconds of a round


@frozen
class Result:
    """What was measured of one contestant; ``seconds`` holds the time per iteration in each round."""

    name: str
    seconds: Sequence[float]
    first: float  # seconds of the very first unit of iterations
    peak_bytes: int
    rows: float  # of an iteration
    unit: int = 1
    started_s: float = 0.0
    median_s: float = field(init=False)

    @median_s.default
    def _(self) -> float:
        return median(self.seconds)

    @property
    def spread_s(self) -> float:
        """Return how far apart the middle half of the rounds lies: the interquartile range."""
        if len(self.seconds) == 1:
            return 0.0
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return high - low

    @property
    def samples_per_s(self) -> float:
        """Return the rows of data trained on in a second."""
        return self.rows / self.median_s

    @property
    def compile_s(self) -> float:
        """Return what the first iterations took more than the fastest ones: tracing, differentiation, compilation."""
        return max(0.0, self.first - min(self.seconds) * self.unit)


def whole(contestant: Contestant, iterations: int) -> int:
    """Return the least multiple of the contestant's unit that holds so many iterations."""
    return ceil(iterations / contestant.unit) * contestant.unit


# -- the same work -----------------------------------------------------------------------------------------------------
def first_losses(begin: Callable[[], Contestant]) -> tuple[str, np.ndarray]:
    """Return a contestant's name and the losses that are compared; it is begun for that, and ended."""
    contestant = begin()
    try:
        contestant.run(whole(contestant, CHECKED))
        return contestant.name, contestant.losses[:CHECKED]
    finally:
        contestant.close()


def agree(backends: Sequence[Callable[[], Contestant]], peers: Sequence[Callable[[], Contestant]]) -> None:
    """Raise SigmaTrainingError unless the first losses of all are the same; each is begun when its turn comes.

    They must compute in float64: in float32, rounding alone drives many runs apart within a few iterations.
    """
    ours = [first_losses(begin) for begin in backends]
    for begin in peers:
        theirs = first_losses(begin)
        for backend in ours:
            compare(backend, theirs, EXACT)


def compare(backend: tuple[str, np.ndarray], peer: tuple[str, np.ndarray], tolerance: float) -> None:
    """Raise SigmaTrainingError with the first iteration whose losses differ."""
    (ours, expected), (theirs, found) = backend, peer
    apart = ~np.isclose(found, expected, rtol=tolerance, atol=tolerance)
    if apart.any():
        i = int(apart.argmax())
        raise SigmaTrainingError(
            f"peer {theirs!r}: its loss at iteration {i + 1} is {found[i]:.9g}, that of {ours!r} is "
            f"{expected[i]:.9g}. They do not do the same work, so that no time is reported: one of them is wrong."
        )


# -- time --------------------------------------------------------------------------------------------------------------
def measure(
    backends: Sequence[Contestant], peers: Sequence[Contestant], terms: Terms, compared: Sequence[Contestant] = ()
) -> list[Result]:
    """Return one result for each contestant; a first loss of ``compared`` that differs is a SigmaTrainingError."""
    every = [*backends, *peers]
    first = [contestant.seconds(contestant.unit) for contestant in every]
    for ours, theirs in product(backends, compared):
        compare((ours.name, ours.losses[:1]), (theirs.name, theirs.losses[:1]), NARROW)
    lengths = [length(contestant, terms.per_epoch, terms.least) for contestant in every]
    times = alternate(every, lengths, terms.rounds)
    rows = terms.rows / terms.per_epoch
    return [
        Result(one.name, took, began, one.peak_bytes, rows, one.unit, one.started_s)
        for one, took, began in zip(every, times, first, strict=True)
    ]


def length(contestant: Contestant, per_epoch: int, least: float) -> int:
    """Return the iterations of a round: whole epochs where they are short, so that what is due in them counts fully.

    Warms the contestant up on the way, until a round lasts long enough, and once more to the end of an epoch: the last
    batch may be smaller, and need a program of its own.
    """
    n = contestant.unit
    while (took := contestant.seconds(n)) < least:
        n = whole(contestant, max(2 * n, ceil(n * least / max(took, least / 1000))))
    epochs = whole(contestant, ceil(n / per_epoch) * per_epoch)
    if epochs * took / n > WHOLE:
        return n
    contestant.run(epochs)
    return epochs


def alternate(contestants: Sequence[Contestant], lengths: Sequence[int], rounds: int) -> list[list[float]]:
    """Return the seconds per iteration of every contestant in every round, each round going through all of them."""
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds):
        for contestant, n, found in zip(contestants, lengths, times, strict=True):
            found.append(contestant.seconds(n) / n)
    return times
