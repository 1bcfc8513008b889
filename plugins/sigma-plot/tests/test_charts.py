"""Tests of charts: SVG that every viewer accepts, with the numbers in the right places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
import pytest

from sigma_kernel.curves import Branch, BranchedCurves, Curve
from sigma_plot.charts import HIGH, POINTS, WIDE, Line, Svg, by_epoch, panels, scale, series, svg, thin_line, ticks

SVG = "{http://www.w3.org/2000/svg}"


def line(label: str, y: Sequence[float], low: Sequence[float] = (), high: Sequence[float] = ()) -> Line:
    return Line(label, np.arange(len(y)), *(np.array(a or y, float) for a in (y, low, high)))


def paths(document: str, style: str) -> list[str]:
    root = ElementTree.fromstring(document)
    return [str(one.get("d")) for one in root.iter(f"{SVG}path") if str(one.get("class")).startswith(style)]


def test_a_line_goes_through_its_points() -> None:
    (path,) = paths(svg("t", {"loss": [line("training", [4.0, 2.0, 0.0])]}), "line")
    assert path == f"M0.0 0.0L{WIDE / 2:.1f} {HIGH / 2:.1f}L{WIDE:.1f} {HIGH:.1f}"


def test_what_was_measured_of_the_machine_is_not_among_the_usual_charts() -> None:
    curve = Curve(*(np.arange(1, 4) for _ in range(3)), *3 * [np.ones(3)])
    names = ("training.loss", "system.memory.run", "system.threads.run")
    document = Svg().draw("t", {"": BranchedCurves([Branch(0)], {name: {0: curve} for name in names})})
    assert len(paths(document, "line")) == 1


def test_a_band_goes_around_the_least_and_the_greatest() -> None:
    (path,) = paths(svg("t", {"loss": [line("training", [1.0, 1.0], [0.0, 1.0], [2.0, 2.0])]}), "band")
    assert path == f"M0.0 0.0L{WIDE:.1f} 0.0L{WIDE:.1f} {HIGH / 2:.1f}L0.0 {HIGH:.1f}Z"


def test_a_value_that_is_not_finite_interrupts_the_line() -> None:
    (path,) = paths(svg("t", {"loss": [line("training", [1.0, 0.0, np.nan, np.inf, 1.0])]}), "line")
    assert path.count("M") == 2
    assert "nan" not in svg("t", {"loss": [line("training", [np.nan])]}).replace("training", "")


def test_panels_share_the_horizontal_axis() -> None:
    panels = {"loss": [line("training", [1.0, 2.0, 3.0])], "accuracy": [line("validation", [1.0, 0.0])]}
    _, short = paths(svg("t", panels), "line")
    assert short.endswith(f"L{WIDE / 2:.1f} {HIGH:.1f}")


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", 'a"b', "a&b", "</svg>", "]]>"])
def test_all_text_is_escaped(text: str) -> None:
    document = svg(text, {text: [line(text, [1.0])]}, text)
    root = ElementTree.fromstring(document)
    assert {one.tag for one in root.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "text", "g", "path")
    }
    shown = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert shown.count(text) == 3
    assert f"{text} 1" in shown


def test_a_chart_without_panels_says_so() -> None:
    assert "Nothing was measured." in "".join(ElementTree.fromstring(svg("t", {})).itertext())


def test_the_same_lines_give_the_same_bytes() -> None:
    panels = {"loss": [line("training", [4.0, 2.0, 0.0])]}
    assert svg("t", panels) == svg("t", panels)


def test_a_label_has_the_same_colour_in_every_panel_and_training_and_validation_have_their_own() -> None:
    panels = {"loss": [line("validation", [1.0]), line("test", [1.0])], "accuracy": [line("test", [1.0])]}
    assert series(panels) == {"training": 0, "validation": 1, "test": 2}
    assert series({"loss": [line("training one", [1.0]), line("training two", [1.0])]}) == {
        "training one": 0,
        "training two": 1,
    }


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.01, 1.16, [0.2, 0.4, 0.6, 0.8, 1.0]),
        (1, 240, [50, 100, 150, 200]),
        (-3.0, 3.0, [-3, -2, -1, 0, 1, 2, 3]),
        (1e-9, 5e-9, [1e-9, 2e-9, 3e-9, 4e-9, 5e-9]),
        (1e12, 1.00001e12, [1e12, 1.000002e12, 1.000004e12, 1.000006e12, 1.000008e12, 1.00001e12]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, np.nan, -1.0, np.inf], (-1.0, 3.0)),
        ([2.0, 2.0], (1.0, 3.0)),
        ([0.0], (-0.5, 0.5)),
        ([np.nan], (-0.5, 0.5)),
    ],
)
def test_a_scale_covers_the_finite_values_and_is_never_empty(
    values: list[float], expected: tuple[float, float]
) -> None:
    low, high = scale([np.array(values)])
    assert low < high
    assert (low, high) == expected or not np.isfinite(values).any()


def test_a_long_line_keeps_every_extreme() -> None:
    y = np.zeros(50_000)
    y[12_345], y[23_456] = 7.0, -7.0
    short = thin_line(Line("a", np.arange(y.size), y, y, y), POINTS)
    assert len(short.x) == POINTS
    assert (short.high.max(), short.low.min()) == (7.0, -7.0)
    assert short.x[-1] == y.size - 1
    assert np.all(np.diff(short.x) > 0)


def test_a_document_of_a_million_points_is_small() -> None:
    y = np.sin(np.arange(10**6))
    assert len(re.findall("L", svg("t", {"loss": [Line("a", np.arange(y.size), y, y, y)]}))) < 4 * POINTS


def test_over_epochs_a_curve_has_a_point_for_each_with_the_range_of_its_values() -> None:
    count = np.arange(1, 11)  # four iterations an epoch, and two of a third one
    values = np.array([9.0, 1, 5, 4, 8, np.nan, 2, 3, 7, 6])
    curve = Curve(count, count // 4, count / 8, values, values, values)
    (line,) = panels({"": {"training.loss": curve}}, "epoch")["loss"]
    assert line.x.tolist() == [1, 2]
    assert (line.y.tolist(), line.low.tolist(), line.high.tolist()) == ([4, 3], [1, 2], [9, 8])
    (whole,) = panels({"": {"training.loss": curve}}, "iteration")["loss"]
    assert whole.x.tolist() == count.tolist()


def test_before_the_first_epoch_is_over_all_points_are_shown() -> None:
    curve = Curve(np.arange(3), np.zeros(3, int), np.arange(3.0), *3 * [np.arange(3.0)])
    assert by_epoch(curve) is curve
    empty = Curve(*6 * [np.zeros(0)])
    assert by_epoch(empty) is empty
