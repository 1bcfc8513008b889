"""Draw curves in the terminal with plotille, as PNG with matplotlib, and write them as CSV."""

from __future__ import annotations

import csv as tables
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from importlib import import_module
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from attrs import evolve

from sigma_kernel.curves import FIELDS, Curve, Stretch
from sigma_kernel.errors import printable
from sigma_plot.charts import Line, figure, name_axis, scale, series, thin_line
from sigma_plot.times import TIME, date_of, format_time

Panels = Mapping[str, Sequence[Line]]

AXIS = 19  # columns of a chart that are no canvas: labels at its left, the arrow at its right
WIDEST = 110  # columns of a chart
ROWS = 12  # of its canvas
SIGNS = "ox+*#@"  # distinguish lines without colours
TERMINAL = (75, 208, 42, 170, 220, 110)  # the colours of lines on black and on white, of the 256 of a terminal
FAINT = 245  # of lines that were left
HEAD = ("run", "name", "iteration", "epoch", "second", "value", "low", "high", "mean", "count", "left", "time")

Curves = Mapping[str, Mapping[str, Curve]]
Left = Mapping[str, Mapping[str, Sequence[Stretch]]]  # branches that were left


def terminal(panels: Panels, over: str, width: int, coloured: bool) -> str:
    """Return the charts as text, at most ``width`` columns wide, with a legend each."""
    panels = {printable(name): [evolve(line, label=printable(line.label)) for line in panels[name]] for name in panels}
    styles = series(panels)
    charts = (_chart(lines, over, min(width, WIDEST), styles, coloured) for lines in panels.values())
    return "\n\n".join(f"{measure}: {chart}" for measure, chart in zip(panels, charts, strict=True))


def _chart(lines: Sequence[Line], over: str, width: int, styles: Mapping[str, int], coloured: bool) -> str:
    """Return the legend of a chart, and below it the chart."""
    plotille = import_module("plotille")
    figure = plotille.Figure()
    name, place = name_axis(over, lines), _to_place if over == TIME else float
    figure.width, figure.height = max(10, width - AXIS - len(name)), ROWS
    figure.x_label, figure.y_label, figure.origin = name, "", False
    figure.with_colors, figure.color_mode = coloured, "byte"
    figure.register_label_formatter(float, _label)
    figure.register_label_formatter(datetime, _label_time)
    figure.set_x_limits(*map(place, scale([line.x for line in lines])))
    figure.set_y_limits(*scale([line.y for line in lines]))
    legend = []
    for line in (line for line in lines if line.left):
        shown = finite(thin_line(line, figure.width))
        figure.scatter([*map(place, shown.x)], shown.y.tolist(), lc=FAINT, marker=None if coloured else ".")
    counted = [line for line in lines if not line.left]
    for i, line in enumerate(counted):
        sign, colour = SIGNS[styles[line.label]], TERMINAL[styles[line.label]]
        shown = finite(thin_line(line, 4 * figure.width))
        if shown.y.size:
            figure.plot([*map(place, shown.x)], shown.y.tolist(), lc=colour)
            if not coloured and len(counted) > 1:
                some = slice(i, None, max(1, shown.y.size // 8))
                figure.scatter([*map(place, shown.x[some])], shown.y[some].tolist(), marker=sign)
        last = f"{shown.y[-1]:.4g}" if shown.y.size else "never finite"
        mark = plotille.color("━━", fg=colour, mode="byte") if coloured else sign * (len(counted) > 1)
        legend.append(f"{mark} {line.label} {last}".strip())
    _, _, chart = figure.show().partition("\n")  # without the line that would name the vertical axis
    return f"{'   '.join(legend)}\n{chart}"


def finite(line: Line) -> Line:
    """Return a line without the points whose value is not finite."""
    there = np.isfinite(line.y) & np.isfinite(line.x)
    x, y, low, high = (array[there].astype(float) for array in (line.x, line.y, line.low, line.high))
    return Line(line.label, x, y, low, high, line.left)


def _label(value: float, chars: int, delta: float, left: bool = False) -> str:
    text = f"{value:.{max(1, min(4, chars - 5))}g}"
    return text.ljust(chars) if left else text.rjust(chars)


def _to_place(time: float) -> datetime:
    """Return a time as plotille takes it: a date in UTC, without a zone."""
    return date_of(time).replace(tzinfo=None)


def _label_time(value: datetime, chars: int, delta: Any, left: bool = False) -> str:
    text = f"{value:%H:%M:%S}" if delta < timedelta(days=1) else f"{value:%m-%d}"
    return text.ljust(chars) if left else text.rjust(chars)


def picture(title: str, panels: Panels, over: str) -> bytes:
    """Return the charts as PNG; raises SigmaPluginError if matplotlib is not installed."""
    file = BytesIO()
    figure(title, panels, over).savefig(file, format="png")
    return file.getvalue()


def csv(curves: Curves, left: Left, timed: tuple[Curves, Left] = ({}, {})) -> str:
    """Return the curves as CSV: a row for each point, with all digits; a value that is not finite is ``nan``.

    Points of branches that were left follow, with 1 in the column ``left``. ``timed`` are the same curves by times of
    day: those are in ISO 8601, UTC, and empty if they are not known.
    """
    file = StringIO()
    writer = tables.writer(file, lineterminator="\n")
    writer.writerow(HEAD)
    for run, values in curves.items():
        for name, curve in values.items():
            stretches = [curve, *(stretch.curve for stretch in left.get(run, {}).get(name, ()))]
            for at, branch in enumerate(stretches):
                columns = (getattr(branch, field).tolist() for field in FIELDS)
                times = _find_times(timed, run, name, at, len(branch.seconds))
                rows = zip(*columns, times, strict=True)
                writer.writerows((run, name, *row, int(at > 0), time) for *row, time in rows)
    return file.getvalue()


def _find_times(timed: tuple[Curves, Left], run: str, name: str, at: int, count: int) -> list[str]:
    """Return the times of the points of a curve, or of a branch that was left, as text."""
    curve = timed[0].get(run, {}).get(name)
    if curve is None:
        return [""] * count
    others = [stretch.curve for stretch in timed[1].get(run, {}).get(name, ())]
    return [*map(format_time, [curve, *others][at].seconds.tolist())]
