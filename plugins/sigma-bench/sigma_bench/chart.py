"""Charts of benchmark results: one bar for every contestant and recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

FORMATS = (".svg", ".png")
INK = {"svg.hashsalt": "sigma", "svg.fonttype": "none"}  # the same results give the same file, with text as text


def draw(results: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw medians and spreads to an SVG or PNG file, on a logarithmic scale."""
    matplotlib = import_module("matplotlib")
    figures = import_module("matplotlib.figure")
    names = [contestant["name"] for contestant in results[0]["contestants"]]
    with matplotlib.rc_context(INK):
        figure = figures.Figure(figsize=(max(6.0, 1.0 + 0.35 * len(names) * len(results)), 4.5), layout="constrained")
        axes = figure.add_subplot()
        for place, name in enumerate(names):
            _bars(axes, [result["contestants"][place] for result in results], name, place, len(names))
        axes.set_yscale("log")
        axes.set_ylabel("seconds per iteration")
        labels = [result["recipe"].partition(":")[0] for result in results]
        axes.set_xticks(range(len(results)), labels, **({"rotation": 30, "ha": "right"} if len(labels) > 1 else {}))
        axes.grid(axis="y", alpha=0.3)
        axes.legend(frameon=False, ncols=min(6, len(names)), loc="lower left", bbox_to_anchor=(0, 1))
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {})


def _bars(axes: Any, measured: Sequence[Mapping[str, Any]], name: str, place: int, count: int) -> None:
    width = 0.8 / count
    places = [i + (place - (count - 1) / 2) * width for i in range(len(measured))]
    spreads = [contestant["spread_s"] / 2 for contestant in measured]
    axes.bar(places, [contestant["median_s"] for contestant in measured], width, yerr=spreads, label=name, capsize=2)
