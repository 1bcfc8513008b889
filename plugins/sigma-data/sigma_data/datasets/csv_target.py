"""The target of a CSV table: words parsed as numbers, or settled as classes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from sigma_data.labels import EXACT, Codes, Labels, check_exact
from sigma_data.readers.csv import STRINGS, inexact_integer_error, is_gap
from sigma_data.readers.figures import Figures, has_only_digits, truth
from sigma_kernel import SigmaDataError


@frozen
class CsvTarget:
    """The columns of a target: ``targets`` says whether they hold classes, numbers, or either."""

    path: Path
    columns: Sequence[str | int]
    targets: str
    figures: Figures

    @property
    def may_be_classes(self) -> bool:
        """Return whether the target may hold classes: only a single column does."""
        return len(self.columns) == 1 and self.targets != "numbers"

    def parse(self, words: np.ndarray, lines: np.ndarray, what: str) -> np.ndarray:
        """Return words parsed as numbers, NaN for missing ones; as words if they may be classes."""
        figures, cells = self.figures, words.tolist()
        with suppress(ValueError):
            if figures.is_plain and has_only_digits(cells):
                return self._exact(words, words.astype(np.float64), lines, what)
        gaps = np.array([is_gap(cell) for cell in cells])
        if (truths := _truths(cells, gaps)) is not None:
            return np.array(["", "False", "True"], STRINGS)[truths + 1] if self.may_be_classes else _numbers(truths)
        wrong = next((i for i, cell in enumerate(cells) if not (gaps[i] or figures.is_number(cell))), None)
        if wrong is None:
            values = [np.nan if gap else figures.value(cell) for gap, cell in zip(gaps, cells, strict=True)]
            return self._exact(words, np.array(values), lines, what)
        if self.may_be_classes:
            return words
        several = len(self.columns) > 1
        advice = "make it the only `target`, whose words are classes" if several else "set targets = 'classes'"
        advice = f"Correct it, or {advice}.{figures.advice(cells[wrong])}"
        raise SigmaDataError(f"{self.path}:{lines[wrong]}: {what} {cells[wrong]!r} is not a number. {advice}")

    def _exact(self, words: np.ndarray, numbers: np.ndarray, lines: np.ndarray, what: str) -> np.ndarray:
        """Return words parsed as floats, or as integers if floats would merge some of them."""
        if np.isinf(numbers).any():
            raise SigmaDataError(f"{self.path}:{lines[np.isinf(numbers).argmax()]}: {what} is not finite. Correct it.")
        if not (np.abs(numbers) >= EXACT).any():
            return numbers
        with suppress(ValueError, OverflowError):  # not integers, or beyond 64 bits
            return np.asarray(words.astype(np.int64))
        for line, cell, value in zip(lines, words.tolist(), numbers.tolist(), strict=True):
            if self.figures.merges(cell, value):
                raise inexact_integer_error(
                    f"{self.path}:{line}: {what}", cell, value, "or put a letter before it if it is a name"
                )
        return numbers

    def labels(self, targets: list[np.ndarray], lines: np.ndarray) -> np.ndarray | Labels:
        """Return the targets as rows of numbers, or as labels for words and integers in one column."""
        first = targets[0]
        codes = Codes(_restore_types(first), f"{self.path}: the target", lambda row: f"line {lines[row]}")
        words = first.dtype.kind not in "fi"
        if self.may_be_classes and (words or self.targets == "classes"):
            labels = Labels.from_codes(codes, self.targets == "classes")
            if codes.values.dtype.kind == "b" and self.targets == "auto":
                return evolve(labels, numbers=codes.values.astype(np.float64)[:, None])
            return labels
        if self.may_be_classes and np.array_equal(first, np.rint(first)):
            return Labels(codes, first[:, None])
        for name, values in zip(self.columns, targets, strict=True):
            check_exact(values, f"{self.path}: column {name!r}: the target", codes.row, "Write such numbers as floats.")
        return np.stack(targets, axis=1, dtype=np.float64)


def _truths(cells: Sequence[str], gaps: np.ndarray) -> np.ndarray | None:
    """Return 1 for each true cell, 0 for a false one, and -1 for a missing one; None if there are others, or none."""
    truths = [-1 if gap else truth(cell) for cell, gap in zip(cells, gaps, strict=True)]
    return None if None in truths or gaps.all() else np.array(truths, int)


def _numbers(truths: np.ndarray) -> np.ndarray:
    return np.where(truths < 0, np.nan, truths)


def _restore_types(values: np.ndarray) -> np.ndarray:
    """Return whole numbers that were read as floats as integers, and True and False as booleans; others unchanged."""
    if values.dtype.kind == "f":
        whole = (np.abs(values) < 2.0**53).all() and np.array_equal(values, np.rint(values))
        return values.astype(np.int64) if whole else values
    truths = values.dtype.kind == "T" and {*values.tolist()} <= {"True", "False"}
    return np.asarray(values == "True") if truths else values


def missing_values(values: np.ndarray) -> np.ndarray:
    """Return which targets are missing; among words, only blanks are."""
    return np.isnan(values) if values.dtype.kind in "fi" else np.array([not cell.strip() for cell in values.tolist()])
