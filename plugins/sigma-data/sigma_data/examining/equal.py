"""Rules for equal rows: duplicates, rows of two splits, and equal inputs with different classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigma_data.examining.rows import DataRule, ExaminedRows, Severity, group_equal, percent
from sigma_kernel import Finding

CHANCE = 10  # times as many equal rows as independent columns would have may be by chance
SOME = 0.01  # share of rows from which on a figure is off
MANY = 0.1  # share of rows of a split that are trained on, from which on its figures say little
FEW = 5  # rows that may be equal by chance


def find_duplicates(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding if rows are equal, with their targets, in the same split or in data without splits."""
    keys = rows.full_keys + np.arange(1, 2 + len(rows.splits), dtype=np.uint64)[rows.split_of_rows + 1]
    order, starts = group_equal(keys)
    later = np.ones(len(order), bool)
    later[starts] = False
    if count := int(later.sum()):
        first = np.maximum.accumulate(np.where(later, 0, np.arange(len(order))))
        pairs = [(order[first[i]], order[i]) for i in np.flatnonzero(later)[:3]]
        share = percent(count, len(rows))
        text = f"{_count(count)} equal to an earlier one of the same split, {share} of all: it counts more than others."
        text = text if rows.splits else f"{_count(count)} equal to an earlier one, {share} of all."
        yield Finding("duplicates", "note", f"{text} If they are copies, delete them from the data.", rows.pairs(pairs))


def find_shared_rows(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for each split with rows whose inputs are among those of the training."""
    if "training" not in rows.splits:
        return
    training = rows.splits["training"]
    keys, first = np.unique(rows.keys[training], return_index=True)
    for name, held in rows.other_splits.items():
        at = np.minimum(np.searchsorted(keys, rows.keys[held]), len(keys) - 1)
        shared = keys[at] == rows.keys[held]
        count, share = int(shared.sum()), float(shared.mean())
        if not count:
            continue
        low = share < SOME or count < FEW or count <= CHANCE * len(held) * expect_equal(rows, training)
        severity: Severity = "note" if low else "error" if share >= MANY else "warning"
        text = (
            f"{count:,} of {len(held):,} rows of {name!r} have the same inputs as a row of 'training': figures there "
            "measure what was learned by heart. Delete the copies, or set `group` to a column that such rows share, so "
            "that they stay in one split."
        )
        pairs = [(held[i], training[first[at[i]]]) for i in np.flatnonzero(shared)[:3]]
        yield Finding("shared-rows", severity, text, rows.pairs(pairs))


def expect_equal(rows: ExaminedRows, training: np.ndarray) -> float:
    """Return the chance that a row has the inputs of some row of the training, if its columns were independent."""
    if not rows.inputs or not all(name in rows.columns for name in rows.inputs):
        return 0.0
    chance = 1.0
    for name in rows.inputs:
        counts = np.unique(rows.columns[name].values[training], return_counts=True)[1].astype(np.float64)
        chance *= float((counts * (counts - 1)).sum()) / max(1, len(training) * (len(training) - 1))
    return min(1.0, chance * len(training))


def find_conflicts(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding if rows with equal inputs have different classes."""
    classes = rows.classes
    if classes is None:
        return
    labelled = np.flatnonzero(classes >= 0)
    order, starts = group_equal(rows.keys[labelled])
    if not len(order):
        return
    order, ends = labelled[order], np.r_[starts[1:], len(labelled)]
    goal = classes[order]
    mixed = np.maximum.reduceat(goal, starts) != np.minimum.reduceat(goal, starts)
    pairs, wrong = [], 0
    for start, end in zip(starts[mixed].tolist(), ends[mixed].tolist(), strict=True):
        inside = goal[start:end]
        wrong += end - start - int(np.bincount(inside).max())
        pairs.append((order[start], order[start + int(np.argmax(inside != inside[0]))]))
    if wrong:
        first, second = (rows.label(int(classes[row])) for row in pairs[0])
        best = f"{100 * (1 - wrong / len(labelled)):.4g} %"
        text = (
            f"rows with equal inputs have different classes, such as {first!r} and {second!r}, {len(pairs):,} times: "
            f"no network classifies more than {best} of all rows right. Correct the labels, or add the columns that "
            "tell such rows apart."
        )
        yield Finding("conflicts", "warning" if wrong >= SOME * len(labelled) else "note", text, rows.pairs(pairs))


def _count(rows: int) -> str:
    return "1 row is" if rows == 1 else f"{rows:,} rows are"


RULES = (
    DataRule("duplicates", "data", "rows that are equal to another one", "delete the copies", find_duplicates),
    DataRule(
        "shared-rows", "check", "rows of a split whose inputs are trained on, in another split",
        "delete the copies, or set `group`", find_shared_rows,
    ),
    DataRule(
        "conflicts", "data", "equal inputs with different classes", "correct the labels, or add columns", find_conflicts
    ),
)  # fmt: skip
