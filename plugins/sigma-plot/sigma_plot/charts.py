"""Draw charts of curves: as SVG without a library, light and dark, with all text escaped; or with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from attrs import define, evolve, frozen

from sigma_kernel import Chart
from sigma_kernel.curves import AXES, BranchedCurves, Curve, Stretch
from sigma_kernel.errors import SigmaPluginError
from sigma_kernel.settings import brief
from sigma_plot.times import TIME, date_of, time_ticks

WIDE, HIGH = 500, 150  # of the axes of a panel, in pixels
LEFT, TOP, BOTTOM = 64, 34, 34  # margins of the axes
CHARTS = 12  # of a drawing that was not requested
LETTER = 7  # the width of a letter of a label, roughly
POINTS = 2 * WIDE  # of a line; more cannot be seen
INK = ("#2f54c8", "#bd4b00", "#007558", "#9b3199", "#42400b", "#133c5d")  # readable on white by everyone
NIGHT = ("#93adff", "#f2985a", "#4fc6a3", "#f0d4ed", "#f5ca3a", "#75899d")  # and these on black


@frozen(eq=False)
class Line:
    """A line of a panel: label, points, and a band from ``low`` to ``high``; arrays of equal length, NaN is a gap.

    A line of a branch that was ``left`` is drawn apart, without a band; its label is that of the line that counts.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    left: bool = False

    __repr__ = brief


# -- lines -------------------------------------------------------------------------------------------------------------
def panels(
    curves: Mapping[str, Mapping[str, Curve]],
    over: str,
    left: Mapping[str, Mapping[str, Sequence[Stretch]]] | None = None,
) -> dict[str, list[Line]]:
    """Return the lines of charts by measure, from curves by run and name, over one of ``AXES``.

    Curves with the same last name share a chart; if there are several runs, lines are labelled with theirs.  The
    ``left`` parts of a curve are separate lines before it, with the same label.
    """
    charts: dict[str, list[Line]] = {}
    for run, values in curves.items():
        for name, curve in values.items():
            head, _, measure = name.rpartition(".")
            label = " ".join(filter(None, [head, run if len(curves) > 1 else ""]))
            others = [stretch.curve for stretch in (left or {}).get(run, {}).get(name, ())]
            lines = [*(_line(label, other, over, True) for other in others), _line(label, curve, over)]
            charts.setdefault(measure, []).extend(lines)
    return charts


def _line(label: str, curve: Curve, over: str, left: bool = False) -> Line:
    shown = by_epoch(curve) if over == "epoch" else curve
    return Line(label, getattr(shown, AXES[over]), shown.values, shown.low, shown.high, left)


def by_epoch(curve: Curve) -> Curve:
    """Return the points at which another epoch is over, with the least and the greatest value since the one before.

    Points after the last of them are left out, unless there is none.
    """
    ends = np.flatnonzero(np.diff(curve.epochs, prepend=0) > 0)
    if not ends.size:
        return curve
    starts = np.concatenate([[0], ends[:-1] + 1])
    low, high = (f.reduceat(v[: ends[-1] + 1], starts) for f, v in ((np.fmin, curve.low), (np.fmax, curve.high)))
    return Curve(curve.iterations[ends], curve.epochs[ends], curve.seconds[ends], curve.values[ends], low, high)


def is_of_machine(name: str) -> bool:
    """Return whether a curve, named with its trainer or without, is of the machine that a run has trained on."""
    return "system" in name.split(".")[:2]


def without_machine(measured: BranchedCurves) -> BranchedCurves:
    """Return what a run measured, but of its machine."""
    return evolve(measured, lines={name: own for name, own in measured.lines.items() if not is_of_machine(name)})


def lines_of_branches(runs: Mapping[str, BranchedCurves], over: str) -> dict[str, list[Line]]:
    """Return the lines of charts by measure, from what runs measured on all branches."""
    left = {run: measured.abandoned_stretches() for run, measured in runs.items()}
    return panels({run: measured.curves() for run, measured in runs.items()}, over, left)


# -- drawing -----------------------------------------------------------------------------------------------------------
@define(eq=False)
class Svg(Chart):
    """Draw charts as an SVG document, the first twelve, which follows the light or dark setting of its reader.

    What was measured of the machine is left out.
    """

    def draw(self, title: str, runs: Mapping[str, BranchedCurves], over: str = "iteration") -> str:
        """Return the text of the document."""
        lines = lines_of_branches({run: without_machine(measured) for run, measured in runs.items()}, over)
        return svg(title, dict(islice(lines.items(), CHARTS)), over)


@define(eq=False)
class Figure(Chart):
    """Draw charts as a figure of matplotlib."""

    def draw(self, title: str, runs: Mapping[str, BranchedCurves], over: str = "iteration") -> Any:
        """Return the figure; raises SigmaPluginError if matplotlib is not installed."""
        return figure(title, lines_of_branches(runs, over), over)


def svg(title: str, panels: Mapping[str, Sequence[Line]], x: str = "iteration") -> str:
    """Return an SVG document with the panels, by their titles, one below the other; ``x`` labels the horizontal axis.

    The same panels give the same bytes.  Lines with more than ``POINTS`` points keep the least and the greatest of
    each stretch.
    """
    colours, every = series(panels), [line for lines in panels.values() for line in lines]
    across, step = scale([line.x for line in every]), TOP + HIGH + BOTTOM
    width = LEFT + WIDE + 24 + LETTER * max([10, *(len(line.label) + 9 for line in every)])
    height = 40 + step * max(1, len(panels))
    drawn = [
        f'<g transform="translate({LEFT},{40 + TOP + step * i})">{_panel(name, lines, x, across, colours)}</g>'
        for i, (name, lines) in enumerate(panels.items())
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="system-ui, sans-serif" font-size="12" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_style()}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            f'<text x="16" y="26" font-size="16" font-weight="600">{escape(title)}</text>',
            *(drawn or ['<text x="16" y="80">Nothing was measured.</text>']),
            "</svg>\n",
        ]
    )


def figure(title: str, panels: Mapping[str, Sequence[Line]], x: str = "iteration") -> Any:
    """Return the same as a matplotlib figure; raises SigmaPluginError if matplotlib is not installed."""
    try:
        library = import_module("matplotlib.figure")
    except ImportError as error:
        raise SigmaPluginError(f"plot: needs matplotlib ({error}). Install it: pip install matplotlib.") from error
    chart = library.Figure(figsize=(8, 0.6 + 2.6 * max(1, len(panels))), layout="constrained", dpi=150)
    chart.suptitle(title)
    colours = series(panels)
    for i, (name, lines) in enumerate(panels.items()):
        _axes(chart.add_subplot(len(panels), 1, i + 1), name, lines, x, colours)
    return chart


def _axes(axes: Any, name: str, lines: Sequence[Line], x: str, colours: Mapping[str, int]) -> None:
    for line in lines:
        colour, along = INK[colours[line.label]], to_dates(line.x) if x == TIME else line.x
        if line.left:
            axes.plot(along, line.y, color=colour, alpha=0.5, linewidth=1, linestyle=":")
            continue
        axes.plot(along, line.y, color=colour, label=line.label)
        axes.fill_between(along, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    axes.set_title(name, loc="left", fontsize=10)
    axes.set_xlabel(name_axis(x, lines))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def name_axis(x: str, lines: Sequence[Line]) -> str:
    """Return what is written at the horizontal axis: at times of day the day on which they begin."""
    if x != TIME:
        return x
    low, _ = scale([line.x for line in lines])
    return f"{date_of(low):%Y-%m-%d} UTC"


def to_dates(times: np.ndarray) -> np.ndarray:
    """Return seconds since 1970 as dates of NumPy; NaN is NaT."""
    return np.where(np.isnan(times), np.datetime64("NaT"), (np.nan_to_num(times) * 1e6).astype("datetime64[us]"))


def series(panels: Mapping[str, Sequence[Line]]) -> dict[str, int]:
    """Return the index into ``INK`` of each label, the same in all panels; training and validation come first."""
    names = dict.fromkeys(line.label for lines in panels.values() for line in lines)
    always = ["training", "validation"]
    labels = dict.fromkeys([*always, *names]) if names.keys() & set(always) else names
    return {label: i % len(INK) for i, label in enumerate(labels)}


def _style() -> str:
    def rules(ground: str, ink: str, grid: str, lines: Iterable[str]) -> str:
        classes = "".join(f".s{i}{{color:{colour}}}" for i, colour in enumerate(lines))
        return f".ground{{fill:{ground}}}text{{fill:{ink}}}.grid{{stroke:{grid}}}{classes}"

    day, night = rules("#fff", "#1a1c20", "#e2e2dc", INK), rules("#17191d", "#e9eaec", "#2a2e34", NIGHT)
    shapes = (
        ".line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
        ".left{stroke-width:1;stroke-dasharray:2 3;opacity:.7}"
        ".band{fill:currentColor;opacity:.18}.key{fill:currentColor}"
    )
    return f"{day}{shapes}@media(prefers-color-scheme:dark){{{night}}}"


def _panel(name: str, lines: Sequence[Line], x: str, across: tuple[float, float], colours: Mapping[str, int]) -> str:
    """Return a panel, whose axes begin at the origin."""
    up = scale([array for line in lines for array in (line.y, line.low, line.high)])

    def place(values: np.ndarray) -> np.ndarray:
        return HIGH - (values - up[0]) / (up[1] - up[0]) * HIGH

    parts = [f'<text x="{8 - LEFT}" y="-14">{escape(name)}</text>', _grid(across, up, x, name_axis(x, lines))]
    keys = 0
    for line in lines:
        shown, style = thin_line(line, POINTS), f"s{colours[line.label]}"
        along = (shown.x - across[0]) / (across[1] - across[0]) * WIDE
        if line.left:
            parts.append(f'<path class="line left {style}" d="{_path(along, place(shown.y))}"/>')
            continue
        last = "".join(f" {value:.4g}" for value in line.y[np.isfinite(line.y)][-1:])
        parts.append(f'<path class="band {style}" d="{_band(along, place(shown.low), place(shown.high))}"/>')
        parts.append(f'<path class="line {style}" d="{_path(along, place(shown.y))}"/>')
        parts.append(
            f'<text class="key {style}" x="{WIDE + 8}" y="{10 + 16 * keys}">{escape(line.label + last)}</text>'
        )
        keys += 1
    return "".join(parts)


def _grid(across: tuple[float, float], up: tuple[float, float], x: str, name: str) -> str:
    """Return lines and labels of the axes."""
    parts = [f'<text x="{WIDE + 28}" y="{HIGH + 18}">{escape(name)}</text>']
    for tick in ticks(*up):
        y = HIGH - (tick - up[0]) / (up[1] - up[0]) * HIGH
        parts.append(f'<path class="grid" d="M0 {y:.1f}H{WIDE}"/>')
        parts.append(f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    along = time_ticks(*across) if x == TIME else [(tick, f"{tick:,g}") for tick in ticks(*across)]
    for tick, label in along:
        at = (tick - across[0]) / (across[1] - across[0]) * WIDE
        parts.append(f'<text x="{at:.1f}" y="{HIGH + 18}" text-anchor="middle">{label}</text>')
    return "".join(parts)


def scale(arrays: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the least and the greatest finite value, widened if they are equal; 0 and 1 if there is none."""
    values = np.concatenate([*arrays, np.array([])]).astype(float)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    more = 0.0 if high > low else abs(low) / 2 or 0.5
    return low - more, high + more


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most ``most`` round numbers from ``low`` to ``high``: multiples of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = 12 - math.floor(math.log10(step))
    return [round(n * step, digits) for n in range(first, last + 1)]


def thin_line(line: Line, most: int) -> Line:
    """Return a line of at most ``most`` points: of each stretch the last value, with the least and the greatest."""
    if len(line.x) <= most:
        return line
    edges = np.linspace(0, len(line.x), most + 1).astype(int)
    low, high = np.fmin.reduceat(line.low, edges[:-1]), np.fmax.reduceat(line.high, edges[:-1])
    last = edges[1:] - 1
    return Line(line.label, line.x[last], line.y[last], low, high, line.left)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    """Return the path of a line; a point that is not finite interrupts it."""
    parts, pen = list[str](), "M"
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if math.isfinite(b) and math.isfinite(a):
            parts.append(f"{pen}{a:.1f} {b:.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(parts)


def _band(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> str:
    there = np.isfinite(low) & np.isfinite(high) & np.isfinite(x)
    around = [*zip(x[there], high[there], strict=True), *zip(x[there][::-1], low[there][::-1], strict=True)]
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in around) + "Z" if around else ""
