"""Interleaved rounds, their length, and the evaluation of the times."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import define, field

from sigma_bench.contest import CHECKED, Contestant, Result, Terms, agree, alternate, length, measure
from sigma_bench.entry import distinguish_peers
from sigma_kernel.errors import SigmaTrainingError


@define(eq=False)
class Clock:
    """A clock that only advances while a contestant works."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@define(eq=False)
class Fake(Contestant):
    """A contestant that takes ``pace`` seconds per iteration, and ``start`` more for the first."""

    name: str
    clock: Clock
    pace: float = 0.01
    start: float = 0.0
    calls: list[tuple[str, int]] = field(factory=list)
    slope: float = 0.5
    done: int = 0
    unit: int = 1
    closed: bool = False

    def run(self, iterations: int) -> None:
        self.clock.now += iterations * self.pace + (0 if self.done else self.start)
        self.calls.append((self.name, iterations))
        self.done += iterations

    def close(self) -> None:
        self.closed = True

    @property
    def losses(self) -> np.ndarray:
        return self.slope ** np.arange(self.done)

    def seconds(self, iterations: int) -> float:
        began = self.clock.now
        self.run(iterations)
        return self.clock.now - began

    @property
    def peak_bytes(self) -> int:
        return 7


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_every_round_measures_all_contestants(clock: Clock) -> None:
    calls: list[tuple[str, int]] = []
    fakes = [Fake(name, clock, pace=pace, calls=calls) for name, pace in (("a", 0.1), ("b", 0.2))]
    times = alternate(fakes, [3, 2], rounds=3)
    assert calls == [("a", 3), ("b", 2)] * 3
    assert times == [pytest.approx([0.1] * 3), pytest.approx([0.2] * 3)]


def test_a_round_is_at_least_the_minimum_time_and_not_much_longer(clock: Clock) -> None:
    assert 30 <= length(Fake("a", clock, pace=0.01), per_epoch=1, least=0.3) <= 60


def test_a_round_consists_of_whole_epochs_if_they_are_short(clock: Clock) -> None:
    n = length(Fake("a", clock, pace=0.01), per_epoch=17, least=0.3)
    assert n % 17 == 0
    assert n * 0.01 >= 0.3


def test_a_round_does_not_wait_for_a_long_epoch(clock: Clock) -> None:
    assert length(Fake("a", clock, pace=0.01), per_epoch=600, least=0.3) < 100


def test_a_stopped_clock_does_not_make_a_round_endless(clock: Clock) -> None:
    class Late(Fake):
        def run(self, iterations: int) -> None:
            self.clock.now += 1.0 if iterations > 10_000 else 0.0

    assert length(Late("a", clock), per_epoch=1, least=0.3) > 10_000


def test_the_median_and_interquartile_range_of_the_rounds_are_reported() -> None:
    result = Result("a", [1.0, 9.0, 2.0, 3.0, 4.0], first=5.0, peak_bytes=0, rows=30.0)
    assert (result.median_s, result.spread_s) == (3.0, 2.0)
    assert result.samples_per_s == 10.0
    assert result.compile_s == 4.0


def test_the_spread_of_one_round_is_zero() -> None:
    assert Result("a", [1.0], first=0.5, peak_bytes=0, rows=1.0).spread_s == 0.0
    assert Result("a", [1.0], first=0.5, peak_bytes=0, rows=1.0).compile_s == 0.0


def test_the_extra_time_of_the_first_iteration_counts_as_compilation(clock: Clock) -> None:
    fakes = [Fake("a", clock, pace=0.01, start=3.0), Fake("b", clock, pace=0.02)]
    ours, theirs = measure(fakes[:1], fakes[1:], Terms(rows=95, per_epoch=10, rounds=2))
    assert (ours.median_s, theirs.median_s) == (pytest.approx(0.01), pytest.approx(0.02))
    assert (ours.compile_s, theirs.compile_s) == (pytest.approx(3.0), pytest.approx(0.0))
    assert ours.samples_per_s == pytest.approx(950)
    assert ours.peak_bytes == 7


def agreed(ours: Contestant, theirs: Contestant) -> None:
    agree([lambda: ours], [lambda: theirs])


def test_contestants_with_equal_losses_agree_and_are_closed(clock: Clock) -> None:
    fakes = [Fake("a", clock), Fake("b", clock, slope=0.5 * (1 + 1e-9))]
    agreed(*fakes)
    assert [fake.done for fake in fakes] == [CHECKED, CHECKED]
    assert all(fake.closed for fake in fakes)


def test_a_contestant_of_whole_epochs_is_compared_over_enough_losses(clock: Clock) -> None:
    fake = Fake("b", clock, unit=7)
    agreed(Fake("a", clock), fake)
    assert fake.done == 21


def test_a_peer_that_computes_something_else_is_reported_with_the_first_different_iteration(clock: Clock) -> None:
    with pytest.raises(SigmaTrainingError, match="'b': its loss at iteration 2 is 0.51, that of 'a' is 0.5"):
        agreed(Fake("a", clock), Fake("b", clock, slope=0.51))


def test_a_non_finite_loss_agrees_with_nothing(clock: Clock) -> None:
    with pytest.raises(SigmaTrainingError, match="iteration 2 is nan"):
        agreed(Fake("a", clock), Fake("b", clock, slope=float("nan")))


def test_a_different_first_loss_ends_the_measurement(clock: Clock) -> None:
    class Other(Fake):
        @property
        def losses(self) -> np.ndarray:
            return np.array([1.01])

    other = Other("b", clock)
    with pytest.raises(SigmaTrainingError, match="iteration 1"):
        measure([Fake("a", clock)], [other], Terms(rows=10, per_epoch=1, rounds=1), compared=[other])


def test_contestants_outside_the_comparison_may_have_other_losses(clock: Clock) -> None:
    terms = Terms(rows=10, per_epoch=1, rounds=1)
    assert len(measure([Fake("a", clock)], [Fake("b", clock, slope=0.1)], terms)) == 2


def test_times_of_contestants_with_units_are_reported_per_iteration(clock: Clock) -> None:
    fake = Fake("a", clock, pace=0.01, start=3.0, unit=40)
    [found] = measure([fake], [], Terms(rows=95, per_epoch=10, rounds=2))
    assert all(n % 40 == 0 for _, n in fake.calls)
    assert found.median_s == pytest.approx(0.01)
    assert found.compile_s == pytest.approx(3.0)


def test_warm_up_runs_to_the_end_of_an_epoch_if_rounds_are_whole_epochs(clock: Clock) -> None:
    fake = Fake("a", clock, pace=0.01)
    n = length(fake, per_epoch=17, least=0.3)
    assert fake.calls[-1] == ("a", n)


def test_a_peer_is_told_from_the_backend_of_the_same_framework():
    ours, theirs = (
        [Result(name, [1.0, 3.0], first=1.0, peak_bytes=0, rows=1.0) for name in names]
        for names in (["one", "two"], ["two", "three"])
    )
    assert [one.name for one in distinguish_peers(ours, theirs)] == ["two by hand", "three"]
    assert [one.median_s for one in distinguish_peers(ours, theirs)] == [2.0, 2.0]
