"""The number of threads of a burst, given the durations of earlier ones."""

from __future__ import annotations

from sigma_backend_numba.execute.thread_count import AGAIN, SEEN, WHILE, WORTH, CallThreads, ThreadCount


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


# -- single calls ------------------------------------------------------------------------------------------------------
def call_times(choice: CallThreads, alone: float, shared: float, calls: int) -> list[bool]:
    """Return which calls used several threads, given the seconds of each way."""
    ways = []
    for _ in range(calls):
        ways.append(choice.wants_several())
        choice.note(ways[-1], shared if ways[-1] else alone)
    return ways


def test_short_calls_never_wake_other_threads():
    choice = CallThreads()
    assert not any(call_times(choice, 0.9 * WORTH, 0.1 * WORTH, 100))
    assert choice.is_short


def test_long_calls_use_several_threads_once_these_are_faster():
    choice = CallThreads()
    ways = call_times(choice, 3 * WORTH, 2 * WORTH, 10 * AGAIN)
    assert ways[:SEEN] == [False] * SEEN
    assert ways[SEEN : AGAIN - 1] == [True] * (AGAIN - 1 - SEEN)
    assert ways.count(False) == SEEN + 10  # one thread is tried again
    assert not choice.is_short


def test_several_threads_that_are_slower_are_tried_now_and_then_until_they_are_faster():
    choice = CallThreads()
    assert call_times(choice, 2 * WORTH, 3 * WORTH, 10 * AGAIN).count(True) == 11
    assert all(call_times(choice, 2 * WORTH, 1.5 * WORTH, AGAIN + 1)[-1:])


def test_one_slow_first_call_does_not_decide():
    choice = CallThreads()
    call_times(choice, 100 * WORTH, 1.0, 1)  # as one that compiles, or finds nothing in the cache
    assert not any(call_times(choice, 0.5 * WORTH, 0.1 * WORTH, 50))


def test_a_call_that_was_interrupted_changes_little():
    choice = CallThreads()
    call_times(choice, 3 * WORTH, 2 * WORTH, 10)
    choice.note(True, 1.0)
    assert choice.wants_several()
