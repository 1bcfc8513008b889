"""One budget of work for all clients: shares, and whose rest comes when."""

from __future__ import annotations

import time
from itertools import pairwise

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
