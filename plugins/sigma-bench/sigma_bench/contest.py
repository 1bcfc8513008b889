"""Contestants, measured in interleaved rounds, so that disturbances of the machine affect all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import ceil
from statistics import median, quantiles
from time import perf_counter
from types import MappingProxyType

import numpy as np
from attrs import field, frozen

from sigma_bench.memory import peak_bytes
from sigma_kernel.errors import SigmaTrainingError

CHECKED = 20  # iterations whose losses must agree, in float64, before measuring
EXACT, NARROW = 1e-6, 1e-4  # relative tolerance: of all these losses, and of the first one in the measured precision
GROSS = 1e-2  # of the first losses of backends, which may compute with 16 bits
ROUND = 0.3  # minimum seconds of a round
WHOLE = 2.0  # seconds up to which a round consists of whole epochs


class Contestant(ABC):
    """An implementation of the training task, run some iterations at a time.

    ``unit`` iterations can only run together; ``started_s`` is the start-up time in seconds.
    """

    name: str
    unit: int = 1
    started_s: float = 0.0

    @abstractmethod
    def run(self, iterations: int) -> None:
        """Train for this many more iterations, a multiple of the unit."""

    @property
    @abstractmethod
    def losses(self) -> np.ndarray:
        """Return the losses of the first iterations, at least as many as are compared."""

    def seconds(self, iterations: int) -> float:
        """Train for this many more iterations; return the seconds taken."""
        began = perf_counter()
        self.run(iterations)
        return perf_counter() - began

    @property
    def peak_bytes(self) -> int:
        """Return the peak memory of the contestant's process, in bytes."""
        return peak_bytes()

    def close(self) -> None:  # noqa: B027  (most have nothing to close)
        """Release resources."""


@frozen
class Terms:
    """Settings for all contestants: rows of data, iterations per epoch, number of rounds."""

    rows: int
    per_epoch: int
    rounds: int
    least: float = ROUND  # minimum seconds of a round


@frozen
class Result:
    """Results of one contestant; ``seconds`` holds the time per iteration of each round."""

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
        """Return the interquartile range of the rounds."""
        if len(self.seconds) == 1:
            return 0.0
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return high - low

    @property
    def samples_per_s(self) -> float:
        """Return the rows of data trained on per second."""
        return self.rows / self.median_s

    @property
    def compile_s(self) -> float:
        """Return the extra time of the first iterations over the fastest: tracing, differentiation, compilation."""
        return max(0.0, self.first - min(self.seconds) * self.unit)


def round_to_unit(contestant: Contestant, iterations: int) -> int:
    """Return the smallest multiple of the contestant's unit with at least this many iterations."""
    return ceil(iterations / contestant.unit) * contestant.unit


# -- the same work -----------------------------------------------------------------------------------------------------
def first_losses(begin: Callable[[], Contestant]) -> tuple[str, np.ndarray]:
    """Return a contestant's name and the losses to compare; the contestant is started and closed for this."""
    contestant = begin()
    try:
        contestant.run(round_to_unit(contestant, CHECKED))
        return contestant.name, contestant.losses[:CHECKED]
    finally:
        contestant.close()


def agree(backends: Sequence[Callable[[], Contestant]], peers: Sequence[Callable[[], Contestant]]) -> None:
    """Raise SigmaTrainingError unless the first losses of all agree; they are started one after another.

    They must compute in float64: in float32, rounding alone makes many runs diverge within a few iterations.
    """
    ours = [first_losses(begin) for begin in backends]
    for begin in peers:
        theirs = first_losses(begin)
        for backend in ours:
            compare(backend, theirs, EXACT)


def compare(backend: tuple[str, np.ndarray], peer: tuple[str, np.ndarray], tolerance: float) -> None:
    """Raise SigmaTrainingError with the first iteration whose losses differ."""
    (ours, expected), (theirs, losses) = backend, peer
    apart = ~np.isclose(losses, expected, rtol=tolerance, atol=tolerance)
    if apart.any():
        i = int(apart.argmax())
        raise SigmaTrainingError(
            f"peer {theirs!r}: its loss at iteration {i + 1} is {losses[i]:.9g}, that of {ours!r} is "
            f"{expected[i]:.9g}. They do not compute the same, so no time is reported: one of them is wrong."
        )


def check_first_losses(first: str, other: str, expected: float, found: float) -> None:
    """Raise SigmaTrainingError if the first losses of two backends differ by more than any rounding."""
    if not np.isclose(found, expected, rtol=GROSS, atol=GROSS, equal_nan=True):
        raise SigmaTrainingError(
            f"backend {other!r}: its first loss is {found:.9g}, that of {first!r} is {expected:.9g}. They do not "
            "compute the same, so no time is reported. Run `sigma diff` to see which op differs."
        )


# -- time --------------------------------------------------------------------------------------------------------------
def measure(
    backends: Sequence[Contestant], peers: Sequence[Contestant], terms: Terms, compared: Sequence[Contestant] = (),
    begun: Mapping[str, float] = MappingProxyType({}),
) -> list[Result]:  # fmt: skip
    """Return one result per contestant; SigmaTrainingError if a first loss of ``compared`` differs.

    ``begun`` are the seconds of those, by name, that have run their first iterations already.
    """
    every = [*backends, *peers]
    first = [
        begun[contestant.name] if contestant.name in begun else contestant.seconds(contestant.unit)
        for contestant in every
    ]
    for ours, theirs in product(backends, compared):
        compare((ours.name, ours.losses[:1]), (theirs.name, theirs.losses[:1]), NARROW)
    lengths = [length(contestant, terms.per_epoch, terms.least) for contestant in every]
    times = alternate(every, lengths, terms.rounds)
    rows = terms.rows / terms.per_epoch
    return [
        Result(contestant.name, took, began, contestant.peak_bytes, rows, contestant.unit, contestant.started_s)
        for contestant, took, began in zip(every, times, first, strict=True)
    ]


def length(contestant: Contestant, per_epoch: int, least: float) -> int:
    """Return the iterations of a round: whole epochs if they are short, so that hooks once an epoch are fully counted.

    Warms the contestant up until a round lasts long enough, and then to the end of an epoch: the last batch may be
    smaller and need its own program.
    """
    n = contestant.unit
    while (took := contestant.seconds(n)) < least:
        n = round_to_unit(contestant, max(2 * n, ceil(n * least / max(took, least / 1000))))
    epochs = round_to_unit(contestant, ceil(n / per_epoch) * per_epoch)
    if epochs * took / n > WHOLE:
        return n
    contestant.run(epochs)
    return epochs


def alternate(contestants: Sequence[Contestant], lengths: Sequence[int], rounds: int) -> list[list[float]]:
    """Return the seconds per iteration of every contestant in every round; each round measures all of them."""
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds):
        for contestant, n, seconds in zip(contestants, lengths, times, strict=True):
            seconds.append(contestant.seconds(n) / n)
    return times
