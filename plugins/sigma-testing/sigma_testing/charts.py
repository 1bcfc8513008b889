"""Conformance suite for charts, to inherit in a plugin's tests.

::

    class TestMine(ChartSuite):
        def make(self) -> Chart:
            return Mine()
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pytest

from sigma_kernel.contracts import Chart
from sigma_kernel.curves import AXES, Branch, BranchedCurves, Curve
from sigma_testing.suite import Suite, alike


def _curve(*values: float) -> Curve:
    count = np.arange(1, len(values) + 1)
    return Curve(count, count // 2, count / 8, *3 * [np.array(values)])


RUNS = {  # of the second, a branch was left at iteration 2, and what diverged was measured there alone
    "one": BranchedCurves([Branch(0)], {"training.loss": {0: _curve(3.0, np.nan, np.inf, 1.0)}}),
    "<b>&": BranchedCurves(
        [Branch(0), Branch(1, 0, 2)],
        {"training.loss": {0: _curve(3.0, 2.0, 9.0), 1: _curve(1.0, 1.0)}, "validation.loss": {0: _curve()}},
    ),
}


class ChartSuite(Suite):
    """Conformance tests of a chart: inherit, and override :meth:`make`."""

    @abstractmethod
    def make(self) -> Chart:
        """Return the chart under test."""

    @pytest.mark.parametrize("over", AXES)
    def test_it_draws_several_runs_over_any_axis(self, over: str) -> None:
        """Draw values that are not finite, abandoned branches, and values of only one run."""
        assert self.make().draw("two", RUNS, over) is not None, "draw() returns the drawing (got None)."

    def test_it_draws_what_measured_nothing(self) -> None:
        """Draw no runs, and runs without values."""
        for runs in ({}, {"": BranchedCurves([], {})}):
            assert self.make().draw("", runs) is not None, "draw() returns the drawing (got None)."

    def test_it_draws_the_same_text_again(self) -> None:
        """Return equal text for equal values, so that files can be compared."""
        first, second = (self.make().draw("one", {"one": RUNS["one"]}) for _ in range(2))
        assert not isinstance(first, str) or alike(first, second), "equal values were drawn differently."
