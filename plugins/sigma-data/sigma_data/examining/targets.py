"""Rules for targets: classes that are too rare for the split, and few rows that make up most of the loss."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigma_data.examining.rows import DataRule, ExaminedRows
from sigma_data.labels import list_first
from sigma_kernel import Finding

RARE = 5  # rows of a class in the training, below which little is learned about it
ROWS = 100  # of numbers, below which a few of them may well stand out
SHARE = 0.5  # of squared deviations, from which on a few rows make up the loss
FEW = 1000  # one row in so many may do that


def find_rare_classes(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for classes with few rows in the training, and some elsewhere."""
    if rows.classes is None or "training" not in rows.splits:
        return
    present = rows.classes[rows.classes >= 0]
    training = rows.classes[rows.splits["training"]]
    if len(present) < 10 * RARE:
        return
    counts = np.bincount(training[training >= 0], minlength=int(present.max()) + 1)
    rare = [index for index in np.unique(present).tolist() if 0 < counts[index] < RARE]
    if rare:
        at = rows.splits["training"][np.isin(training, rare)]
        text = (
            f"fewer than {RARE} rows of 'training' are of {'the classes' if len(rare) > 1 else 'class'} "
            f"{list_first([rows.label(index) for index in rare])}: little is learned about such rows. Add some, take "
            "rare classes together, or set split_by = 'stratified'."
        )
        yield Finding("rare-classes", "warning", text, rows.examples(at))


def find_rare_labels(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for labels, of several a row, that few rows of a split have."""
    if rows.indicators is None or "training" not in rows.splits:
        return
    total = rows.indicators.sum(axis=0)
    for name, held in rows.splits.items():
        least, verb = (RARE, "learned") if name == "training" else (1, "measured")
        counts = rows.indicators[held].sum(axis=0)
        rare = np.flatnonzero((counts < least) & (total > 0) & (total < len(rows.indicators)))
        if len(rare):
            number = "no row has" if least == 1 else f"fewer than {least} rows have"
            named = list_first([rows.label(index) for index in rare.tolist()])
            text = (
                f"in {name!r}, {number} the label{'s' if len(rare) > 1 else ''} {named}: little is {verb} "
                f"about such rows. {_advise(int(total[rare].min()), len(rows.splits))}"
            )
            yield Finding("rare-labels", "warning", text)


def _advise(least: int, splits: int) -> str:
    if least < splits:
        return "There are fewer such rows than splits: add some, or leave the label out."
    return "Set split_by = 'stratified', or add such rows."


def find_outliers(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding if few targets make up most of the squared deviations from their mean."""
    if rows.goal is None or rows.goal.dtype.kind != "f" or rows.goal.ndim != 1:
        return
    there = np.flatnonzero(np.isfinite(rows.goal))
    values = rows.goal[there]
    if len(values) < ROWS or len(np.unique(values)) < RARE:
        return
    deviations = values / np.abs(values).max() - (values / np.abs(values).max()).mean()
    squares = deviations**2
    most = max(1, len(values) // FEW)
    top = np.argsort(-squares, kind="stable")[:most]
    share = float(squares[top].sum() / squares.sum())
    if share >= SHARE:
        named = ", ".join(f"{value:g}" for value in values[top[:3]])
        text = (
            f"{'1 target of' if most == 1 else f'{most:,} targets of'} {len(values):,}, such as {named}, "
            f"{'has' if most == 1 else 'have'} {100 * share:.0f} % of the squared deviations from the mean: the loss "
            "is about little else. Correct such rows, or give the targets a preprocessor: type = 'log' or 'robust', "
            "section = 'targets'."
        )
        yield Finding("outliers", "warning", text, rows.examples(there[top]))


RULES = (
    DataRule(
        "rare-classes", "check", "classes with fewer than 5 rows in the training",
        "split_by = 'stratified', or add rows",
        find_rare_classes,
    ),
    DataRule(
        "rare-labels", "check", "labels, of several a row, that fewer than 5 rows of the training or no row of "
        "another split have", "split_by = 'stratified', or add rows", find_rare_labels,
    ),
    DataRule(
        "outliers", "check", "targets, at most one in 1,000, with half of the squared deviations from the mean",
        "correct them, or set a preprocessor on the targets", find_outliers,
    ),
)  # fmt: skip
