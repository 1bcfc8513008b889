"""The number of threads of a burst, given the durations of earlier ones."""

from __future__ import annotations

from sigma_backend_numba.execute.thread_count import SEEN, WHILE, ThreadCount


def walk(pace: ThreadCount, several: float, alone: float, bursts: int) -> list[int]:
    """Run bursts with these durations on several threads and on one; return the threads of each."""
    found = []
    for _ in range(bursts):
        found.append(pace.threads(2))
        pace.note(found[-1], several if found[-1] > 1 else alone)
    return found


def test_the_thread_count_is_not_changed_without_contention():
    assert walk(ThreadCount(), 1.0, 2.0, 100) == [2] * 100


def test_one_slow_burst_does_not_change_the_thread_count():
    pace = ThreadCount()
    walk(pace, 1.0, 2.0, 10)
    pace.note(2, 50.0)
    assert walk(pace, 1.0, 2.0, 20) == [2] * 20


def test_a_second_thread_that_slows_bursts_down_is_left_out_for_a_while():
    pace = ThreadCount()
    walk(pace, 1.0, 2.0, 10)
    found = walk(pace, 4.0, 2.0, SEEN + 1 + WHILE + SEEN + 1)
    assert found == [2] * SEEN + [1] * (1 + WHILE) + [2] * SEEN + [1]


def test_a_second_thread_returns_when_the_contention_ends():
    pace = ThreadCount()
    walk(pace, 1.0, 2.0, 10)
    walk(pace, 4.0, 2.0, SEEN + 1 + WHILE)
    assert walk(pace, 1.0, 2.0, 50) == [2] * 50


def test_a_second_thread_is_kept_if_one_alone_is_not_faster():
    pace = ThreadCount()
    walk(pace, 1.0, 2.0, 10)
    found = walk(pace, 3.0, 5.0, 4 * WHILE)
    assert found.count(1) == 4


def test_bursts_without_helpers_do_not_count_for_the_thread_count():
    pace = ThreadCount()
    for _ in range(10):
        pace.note(1, 3.0)
    assert walk(pace, 1.0, 2.0, 5) == [2] * 5
