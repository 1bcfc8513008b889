"""The number of iterations of a burst."""

from __future__ import annotations

from sigma_training.session.pace import Pace


def test_bursts_at_most_double_until_they_fill_the_time_limit() -> None:
    pace, lengths = Pace(0.05), []
    for _ in range(12):
        lengths.append(pace.limit_burst(10**9))
        pace.learn(lengths[-1], lengths[-1] * 0.001)  # one millisecond per iteration
    assert lengths == [1, 2, 4, 8, 16, 32, 50, 50, 50, 50, 50, 50]


def test_a_slow_burst_shortens_the_following_bursts() -> None:
    pace = Pace(0.05, most=50)
    pace.learn(50, 5.0)
    assert pace.limit_burst(1000) == 1


def test_the_earliest_due_point_ends_a_burst() -> None:
    assert Pace(0.05, most=50).limit_burst(7) == 7


def test_a_stopped_clock_does_not_break_the_pace() -> None:
    pace = Pace(0.05, most=4)
    pace.learn(4, 0.0)
    assert pace.most == 8
