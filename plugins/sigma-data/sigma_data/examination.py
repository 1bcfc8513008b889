"""Examine tables before training: columns that say nothing, or give rows away, and classes without rows in a split."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sigma_data.labels import list_first
from sigma_kernel import Label

MOST = 1 << 20  # values of a column that are looked at
HEAD = 1000  # values that tell most columns apart already
ROWS = 50  # fewer may be in order, or all different, by chance
FEW = 20  # rows of all splits, below which a class may well lack in one
WIDE = 48  # columns of a table from which on some are expected to be constant, such as the pixels in a corner

UNNAMED = re.compile(r"\s*+|Unnamed: ?\d.*+|__index_level_\d++__")  # as pandas and pyarrow name the index of a frame
TIME = re.compile(r"^t$|time|date|year|month|week|day|hour|minute|second|stamp|epoch", re.IGNORECASE)
IDENTIFIER = re.compile(r"(?<![A-Za-z])(?i:id|uuid|guid)$|[a-z]I[dD]$")  # not the id of "paid"

Remedy = Callable[[str], str]  # what to do to leave out a column


def examine_columns(
    numbers: Mapping[str, np.ndarray], categories: Mapping[str, int], rows: int, remedy: Remedy, in_time: bool = False
) -> tuple[str, ...]:
    """Return a sentence for each column that is an index or an identifier, and one for those that are constant.

    ``numbers`` has the columns that are not encoded; ``categories``, how many each of the others has.  Rows that are
    ``in_time`` may be counted.
    """
    kinds = {name: _kind(name, values[:MOST]) for name, values in numbers.items()}
    kinds |= {name: _kind_of_words(count, rows) for name, count in categories.items()}
    kinds |= {name: "unnamed" for name in kinds if UNNAMED.fullmatch(name)}
    odd = {name: kind for name, kind in kinds.items() if kind in SAID and len(kinds) > 1}
    findings = [
        SAID[kind].format(repr(name)) + remedy(name) for name, kind in odd.items() if kind != "index" or not in_time
    ]
    if len(kinds) < WIDE and (same := [name for name, kind in kinds.items() if kind == "constant"]):
        several = "columns {} have" if len(same) > 1 else "column {} has"
        findings.append(f"{several.format(list_first(same))} one value in all rows, from which nothing can be learned.")
    return tuple(findings)


SAID = {
    "unnamed": "column {} has no name, as an index that was saved with a table. A network can learn the order of the "
    "rows from it, and with it the targets. ",
    "index": "column {} counts the rows up, as an index does. A network can learn the order of the rows from it, and "
    "with it the targets. ",
    "identifier": "column {} has another integer in every row, as an identifier does. A network can learn the rows by "
    "heart from it. ",
    "names": "column {} has almost as many categories as there are rows, as a name does. A network can learn the rows "
    "by heart from it. ",
}  # fmt: skip


def _kind(name: str, values: np.ndarray) -> str:
    """Return what a column of numbers is: constant, index, identifier, or nothing odd."""
    head = values[:HEAD][~np.isnan(values[:HEAD])]
    if not len(head) or (not (head == np.rint(head)).all() and (head != head[0]).any()):
        return ""
    numbers = values[~np.isnan(values)]
    if (numbers == numbers[0]).all():
        return "constant" if len(numbers) > 1 else ""
    if len(numbers) < ROWS or TIME.search(name) or not (numbers == np.rint(numbers)).all():
        return ""
    if (np.diff(numbers) > 0).all():
        return "index"
    dense = len(numbers) <= float(numbers.max()) - float(numbers.min()) + 1 < 2 * len(numbers)
    distinct = (dense or IDENTIFIER.search(name)) and len(np.unique(numbers)) == len(numbers)
    return "identifier" if distinct else ""


def _kind_of_words(count: int, rows: int) -> str:
    if count == 1 < rows:
        return "constant"
    return "names" if rows >= ROWS and count > 0.9 * rows else ""


def examine_classes(splits: Mapping[str, np.ndarray], names: Sequence[Label]) -> tuple[str, ...]:
    """Return a sentence for each split without rows of some class; ``splits`` have its indices, negative if ignored."""
    if len(splits) < 2 or sum(map(len, splits.values())) < FEW:
        return ()
    counts = {split: _count_values(values[values >= 0]) for split, values in splits.items()}
    total = sum(counts.values(), Counter[int]())
    lacking = {split: sorted(total.keys() - count.keys()) for split, count in counts.items()}
    return tuple(
        _lacking(split, [names[i] if i < len(names) else i for i in missing])
        + _remedy(counts[split].total(), total, [total[i] for i in missing], len(splits))
        for split, missing in lacking.items()
        if missing
    )


def _count_values(values: np.ndarray) -> Counter[int]:
    distinct, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))


def _lacking(split: str, labels: Sequence[Label]) -> str:
    which = f"classes {list_first(labels)} have" if len(labels) > 1 else f"class {labels[0]!r} has"
    effect = "nothing is learned about such rows" if split == "training" else "nothing there measures such rows"
    return f"{which} no row in the split {split!r}: {effect}. "


def _remedy(rows: int, total: Mapping[int, int], missing: Sequence[int], splits: int) -> str:
    if max(missing) < splits:
        return "There are fewer such rows than splits: add some, or leave them all out."
    if rows < len(total):
        return f"Give it more than {rows} rows, as there are {len(total)} classes."
    return "Set split_by = 'stratified', or give it more rows."
