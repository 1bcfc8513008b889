"""The thread pool of bursts: all threads take part or none, whatever interrupts the caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from sigma_backend_numba.execute import thread_pool


def test_every_part_runs_once_and_the_result_of_the_first_is_returned():
    team, seen = thread_pool.ThreadPool(most=3), []
    lock = threading.Lock()

    def part(number: int, count: int) -> int:
        with lock:
            seen.append((number, count))
        return 10 + number

    assert team.run(part, 3) == 10
    assert sorted(seen) == [(0, 3), (1, 3), (2, 3)]


def test_a_burst_uses_the_free_workers():
    team = thread_pool.ThreadPool(most=3)
    taken = team.take(2)
    assert team.run(lambda number, count: count, 3) == 1  # a single helper does not help
    team.give_back(taken)
    assert team.run(lambda number, count: count, 3) == 3


INTERRUPTED = """
import os, signal, threading, time
from sigma_backend_numba.execute import thread_pool
team, ended = thread_pool.ThreadPool(most=2), []
def part(number, count):
    if number == 0:
        os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    ended.append(number)
    return 0
try:
    team.run(part, 2)
except KeyboardInterrupt:
    print("interrupted after", sorted(ended))
print(team.run(lambda number, count: count, 2))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_waits_until_all_parts_have_finished():
    assert signal.SIGINT
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == ["interrupted after [0, 1]", "2"]
