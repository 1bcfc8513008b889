"""Draw the tables of performance.md as charts.

Nothing is measured.  A test compares the files with what this draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from figures import FOLDER
from figures.drawing import document, text
from sigma_plot.charts import Line, svg

PAGE = FOLDER.parent / "performance.md"
LEFT, WIDE, BAR = 140, 400, 16  # of the axes, and the height of a bar
ENDS = np.array([1.0, 35.0])  # of the line where time grows as much as work
CONTESTANTS = ["Sigma", "torch", "jax", "jax-scan"]
Bars = Mapping[str, Mapping[str, float]]


def table(first: str) -> list[dict[str, str]]:
    """Return the rows of the table of performance.md whose head begins with these cells."""
    lines = PAGE.read_text("utf-8").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(first))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" `") for cell in line.strip("|").split("|")])
    return [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]


def times() -> str:
    """Return the time of an iteration of each peer, in units of Sigma's."""
    found = {
        f"{row['recipe']} {row['Sigma']}": {
            peer: float(row[peer]) for peer in ("torch", "jax", "jax-scan") if row[peer]
        }
        for row in table("| recipe | Sigma | torch")
    }
    title = "Time per iteration, in units of Sigma's"
    return bars(title, found, [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500], "to the right of 1, Sigma is faster")


def memory() -> str:
    """Return the peak memory of Sigma and PyTorch."""
    found = {}
    for row in table("| recipe | Sigma | torch"):
        ours, theirs = re.findall(r"\d++", row["memory, Sigma / torch"])
        found[row["recipe"]] = {"Sigma": float(ours), "torch": float(theirs)}
    return bars("Peak memory in MB", found, [0, 100, 200, 300, 400, 500], "of the whole process")


def growth() -> str:
    """Return the time of an iteration of a network that grows, over its work, both in units of the first network's."""
    rows = re.findall(r"\b(width|depth|batch) x \d \| ([\d.]++) \| ([\d.]++)", PAGE.read_text("utf-8"))
    points = {name: [(1.0, 1.0), *((float(w), float(t)) for n, w, t in rows if n == name)] for name, _, _ in rows}
    lines = [_line(name, *np.array(found).T) for name, found in points.items()]
    return svg(
        "Time per iteration of a network that grows", {"time, and work": [*lines, _line("work", *2 * [ENDS])]}, "work"
    )


def _line(label: str, x: np.ndarray, y: np.ndarray) -> Line:
    return Line(label, x, y, y, y)


def bars(title: str, values: Bars, ticks: Sequence[float], note: str) -> str:
    """Return a bar chart with a group for each name; the axis is logarithmic if its ticks do not begin with 0."""
    parts, y = [text(20, 26, title, size=16), text(20, 46, note, "quiet")], 70
    bottom = y + sum(_high(group) for group in values.values())
    for tick in ticks:
        parts.append(f'<path class="edge" opacity=".35" d="M{_along(tick, ticks):.1f} {y - 8}V{bottom - 8}"/>')
        parts.append(text(_along(tick, ticks), bottom + 8, f"{tick:g}", "quiet", "middle"))
    for name, group in values.items():
        parts.append(_named(name, y + BAR))
        each = enumerate(group.items())
        parts += [_bar(value, y + k * BAR, ticks, CONTESTANTS.index(label), label) for k, (label, value) in each]
        y += _high(group)
    said = "; ".join(
        f"{name}: {', '.join(f'{label} {value:g}' for label, value in group.items())}" for name, group in values.items()
    )
    return document(title, f"{title}, {note}. {said}.", (640, bottom + 24), parts)


def _high(group: Mapping[str, float]) -> int:
    """Return the height of a group, whose name may take two lines."""
    return BAR * max(len(group), 2) + 18


def _named(name: str, y: float) -> str:
    head, _, rest = name.partition(" ")
    return text(LEFT - 10, y - 3, head, "", "end") + text(LEFT - 10, y + 13, rest, "quiet", "end")


def _along(value: float, ticks: Sequence[float]) -> float:
    scale = (lambda x: x) if ticks[0] == 0 else math.log
    return LEFT + WIDE * (scale(value) - scale(ticks[0])) / (scale(ticks[-1]) - scale(ticks[0]))


def _bar(value: float, y: float, ticks: Sequence[float], colour: int, label: str) -> str:
    """Return a bar that begins at 0, or at 1 on a logarithmic axis, and its label."""
    start, end = sorted((_along(0 if ticks[0] == 0 else 1, ticks), _along(value, ticks)))
    wide, after = max(end - start, 1.0), max(end, _along(1, ticks) if ticks[0] else 0) + 6
    drawn = f'<rect class="s{colour}" x="{start:.1f}" y="{y + 2}" width="{wide:.1f}" height="{BAR - 4}" rx="2"/>'
    return drawn + text(after, y + 13, f"{label} {value:g}", size=12)


CHARTS = {"benchmark-times.svg": times, "benchmark-memory.svg": memory, "benchmark-growth.svg": growth}
