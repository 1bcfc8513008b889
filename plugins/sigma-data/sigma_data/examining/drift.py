"""Rules for columns that differ between splits: another distribution, categories unseen, one value in training."""

from __future__ import annotations

from collections.abc import Iterator
from math import erfc, exp, lgamma, log, sqrt

import numpy as np

from sigma_data.examining.rows import DataRule, ExaminedColumn, ExaminedRows, percent
from sigma_data.labels import list_first
from sigma_kernel import Finding

ALARM = 0.001  # probability of any false alarm about drift, over all columns and splits
DISTANCE = 0.1  # least distance of two distribution functions that is said
INDEX = 0.1  # least population stability index that is said
KINDS = 200  # categories of a column that are compared
ROWS = 50  # of a split, below which distributions are not compared
UNSEEN = 0.05  # share of rows with unseen categories from which on it is a warning
SHOWN = 5  # columns that are said one by one


# -- statistics --------------------------------------------------------------------------------------------------------
def compare_numbers(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return the two-sample statistic of Kolmogorov and Smirnov, and its asymptotic p-value."""
    first, second = np.sort(first), np.sort(second)
    every = np.concatenate([first, second])
    below = [np.searchsorted(part, every, side="right") / len(part) for part in (first, second)]
    distance = float(np.abs(below[0] - below[1]).max())
    return distance, kolmogorov(distance * sqrt(len(first) * len(second) / len(every)))


def kolmogorov(x: float) -> float:
    """Return the probability that Kolmogorov's statistic, times the root of the number of rows, exceeds ``x``."""
    if x < 0.2:
        return 1.0
    return min(1.0, max(0.0, 2 * sum((1 if k % 2 else -1) * exp(-2 * (k * x) ** 2) for k in range(1, 40))))


def compare_counts(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return Pearson's chi-squared statistic of two rows of counts, and its p-value."""
    counts = np.stack([first, second])[:, (first + second) > 0].astype(np.float64)
    expected: np.ndarray = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic, chi_squared(statistic, counts.shape[1] - 1)


def chi_squared(x: float, freedom: int) -> float:
    """Return the probability that a chi-squared variable exceeds ``x`` (Abramowitz and Stegun 26.4.4, 26.4.5)."""
    if freedom < 1 or x <= 0:
        return 1.0
    half = x / 2
    if freedom % 2:
        powers = [k + 0.5 for k in range((freedom - 1) // 2)]
        return erfc(sqrt(half)) + sum(exp(p * log(half) - half - lgamma(p + 1)) for p in powers)
    return min(1.0, sum(exp(k * log(half) - half - lgamma(k + 1)) for k in range(freedom // 2)))


def stability_index(first: np.ndarray, second: np.ndarray) -> float:
    """Return the population stability index of two rows of counts; half a row is added to each."""
    p, q = ((counts + 0.5) / (counts + 0.5).sum() for counts in (first, second))
    return float(((p - q) * np.log(p / q)).sum())


# -- rules -------------------------------------------------------------------------------------------------------------
def find_drift(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for each column whose values are distributed otherwise in a split than in the training."""
    columns = [rows.columns[name] for name in dict.fromkeys([*rows.inputs, rows.target]) if name in rows.columns]
    compared = {name: held for name, held in rows.other_splits.items() if len(held) >= ROWS}
    if "training" not in rows.splits or len(rows.splits["training"]) < ROWS or not compared:
        return
    limit = ALARM / (len(columns) * len(compared) or 1)
    for name, held in compared.items():
        reasons = {column.name: _compare(column, rows.splits["training"], held, limit) for column in columns}
        texts = [
            f"column {column!r} is distributed otherwise in {name!r} than in 'training': {reason}. {REMEDY}"
            for column, reason in reasons.items()
            if reason
        ]
        yield from (Finding("drift", "warning", text) for text in texts[:SHOWN])
        if len(texts) > SHOWN:
            rest = f"{len(texts) - SHOWN} columns more are distributed otherwise in {name!r} than in 'training'."
            yield Finding("drift", "warning", rest)


REMEDY = "If the rows are sorted, set split_by = 'record'; if new rows are like that, nothing is wrong."


def _compare(column: ExaminedColumn, training: np.ndarray, held: np.ndarray, limit: float) -> str:
    """Return how a column differs between the training and another split; empty if it does not."""
    there = column.present
    first, second = (column.values[part[there[part]]] for part in (training, held))
    if min(len(first), len(second)) < ROWS:
        return ""
    if column.words is None:
        distance, p = compare_numbers(first, second)
        if distance < DISTANCE or p >= limit:
            return ""
        return (
            f"its median is {np.median(second):g} and {np.median(first):g} (Kolmogorov-Smirnov distance {distance:.2f})"
        )
    if len(column.words) > KINDS:
        return ""
    before, now = (np.bincount(part, minlength=len(column.words)) for part in (first, second))
    index, (_, p) = stability_index(before, now), compare_counts(before, now)
    if index < INDEX or p >= limit:
        return ""
    shares = before / before.sum(), now / now.sum()
    most = int(np.argmax(np.abs(shares[0] - shares[1])))
    return (
        f"{100 * shares[1][most]:.1f} % and {100 * shares[0][most]:.1f} % are {column.text(most)} (population "
        f"stability index {index:.2f})"
    )


def find_unseen(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for each column of words with some that only occur outside of the training rows."""
    for column in (rows.columns[name] for name in rows.inputs if name in rows.columns):
        if column.words is None or "training" not in rows.splits:
            continue
        seen = np.zeros(len(column.words) + 1, bool)
        seen[column.values[rows.splits["training"]]] = True
        seen[-1] = True
        for name, held in rows.other_splits.items():
            new = held[~seen[column.values[held]]]
            if len(new):
                words = [str(column.words[code]) for code in np.unique(column.values[new])[:9].tolist()]
                share = f"{len(new):,} rows of {name!r}, {percent(len(new), len(held))} of it"
                text = (
                    f"column {column.name!r}: {share}, have words that no row of 'training' has: {list_first(words)}. "
                    "Nothing is learned about them. Train on such rows too, or take rare words together: least = 2 of "
                    "the encoder one_hot."
                )
                severe = len(new) >= UNSEEN * len(held)
                yield Finding("unseen", "warning" if severe else "note", text, rows.examples(new))


def find_constant_in_training(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for columns that have one value in all rows of the training, and others elsewhere."""
    if "training" not in rows.splits or len(rows.splits["training"]) < 2:
        return
    names = []
    for column in (rows.columns[name] for name in rows.inputs if name in rows.columns):
        values = column.values[column.present]
        training = column.values[rows.splits["training"]]
        training = training[column.present[rows.splits["training"]]]
        if len(training) and len(values) and training.min() == training.max() and values.min() != values.max():
            names.append(column.name)
    if names:
        said = f"columns {list_first(names)} have" if len(names) > 1 else f"column {names[0]!r} has"
        yield Finding(
            "constant-in-training", "note" if len(rows.inputs) >= WIDE else "warning",
            f"{said} one value in all rows of 'training', and others elsewhere: nothing can be learned from it. "
            f"{rows.leave_out.format(repr(names[0]))}",
        )  # fmt: skip


WIDE = 48  # columns from which on some are expected to be constant, such as pixels in a corner

RULES = (
    DataRule(
        "drift", "data", "columns distributed otherwise in another split than in the training (Kolmogorov-Smirnov "
        "distance or population stability index of 0.1 or more, and one false alarm in 1,000 sets)",
        "split_by = 'record', or nothing if new rows are like that", find_drift,
    ),
    DataRule(
        "unseen", "check", "words in another split that no training row has",
        "train on such rows, or take rare words together", find_unseen,
    ),
    DataRule(
        "constant-in-training", "check", "columns with one value in all training rows, and others elsewhere",
        "leave the column out", find_constant_in_training,
    ),
)  # fmt: skip
