"""Small charts as SVG inside a page, whose style sheet colours them; all text is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sigma_kernel.errors import printable

WIDE, HIGH = 320, 240  # of the axes, in pixels
LEFT, TOP, BELOW, RIGHT = 56, 12, 40, 16  # margins
LINES = 6  # of a chart

Points = tuple[Sequence[float | None], Sequence[float | None]]


def draw_lines(title: str, lines: Mapping[str, Points], x: str, y: str, diagonal: str = "") -> str:
    """Return curves in the unit square, with the names of its axes, and a ``diagonal`` if it is named."""
    parts = [_axes((0, 1), (0, 1), x, y)]
    if diagonal:
        parts.append(f'<path class="guide" d="M0 {HIGH}L{WIDE} 0"><title>{as_text(diagonal)}</title></path>')
    for number, (label, (xs, ys)) in enumerate([*lines.items()][:LINES]):
        points = [(a * WIDE, HIGH - b * HIGH) for a, b in zip(xs, ys, strict=True) if a is not None and b is not None]
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if points else ""
        parts.append(f'<path class="line c{number}" d="{path}"><title>{as_text(label)}</title></path>')
    return _figure(title, parts)


def draw_histogram(title: str, edges: Sequence[float], counts: Sequence[int], x: str) -> str:
    """Return the bars of counts between edges."""
    across, up = (edges[0], edges[-1]), (0, max(counts) or 1)
    parts = [_axes(across, up, x, "rows")]
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        left, right, height = _place(low, across), _place(high, across), count / up[1] * HIGH
        shape = f'x="{left:.1f}" y="{HIGH - height:.1f}" width="{max(1, right - left - 1):.1f}" height="{height:.1f}"'
        parts.append(f'<rect class="bar" {shape}><title>{low:.4g} to {high:.4g}: {count}</title></rect>')
    return _figure(title, parts)


def draw_points(title: str, points: Points, x: str, y: str) -> str:
    """Return points, with a line where their height is 0."""
    there = [(a, b) for a, b in zip(*points, strict=True) if a is not None and b is not None]
    across, up = _span([a for a, _ in there]), _span([0.0, *(b for _, b in there)])
    level = HIGH - (0 - up[0]) / (up[1] - up[0]) * HIGH
    parts = [_axes(across, up, x, y), f'<path class="guide" d="M0 {level:.1f}H{WIDE}"/>']
    parts += [
        f'<circle class="point" cx="{_place(a, across):.1f}" '
        f'cy="{HIGH - (b - up[0]) / (up[1] - up[0]) * HIGH:.1f}" r="2.5"/>'
        for a, b in there
    ]
    return _figure(title, parts)


def draw_bars(title: str, values: Mapping[str, float], deviations: Sequence[float] = ()) -> str:
    """Return horizontal bars by name, and what each deviates by; they begin at 0."""
    spread = [*deviations] or [0.0] * len(values)
    ends = [value + side for value, each in zip(values.values(), spread, strict=True) for side in (each, -each)]
    across, parts = _span([0.0, *ends]), []
    zero = _place(0.0, across)
    for number, ((name, value), each) in enumerate(zip(values.items(), spread, strict=True)):
        end, y = _place(value, across), 22 * number
        shape = f'x="{min(zero, end):.1f}" y="{y + 4}" width="{abs(end - zero):.1f}" height="13"'
        parts.append(f'<rect class="bar" {shape}><title>{as_text(name)}: {value:.4g}</title></rect>')
        if each:
            parts.append(f'<path class="error" d="M{_place(value - each, across):.1f} {y + 10}'
                         f'H{_place(value + each, across):.1f}"/>')  # fmt: skip
        parts.append(f'<text x="-8" y="{y + 15}" text-anchor="end">{as_text(_shorten(name))}</text>')
    return _figure(title, parts, left=150, high=22 * len(values), below=8)


def as_text(value: Any) -> str:
    """Return a value as escaped text: numbers with four digits, and a dash for what is undefined."""
    if value is None:
        return "-"
    return escape(printable(f"{value:.4g}" if isinstance(value, float) else str(value)))


def _shorten(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _figure(title: str, parts: Sequence[str], left: int = LEFT, high: int = HIGH, below: int = BELOW) -> str:
    size = f"0 0 {left + WIDE + RIGHT} {TOP + high + below}"
    return (
        f'<svg viewBox="{size}" role="img" aria-label="{as_text(title)}"><g transform="translate({left},{TOP})">'
        f"{''.join(parts)}</g></svg>"
    )


def _axes(across: tuple[float, float], up: tuple[float, float], x: str, y: str) -> str:
    """Return the lines and labels of axes."""
    parts = []
    for tick in list_ticks(*up):
        at = HIGH - (tick - up[0]) / (up[1] - up[0]) * HIGH
        parts.append(f'<path class="grid" d="M0 {at:.1f}H{WIDE}"/>')
        parts.append(f'<text x="-6" y="{at + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    for tick in list_ticks(*across):
        parts.append(f'<text x="{_place(tick, across):.1f}" y="{HIGH + 16}" text-anchor="middle">{tick:.4g}</text>')
    parts.append(f'<text x="{WIDE / 2}" y="{HIGH + 34}" text-anchor="middle">{as_text(x)}</text>')
    parts.append(f'<text transform="translate(-44,{HIGH / 2})rotate(-90)" text-anchor="middle">{as_text(y)}</text>')
    return "".join(parts)


def _place(value: float, across: tuple[float, float]) -> float:
    return (value - across[0]) / (across[1] - across[0]) * WIDE


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return the least and the greatest value, widened if they are equal."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    more = 0.0 if high > low else abs(low) / 2 or 0.5
    return low - more, high + more


def list_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most ``most + 1`` round numbers from ``low`` to ``high``: multiples of 1, 2 or 5 by powers of ten."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
