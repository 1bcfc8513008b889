"""Rows as the rules of an examination read them: columns, targets, splits, and a key for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

from sigma_data.sampling import mix
from sigma_kernel import Finding, Label

Stage = Literal["run", "check", "data"]
Severity = Literal["error", "warning", "note"]
EXAMPLES = 3
CHUNK = 1 << 22  # cells that are hashed at a time


@frozen(eq=False)
class ExaminedColumn:
    """A column: float64 with NaN where missing, or int64 codes of words, -1 where missing.

    ``words`` are the words by code; None for numbers.
    """

    name: str
    values: np.ndarray
    words: Sequence[Any] | None = None

    @property
    def is_number(self) -> bool:
        """Return whether the values are numbers."""
        return self.words is None

    @property
    def present(self) -> np.ndarray:
        """Return which rows have a value."""
        return ~np.isnan(self.values) if self.is_number else self.values >= 0

    def text(self, value: Any) -> str:
        """Return a value for a sentence."""
        return f"{value:g}" if self.words is None else repr(str(self.words[int(value)]))


@frozen(eq=False)
class ExaminedRows:
    """Rows of all splits, one after another, or of data without splits.

    ``columns`` are by name, ``inputs`` the names of those that a network sees. ``keys`` are equal for rows with equal
    inputs, and ``full_keys`` for equal rows. ``goal`` has class indices (int64, negative if there is none) or numbers;
    ``indicators`` are those of several labels, (rows, labels), bool; ``target_keys`` are equal for equal targets.
    ``splits`` have the rows of each, that for training first. ``place`` names a row; ``leave_out`` is a format of the
    remedy for a column. ``pictures`` are thumbnails, (rows, side, side). ``grouped`` says that a column groups
    the rows. ``sentences`` are those of the data set itself.
    """

    name: str
    keys: np.ndarray
    columns: Mapping[str, ExaminedColumn] = field(factory=dict)
    inputs: Sequence[str] = ()
    target: str = ""
    goal: np.ndarray | None = None
    indicators: np.ndarray | None = None
    target_keys: np.ndarray | None = None
    labels: Sequence[Label] = ()
    splits: Mapping[str, np.ndarray] = field(factory=dict)
    place: Callable[[int], str] = "row {}".format
    leave_out: str = "Leave it out."
    pictures: np.ndarray | None = None
    grouped: bool = False
    sentences: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def full_keys(self) -> np.ndarray:
        """Return a key for each row, with its targets."""
        return self.keys if self.target_keys is None else mix(self.keys + self.target_keys)

    @property
    def classes(self) -> np.ndarray | None:
        """Return the class of each row; None if the targets are not classes."""
        return self.goal if self.goal is not None and self.goal.dtype.kind == "i" else None

    @property
    def other_splits(self) -> dict[str, np.ndarray]:
        """Return the rows of the splits that are not trained on."""
        return {name: rows for name, rows in self.splits.items() if name != "training"}

    @property
    def split_of_rows(self) -> np.ndarray:
        """Return the number of the split of each row, -1 for none."""
        numbers = np.full(len(self), -1)
        for number, rows in enumerate(self.splits.values()):
            numbers[rows] = number
        return numbers

    def examples(self, rows: Sequence[int] | np.ndarray) -> tuple[str, ...]:
        """Return the places of the first rows."""
        return tuple(self.place(int(row)) for row in rows[:EXAMPLES])

    def pairs(self, rows: Sequence[tuple[int, int]]) -> tuple[str, ...]:
        """Return the places of the first pairs of rows."""
        return tuple(f"{self.place(int(first))} and {self.place(int(second))}" for first, second in rows[:EXAMPLES])

    def label(self, index: int) -> Label:
        """Return the label of a class."""
        return self.labels[index] if index < len(self.labels) else index


@frozen
class DataRule:
    """One kind of mistake: its name, the command from which it is looked for, and what it finds.

    ``run`` rules are told before each training as well, ``check`` rules by `sigma check`, ``data`` rules by
    `sigma data check` alone, as they take longer. ``looks_for`` and ``remedy`` are for the documentation.
    """

    name: str
    stage: Stage
    looks_for: str
    remedy: str
    find: Callable[[ExaminedRows], Iterator[Finding]]


# -- keys --------------------------------------------------------------------------------------------------------------
def hash_column(values: np.ndarray) -> np.ndarray:
    """Return a key for each value of a column; equal for equal values, for zeros of either sign, and for NaN."""
    if values.dtype.kind == "f":
        plain = values.astype(np.float64) + 0.0
        bits = np.where(np.isnan(plain), np.nan, plain).view(np.uint64)
    else:
        bits = values.astype(np.int64).view(np.uint64)
    return mix(bits)


def hash_columns(columns: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Return a key for each row of some columns."""
    keys = np.zeros(rows, np.uint64)
    for values in columns:
        keys = mix(keys + hash_column(values))
    return keys


def hash_matrix(values: np.ndarray) -> np.ndarray:
    """Return a key for each row of an array of any shape."""
    flat = values.reshape(len(values), -1)
    weights = mix(np.arange(flat.shape[1], dtype=np.uint64)) | np.uint64(1)
    step = max(1, CHUNK // max(1, flat.shape[1]))
    parts = [
        (hash_column(flat[i : i + step]) * weights).sum(axis=1, dtype=np.uint64) for i in range(0, len(flat), step)
    ]
    return mix(np.concatenate(parts)) if parts else np.zeros(0, np.uint64)


def group_equal(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in an order in which equal keys are neighbours, earlier rows first, and where each key begins."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    return order, np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(keys)])


def percent(part: float, whole: float) -> str:
    """Return a share as text."""
    return f"{100 * part / whole:.2g} %" if whole else "0 %"
