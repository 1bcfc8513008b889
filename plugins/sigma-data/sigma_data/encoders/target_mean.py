"""Encode categories by the mean of their targets, without leaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from attrs import field, frozen

from sigma_data.encoders.columns import (
    EMPTY,
    FIX,
    count_categories,
    is_missing,
    place_categories,
    read_batches,
    read_categories,
    rebatch,
)
from sigma_data.encoders.lookups import KEPT, SameObject
from sigma_data.sampling import mix
from sigma_kernel import Encoder, SigmaConfigError, SigmaDataError
from sigma_kernel.settings import ge, gt


@frozen
class TargetMeanEncoder(Encoder):
    """Encode a category by the mean target of its training rows, drawn to the mean of all rows if it has few.

    With n rows whose targets sum to s, and the mean m of all rows, a category becomes (s + smoothing m) / (n +
    smoothing).  Missing values are a category; unseen ones become m.  Targets that are indices of two classes are the
    probability of the second one; of more classes, there is a number for each.

    A training row would give its own target away.  It belongs to one of the ``folds``, by the hash of its number, and
    becomes what the rows of the others say.  Rows of other splits, and rows to predict from, become what all training
    rows say.

    Micci-Barreca, A preprocessing scheme for high-cardinality categorical attributes in classification and prediction
    problems, SIGKDD Explorations 3 (1), 2001, with the weight n / (n + smoothing).

    Args:
        smoothing: Number of rows with the mean of all that a category has in addition to its own.
        folds: Number of parts of the training rows.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("category", "identifier", "boolean", "number", "text", "constant")
    smoothing: float = field(default=10.0, validator=gt(0))
    folds: int = field(default=5, validator=ge(2))
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``categories``, and ``counts`` and ``sums`` of targets in the table of categories and folds.

        Only its ``cells`` with any rows are kept.  A cell is the number of a category times the folds, plus the fold;
        the missing value comes after all categories.  Targets have ``width`` numbers each.
        """
        if targets is None:
            raise SigmaConfigError("target_mean: there are no targets to learn from. Use another encoder.")
        categories, _, _ = count_categories(read_batches(columns, read_categories))
        width, classes = _describe(targets)
        counts = np.zeros((len(categories) + 1) * self.folds)
        sums = np.zeros((len(counts), width))
        first = 0
        for column, batch in _pairs(columns, targets):
            cells = self._cells(column, categories, np.arange(first, first + len(column)))
            numbers = _numbers(batch, classes)
            counts += np.bincount(cells, minlength=len(counts))
            for output in range(width):
                sums[:, output] += np.bincount(cells, numbers[:, output], minlength=len(counts))
            first += len(column)
        if not first:
            raise SigmaDataError(EMPTY)
        return {
            "categories": categories.to_pylist(),
            "width": width,
            "cells": (cells := np.flatnonzero(counts)).tolist(),
            "counts": counts[cells].tolist(),
            "sums": sums[cells].ravel().tolist(),
        }

    def _cells(self, column: Any, categories: Any, rows: np.ndarray) -> np.ndarray:
        """Return the place of each training row in the flat table of categories and folds."""
        places = place_categories(column, categories)
        return np.asarray(np.where(places < 0, len(categories), places) * self.folds + self._fold(rows))

    def _fold(self, rows: np.ndarray) -> np.ndarray:
        return (mix(rows) % np.uint64(self.folds)).astype(np.int64)

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the means of all training rows, of shape (rows, numbers)."""
        means = _tabulate_means(self, SameObject(state))
        return np.asarray(means[_places(column, state["categories"])])

    def means(self, state: Mapping[str, Any]) -> np.ndarray:
        """Return the means of all training rows by category, then those of the missing value and of unseen ones."""
        counts, sums = self._table(state)
        return self._means(counts.sum(axis=1), sums.sum(axis=1))

    def apply_training(self, column: Any, state: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
        """Return the means of the training rows in other folds, of shape (rows, numbers)."""
        counts, sums = self._table(state)
        means = [
            self._means(np.delete(counts, k, 1).sum(axis=1), np.delete(sums, k, 1).sum(axis=1))
            for k in range(self.folds)
        ]
        return np.asarray(np.stack(means)[self._fold(rows), _places(column, state["categories"])])

    def _table(self, state: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return counts, of shape (categories + 1, folds), and sums, (categories + 1, folds, width)."""
        width, size = state["width"], (len(state["categories"]) + 1) * self.folds
        counts, sums = np.zeros(size), np.zeros((size, width))
        counts[state["cells"]] = state["counts"]
        sums[state["cells"]] = np.array(state["sums"]).reshape(-1, width)
        return counts.reshape(-1, self.folds), sums.reshape(-1, self.folds, width)

    def _means(self, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return the encoded categories, the missing value, and unseen ones."""
        counts, sums = np.append(counts, 0.0)[:, None], np.append(sums, np.zeros((1, sums.shape[1])), axis=0)
        mean = sums.sum(axis=0) / max(1.0, counts.sum())
        return np.asarray((sums + self.smoothing * mean) / (counts + self.smoothing))

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the column with the target, or with each class."""
        width = state["width"]
        return (f"{column} target",) if width == 1 else tuple(f"{column} target {i}" for i in range(width))


@lru_cache(maxsize=KEPT)
def _tabulate_means(encoder: TargetMeanEncoder, state: SameObject) -> np.ndarray:
    return encoder.means(state.value)


def _places(column: Any, categories: list[Any]) -> np.ndarray:
    """Return the place of each value: a category, or the missing value, or after it an unseen one."""
    places = place_categories(column, categories)
    unknown = np.where(is_missing(read_categories(column)), len(categories), len(categories) + 1)
    return np.asarray(np.where(places < 0, unknown, places))


def _describe(targets: Iterable[np.ndarray]) -> tuple[int, int]:
    """Return how many numbers a row has, and the number of classes, 0 for targets that are numbers."""
    width, classes = 1, 0
    for batch in targets:
        if batch.dtype.kind in "iu":
            classes = max(classes, 2, int(batch.max(initial=0)) + 1)
        elif batch.ndim > 1:
            width = batch.shape[1]
    return (classes if classes > 2 else width), classes


def _numbers(targets: np.ndarray, classes: int) -> np.ndarray:
    """Return targets as float64, of shape (rows, numbers)."""
    if classes > 2:
        return np.asarray(targets[:, None] == np.arange(classes), np.float64)
    return np.asarray(targets.reshape(len(targets), -1), np.float64)


def _pairs(columns: Iterable[Any], targets: Iterable[np.ndarray]) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield the column and the targets in batches of equal size; raise SigmaDataError unless they have as many rows."""
    batches, first = rebatch(targets, np.concatenate), 0
    for column in read_batches(columns, read_categories):
        batch = next(batches, np.zeros(0))
        if len(batch) != len(column):
            raise SigmaDataError("the column and the targets have different numbers of rows. Give a target for each.")
        wrong = ~np.isfinite(_numbers(batch, 0)).all(axis=1)
        if wrong.any():
            raise SigmaDataError(f"the target is not finite. {FIX}", row=first + int(np.argmax(wrong)))
        yield column, batch
        first += len(column)
