"""Contestants, and rounds in which they take turns: what slows the machine down for a while slows all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import product
from math import ceil
from statistics import median, quantiles
from time import perf_counter

import numpy as np
from attrs import field, frozen

from sigma_kernel.errors import SigmaTrainingError

CHECKED = 20  # iterations whose losses must agree, in float64, before anything is measured
EXACT, NARROW = 1e-6, 1e-4  # relative: of all of these, and of the first loss in the precision that is measured
ROUND = 0.3  # seconds that a round takes at least
WHOLE = 2.0  # seconds up to which a round is made of whole epochs


class Contestant(ABC):
    """Something that does the same training as the others, some iterations at a time."""

    name: str

    @abstractmethod
    def run(self, iterations: int) -> None:
        """Train for so many more iterations."""

    @property
    @abstractmethod
    def losses(self) -> np.ndarray:
        """Return the loss of every iteration so far."""

    @property
    @abstractmethod
    def peak_bytes(self) -> int:
        """Return the bytes that an iteration works in: parameters, slots, minibatch and buffers, but not the data."""


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
    first: float  # seconds of the very first iteration
    peak_bytes: int
    rows: float  # of an iteration
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
        """Return what the first iteration took more than the fastest ones: tracing, differentiation, compilation."""
        return max(0.0, self.first - min(self.seconds))


def seconds(contestant: Contestant, iterations: int) -> float:
    """Return how long so many iterations take."""
    began = perf_counter()
    contestant.run(iterations)
    return perf_counter() - began


def agree(backends: Sequence[Contestant], peers: Sequence[Contestant]) -> None:
    """Raise SigmaTrainingError unless the first losses of all are the same.

    They must compute in float64: in float32, rounding alone drives many runs apart within a few iterations.
    """
    for contestant in (*backends, *peers):
        contestant.run(CHECKED)
    _check(backends, peers, CHECKED, EXACT)


def _check(backends: Sequence[Contestant], peers: Sequence[Contestant], count: int, tolerance: float) -> None:
    for backend, peer in product(backends, peers):
        ours, theirs = backend.losses[:count], peer.losses[:count]
        apart = ~np.isclose(theirs, ours, rtol=tolerance, atol=tolerance)
        if apart.any():
            i = int(apart.argmax())
            raise SigmaTrainingError(
                f"peer {peer.name!r}: its loss at iteration {i + 1} is {theirs[i]:.9g}, that of {backend.name!r} is "
                f"{ours[i]:.9g}. They do not do the same work, so that no time is reported: one of them is wrong."
            )


def measure(backends: Sequence[Contestant], peers: Sequence[Contestant], terms: Terms) -> list[Result]:
    """Return one result for each contestant; a first loss that differs is a SigmaTrainingError."""
    every = [*backends, *peers]
    first = [seconds(contestant, 1) for contestant in every]
    _check(backends, peers, 1, NARROW)
    lengths = [length(contestant, terms.per_epoch, terms.least) for contestant in every]
    times = alternate(every, lengths, terms.rounds)
    found, rows = zip(every, times, first, strict=True), terms.rows / terms.per_epoch
    return [Result(one.name, took, began, one.peak_bytes, rows) for one, took, began in found]


def length(contestant: Contestant, per_epoch: int, least: float) -> int:
    """Return the iterations of a round: whole epochs where they are short, so that what is due in them counts fully.

    Warms the contestant up on the way, until a round lasts long enough.
    """
    n = 1
    while (took := seconds(contestant, n)) < least:
        n = max(2 * n, ceil(n * least / max(took, least / 1000)))
    whole = ceil(n / per_epoch) * per_epoch
    return whole if whole * took / n <= WHOLE else n


def alternate(contestants: Sequence[Contestant], lengths: Sequence[int], rounds: int) -> list[list[float]]:
    """Return the seconds per iteration of every contestant in every round, each round going through all of them."""
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds):
        for contestant, n, found in zip(contestants, lengths, times, strict=True):
            found.append(seconds(contestant, n) / n)
    return times
