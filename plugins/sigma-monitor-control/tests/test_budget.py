"""One budget of work for all clients: shares, and whose rest comes when."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from weakref import ref

import pytest

from sigma_monitor_control.aside import Aside
from sigma_monitor_control.budget import WorkBudget


def worked(clients: int, work: float, until: float) -> list[float]:
    """Return the seconds that each of some clients has worked, all of them asking without a pause."""
    now = [0.0]
    budget, due, done = WorkBudget(clock=lambda: now[0]), [0.0] * clients, [0.0] * clients
    while min(due) < until:
        client = due.index(min(due))
        now[0] = max(now[0], due[client]) + work
        done[client] += work
        due[client] = now[0] + budget.spend(work)
    return done


@pytest.mark.parametrize("clients", [1, 5, 20, 100])
def test_many_clients_work_no_more_together_than_one(clients: int) -> None:
    done = worked(clients, 0.001, 50.0)
    assert sum(done) / 50.0 <= 0.25 * 1.1
    assert max(done) - min(done) < 0.003  # in turn: nobody starves


def test_what_was_booked_is_over_after_a_while() -> None:
    now = [0.0]
    budget = WorkBudget(clock=lambda: now[0])
    assert budget.spend(1.0) == 4.0
    assert budget.spend(0.5) == 6.0
    assert budget.spend(100.0) == 10.0  # the most
    now[0] = 20.0
    assert budget.spend(0.25) == 1.0


def test_what_a_thread_does_between_two_turns_is_work_too() -> None:
    budget = WorkBudget(rest=1.0, clock=lambda: 0.0)
    began = time.thread_time()
    first = budget.spend_thread(began)
    sum(range(300_000))  # outside of a turn
    end = time.thread_time()
    assert budget.spend_thread(end) >= end - began
    assert first < end - began


def test_what_is_computed_aside_is_work_of_the_clients_too() -> None:
    def compute() -> float:
        began = time.thread_time()
        while time.thread_time() - began < 0.03:
            pass
        return time.monotonic()

    aside = Aside(WorkBudget())
    ends = [future.result() for future in [aside.do(compute) for _ in range(3)]]
    aside.end()
    assert min(end - begin for begin, end in pairwise(ends)) >= 0.03 * 5


def test_what_was_cancelled_is_not_computed_and_nothing_is_held_afterwards() -> None:
    class Held:
        """What a call holds."""

    begun, go_on, aside, held = threading.Event(), threading.Event(), Aside(WorkBudget(rest=0.0)), Held()
    running, calls = aside.do(lambda: begun.set() or go_on.wait(30)), list[int]()  # type: ignore[func-returns-value]
    assert begun.wait(30)
    queued, last = aside.do(lambda: calls.append(1)), aside.do(lambda held=held: calls.append(2))  # type: ignore[misc]
    assert (queued.cancel(), running.cancel()) == (True, False)
    go_on.set()
    last.result(30)
    assert calls == [2]
    left = ref(held)
    del held
    deadline = time.monotonic() + 10
    while left() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left() is None
    aside.end()
