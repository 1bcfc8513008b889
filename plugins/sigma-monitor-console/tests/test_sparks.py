"""Curves as rows of bars."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len

from sigma_kernel.contracts import Stretch
from sigma_kernel.curves import Curve
from sigma_monitor_console.layout import Look, lines
from sigma_monitor_console.reading import Reading
from sigma_monitor_console.sparks import BARS, MOST, Trend, draw_bars
from sigma_testing import FakeView


def _trend(values: Any, *more: Any) -> Trend:
    view, trend = FakeView(measured={"a": values}), Trend("a")
    for measured in (values, *more):
        view.measured["a"] = measured
        trend.read(view)
    return trend


def test_bars_reach_from_the_least_value_to_the_greatest() -> None:
    assert draw_bars(_trend(range(8)).bars(8)) == BARS
    assert draw_bars(_trend([3.0, 0.0]).bars(2)) == "█▁"
    assert draw_bars(_trend(range(8)).bars(8), ascii_only=True) == "_.,-=+*#"


def test_a_bar_is_the_mean_of_its_part_of_the_iterations() -> None:
    assert _trend([1.0, 3.0, 5.0, 7.0]).bars(2) == [2.0, 6.0]
    assert _trend([4.0, 6.0]).bars(4) == [4.0, 4.0, 6.0, 6.0]


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""), ([5.0], "▄▄▄▄"), ([2.0, 2.0, 2.0, 2.0], "▄▄▄▄"), ([math.nan] * 4, "    "),
        ([1.0, math.nan, 2.0, math.inf], "▁ █ "), ([-1.7e308, 0.0, 0.0, 1.7e308], "▁▅▅█"),
    ],
)  # fmt: skip
def test_constant_empty_huge_and_non_finite_values_are_drawn(values: list[float], bars: str) -> None:
    assert draw_bars(_trend(values).bars(4)) == bars


def test_a_long_curve_keeps_its_shape_in_few_points() -> None:
    values = np.linspace(0.0, 1.0, 20_000)
    trend = _trend(*(values[:end] for end in range(100, 20_001, 100)))
    assert len(trend.values) <= MOST
    assert trend.bars(8) == pytest.approx(np.arange(8) / 8 + 1 / 16, abs=0.06)


def test_what_a_rewind_has_left_is_not_drawn() -> None:
    class Rewound(FakeView):
        def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
            def stretch(branch: int, at: list[int], value: float) -> Stretch:
                where, values = np.array(at), np.full(len(at), value)
                return Stretch(branch, Curve(where, where, where, values, values, values))

            return 2, [stretch(0, [1, 2, 3, 4], 1.0), stretch(1, [3, 4], 9.0)]

    trend = Trend("a")
    trend.read(Rewound())
    assert trend.bars(4) == [1.0, 1.0, 9.0, 9.0]


def _look(names: list[str], value: float = 0.1234, trainer: str = "trainer") -> Look:
    curves = {name: _trend([3.0, 2.0, 1.0]) for name in names}
    return Look(Reading(trainer, 35, 7, 100, 20, dict.fromkeys(names, value), curves), ("1,234 it/s", "12:20 min left"))


def _texts(looks: list[Look], width: int) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines(looks, width)]


def test_each_value_has_its_curve_beside_it() -> None:
    names = ["loss", "validation.accuracy"]
    for width, bars in ((120, 40), (80, 40), (40, 18)):
        head, *values = _texts([_look(names)], width)
        assert head.startswith("epoch 7/20  ━━")
        shown = [line for line in values if "0.1234" in line]
        assert [line[:9].strip() for line in shown] == ["loss", "val acc"]
        assert all(line.count("█") + line.count("▁") >= bars // 2 for line in shown)
        assert all(line.endswith("  0.1234") for line in shown)


def test_very_many_values_are_put_together_without_curves() -> None:
    assert len(_texts([_look([f"metric{i}" for i in range(9)])], 80)) == 2


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(1, 130),
    names=st.lists(st.text(min_size=1, max_size=40).filter(str.isprintable), min_size=1, max_size=5, unique=True),
    value=st.floats(),
)
def test_no_line_with_curves_is_wider_than_the_terminal(width: int, names: list[str], value: float) -> None:
    for looks in ([_look(names, value)], [_look(names[:2], value, "a"), _look(names[:2], value, "b" * 50)]):
        assert all(cell_len(line) <= width for line in _texts(looks, width))
