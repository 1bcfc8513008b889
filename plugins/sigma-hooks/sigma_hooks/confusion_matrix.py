"""Evaluate the confusion matrix of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import check_classes, said_and_right
from sigma_hooks.evaluate import Evaluate
from sigma_kernel import functions as f
from sigma_kernel.contracts import Media, Metric, TableValue
from sigma_kernel.graph import Node
from sigma_kernel.settings import optional, whole

MOST_CLASSES = 100  # of a matrix that is shown


@frozen
class ConfusionMatrixMetric(Metric):
    """Confusion matrix: counts of true classes (rows) by predicted classes (columns), a list of rows.

    Predictions ``(n, ..., classes)`` choose a class for each label ``(n, ...)`` or ``(n, ..., 1)``, or one-hot row;
    those ``(n, ..., 1)`` or ``(n,)`` are probabilities of class 1 of two, whose targets are 1, and 0 or -1 for the
    other.  Places with a NaN score are not counted.

    Raises SigmaDataError if targets are not classes.

    Args:
        ignore_index: Label that does not count, such as that of padding; not for targets that are one-hot.
    """

    better: ClassVar[str] = "neither"
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the counts, and a row with that of labels that are no classes: int32 ``(classes + 1, classes)``."""
        said, right, wrong = said_and_right("confusion_matrix", prediction, targets, self.ignore_index)
        own, other = (f.cast(rows, prediction.dtype) for rows in (right, said))  # products of numbers are faster
        last = f.full(1, (1, said.shape[1]), "int32") * wrong
        return f.concat(f.cast(f.swap_axes(own, 0, 1) @ other, "int32"), last, axis=0)

    def value(self, totals: np.ndarray, rows: int) -> list[list[int]]:
        """Return the counts."""
        check_classes("confusion_matrix", bool(totals[-1].any()))
        return [[int(count) for count in row] for row in totals[:-1]]


@define(eq=False, kw_only=True)
class ConfusionMatrix(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.confusion_matrix``, whose rows are the true classes; the matrix as media, too.

    Args:
        ignore_index: Label that does not count, such as that of padding.
    """

    ignore_index: int | None = field(default=None, validator=optional(whole))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the confusion matrix and the configured metrics."""
        return {"confusion_matrix": ConfusionMatrixMetric(self.ignore_index), **self.metrics}

    def show(self, name: str, value: Any) -> Media | None:
        """Return the matrix as a table: a row for each true class, a column for each predicted one.

        Nobody reads one of more than ``MOST_CLASSES``: it is None.
        """
        if name.rpartition(".")[2] != "confusion_matrix" or np.ndim(value) != 2 or len(value) > MOST_CLASSES:
            return None
        columns = ["true class", *map(str, range(len(value[0])))]
        return TableValue(columns, [[str(true), *row] for true, row in enumerate(value)], heat=True)
