"""The suites of operators and monitors fail for planted faults."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sigma_kernel import Monitor, Operator, View, Work
from sigma_testing import MonitorSuite, OperatorSuite, Sweep

from .faults import check_fails


# -- operators ---------------------------------------------------------------------------------------------------------
class PastTheDuePoint(Operator):
    def train(self, work: Work) -> None:
        while work.boundary():
            work.advance(work.distance() + 2)
            work.settle()


class TwoEpochs(Operator):
    def train(self, work: Work) -> None:
        while work.boundary() and work.moment.epoch < 2:
            work.advance(work.distance())
            work.settle()


class OneTooMany(Operator):
    def train(self, work: Work) -> None:
        Sweep().train(work)
        work.advance(1)


class NeverSettles(Operator):
    def train(self, work: Work) -> None:
        while work.boundary():
            work.advance(work.distance())


class SettlesTwice(Operator):
    def train(self, work: Work) -> None:
        while work.boundary():
            work.advance(work.distance())
            work.settle()
            work.settle()


class Lingers(Operator):
    def train(self, work: Work) -> None:
        Sweep().train(work)
        time.sleep(1.1)


OPERATORS: dict[type[Operator], str] = {
    PastTheDuePoint: "test_hooks_fire_exactly_when_they_are_due",
    TwoEpochs: "test_training_stops_at_the_goal",
    OneTooMany: "test_training_stops_at_the_goal",
    NeverSettles: "test_it_can_be_made_and_used",
    SettlesTwice: "test_it_settles_once_after_each_burst_and_returns_at_the_end",
    Lingers: "test_it_settles_once_after_each_burst_and_returns_at_the_end",
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_fault_in_an_operator_is_caught(operator: type[Operator]) -> None:
    class Suite(OperatorSuite):
        def make(self) -> Operator:
            return operator()

    check_fails(Suite(), OPERATORS[operator])


# -- monitors ----------------------------------------------------------------------------------------------------------
class Raises(Monitor):
    def watch(self, view: View) -> None:
        raise OSError("the screen is gone")


MONITORS: dict[Callable[[], Monitor], str] = {
    Raises: "test_the_monitor_watches_a_run_and_ends_with_it",
}


@pytest.mark.parametrize("monitor", MONITORS)
def test_a_fault_in_a_monitor_is_caught(monitor: Callable[[], Monitor]) -> None:
    class Suite(MonitorSuite):
        def make(self) -> Monitor:
            return monitor()

    check_fails(Suite(), MONITORS[monitor])
