"""Rules for single columns: those that give the answer away, name groups, or hold numbers written as words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from sigma_data.examination import IDENTIFIER
from sigma_data.examining.rows import EXAMPLES, DataRule, ExaminedColumn, ExaminedRows
from sigma_data.labels import list_first
from sigma_data.profiling.leaks import ENOUGH, GROUPS, describe_leak
from sigma_kernel import Finding

MEANT = 0.5  # share of words that are numbers from which on a column is meant to hold numbers
SAMPLE = 20_000  # rows in which a column that gives the target away must do so first
WIDEST = 300  # columns from which on no column is compared with the target
PLAIN = re.compile(r"\s*+[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?\s*+")
COMMA = re.compile(r"\s*+[+-]?(?:\d++(?:\.\d{3})*+),\d++\s*+")
UNIT = re.compile(r"\s*+[+-]?\d[\d.,]*+\s*+([^\W\d_]{1,8}+[²³]?|[%°€$£]|°[CF])\s*+")


def find_told(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield what the data set itself says before each training."""
    yield from (Finding("columns-and-classes", "warning", text) for text in rows.sentences)


def find_leaks(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for each input that gives the target away."""
    if rows.goal is None or rows.goal.ndim != 1 or len(rows.inputs) > WIDEST or len(rows.inputs) < 2:
        return
    classes = rows.goal.dtype.kind == "i"
    labelled = rows.goal >= 0 if classes else np.isfinite(rows.goal)
    for column in (rows.columns[name] for name in rows.inputs if name in rows.columns):
        there = labelled & column.present
        if there.sum() < max(ENOUGH, labelled.sum() / 2):
            continue
        values, goal = column.values[there], rows.goal[there]
        step = -(-len(goal) // SAMPLE)
        if not describe_leak(values[::step], goal[::step], column.is_number, classes):
            continue
        if reason := describe_leak(values, goal, column.is_number, classes):
            yield Finding(
                "leak", "warning",
                f"column {column.name!r} gives the target away: {reason}. If it is not known when one predicts, leave "
                f"it out: {rows.leave_out.format(repr(column.name))}",
            )  # fmt: skip


def find_split_groups(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for each column that names persons, places or sessions with rows in two splits."""
    if rows.grouped or "training" not in rows.splits:
        return
    for column in rows.columns.values():
        if not GROUPS.search(column.name) or column.name == rows.target:
            continue
        training = np.unique(column.values[rows.splits["training"]])
        distinct = len(np.unique(column.values[column.present]))
        if not 2 < distinct <= len(rows) / 2:
            continue
        for name, held in rows.other_splits.items():
            shared = held[column.present[held] & np.isin(column.values[held], training)]
            if len(shared):
                chosen = column.name in rows.inputs and not IDENTIFIER.search(column.name)
                text = (
                    f"column {column.name!r} may name groups of rows, {distinct:,} in all, and {len(shared):,} of "
                    f"{len(held):,} rows of {name!r} are of a group that is trained on: figures there are not those of "
                    f"new groups. To keep each in one split, write group = {column.name!r} below [data]."
                )
                yield Finding("split-groups", "note" if chosen else "warning", text, rows.examples(shared))


def find_numbers_as_words(rows: ExaminedRows) -> Iterator[Finding]:
    """Yield a finding for each column of words that mixes decimal marks or units, or of which most are numbers."""
    for column in rows.columns.values():
        if column.words is not None and column.name != rows.target and len(column.words) > 2:
            yield from _read_words(rows, column, [*map(str, column.words)])


def _read_words(rows: ExaminedRows, column: ExaminedColumn, words: Sequence[str]) -> Iterator[Finding]:
    counts = np.bincount(column.values[column.present], minlength=len(words))
    plain, comma = ({i for i, word in enumerate(words) if form.fullmatch(word)} for form in (PLAIN, COMMA))
    units = {i: match[1] for i, word in enumerate(words) if (match := UNIT.fullmatch(word))}
    total, numeric = int(counts.sum()), plain | comma
    if counts[[*(numeric | units.keys())]].sum() < MEANT * total:
        return
    odd: dict[int, None] = {}
    if len({*units.values()}) > 1 or (units and numeric):
        named = list_first(sorted({*units.values()}))
        what, odd = f"numbers with the units {named}{' and without any' if numeric else ''}", dict.fromkeys(units)
        remedy = "Bring them to one unit, and name it in the head of the column"
    elif comma and any("." in words[i] for i in plain):
        what, odd = "numbers with decimal commas and with decimal points", dict.fromkeys(sorted(comma))
        remedy = "Write all of them with points"
    elif plain and counts[[*plain]].sum() < total:
        odd = dict.fromkeys(i for i in range(len(words)) if i not in plain)
        what, remedy = f"numbers and words such as {words[next(iter(odd))]!r}", "Correct these, or leave them blank"
    if odd:
        at = np.flatnonzero(np.isin(column.values, [*odd]))[:EXAMPLES]
        text = f"column {column.name!r} holds {what}: it is read as words. {remedy}."
        yield Finding("numbers-as-words", "warning", text, rows.examples(at))


RULES = (
    DataRule(
        "columns-and-classes", "run", "indexes, identifiers and constants among the columns; classes without a row in "
        "a split; files that are left out", "as the sentence says", find_told,
    ),
    DataRule(
        "leak", "check", "columns that give the target away: correlation of 0.999 or more, thresholds or words that "
        "tell all classes apart", "leave the column out", find_leaks,
    ),
    DataRule(
        "split-groups", "check", "persons, places or sessions with rows in two splits, by the names of columns",
        "set `group`", find_split_groups,
    ),
    DataRule(
        "numbers-as-words", "check", "numbers with several units or decimal marks, and numbers among words",
        "correct the cells", find_numbers_as_words,
    ),
)  # fmt: skip
