"""The table of performance.md that compares the recipes with PyTorch, from the scores in ``recipes.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from figures import FOLDER
from sigma_kernel import catalogue

PAGE, KEPT = FOLDER.parent / "performance.md", FOLDER / "recipes.json"
BEGIN, END = "<!-- recipes: begin -->\n", "<!-- recipes: end -->\n"
COLUMNS = {"sigma": "Sigma", "same": "PyTorch", "own": "PyTorch, own draws"}
POINTS, SHARE = 1.0, 0.03  # what means may differ by: percentage points of accuracy, a share of other measures
Scores = Mapping[str, Sequence[float]]


def read() -> dict[str, dict[str, Any]]:
    """Return for each recipe its ``measure``, and a score for each seed, by column."""
    found: dict[str, dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))
    return found


def trained() -> set[str]:
    """Return the recipes that train something; the others measure time on random data."""
    return {one.name for one in catalogue().components("recipe") if not one.name.startswith("bench-")}


def difference(measure: str, scores: Scores, column: str = "same") -> float:
    """Return Sigma's mean less that of PyTorch: in percentage points of an accuracy, else relative to PyTorch's."""
    ours, theirs = fmean(scores["sigma"]), fmean(scores[column])
    return 100 * (ours - theirs) if measure == "accuracy" else ours / theirs - 1


def error(measure: str, scores: Scores) -> float:
    """Return the standard error of the difference, from the differences of the pairs with the same seed."""
    apart = [ours - theirs for ours, theirs in zip(scores["sigma"], scores["same"], strict=True)]
    return stdev(apart) / sqrt(len(apart)) * (100 if measure == "accuracy" else 1 / fmean(scores["same"]))


def agrees(measure: str, scores: Scores) -> bool:
    """Return whether the means from the same initial values are as close as promised."""
    return abs(difference(measure, scores)) <= (POINTS if measure == "accuracy" else SHARE)


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the table as Markdown."""
    head = ["recipe", "measure", "seeds", *COLUMNS.values(), "difference"]
    rows = [
        [f"`{name}`", one["measure"], str(len(one["sigma"])), *_cells(one["measure"], one)]
        for name, one in sorted(results.items())
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def _cells(measure: str, scores: Scores) -> list[str]:
    say = _percent if measure == "accuracy" else _number
    apart, give = difference(measure, scores), error(measure, scores)
    means = [f"{say(fmean(scores[column]))} ± {say(stdev(scores[column]))}" for column in COLUMNS]
    return [*means, f"{apart:+.2f} ± {give:.2f} points" if measure == "accuracy" else f"{apart:+.1%} ± {give:.1%}"]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _number(value: float) -> str:
    return f"{value:#.3g}"


def insert(page: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page with this table between its marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(results)}\n{END}{rest.partition(END)[2]}"
