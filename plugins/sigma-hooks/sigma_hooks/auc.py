"""Evaluate the area under the ROC curve of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any, ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import check_classes, truth
from sigma_hooks.evaluate import Evaluate
from sigma_hooks.scores import log_odds
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_, optional, whole

AVERAGES = ("macro", "each")


@frozen
class AUCMetric(Metric):
    """Area under the ROC curve: how often a sample of a class has a higher score for it than one of another class.

    It is exact over all places, which are kept until the end: the scores of each, and the label. Ties count one half.
    Probabilities of a sigmoid or a softmax are ranked by the logarithms of their odds, since float32 rounds many of
    them to 1.
    Predictions ``(n, ..., classes)`` are scores of each class against all others, with labels ``(n, ...)`` or ``(n,
    ..., 1)``, or one-hot rows; predictions ``(n, ..., 1)`` or ``(n,)`` are scores of class 1, whose targets are 1, and
    0 or -1 for the other. A class that no label or every label has has no area: NaN. The same as scikit-learn's
    ``roc_auc_score`` with ``multi_class = "ovr"``.  Hanley and McNeil, The Meaning and Use of the Area under a ROC
    Curve, 1982.

    Raises SigmaDataError if targets are not classes.

    Args:
        average: Over classes: ``macro`` is the mean over those that have an area, ``each`` a list with one for each.
        ignore_index: Label that does not count, such as that of padding; not for targets that are one-hot.
    """

    better: ClassVar[str] = "higher"
    keeps_rows: ClassVar[bool] = True

    average: str = field(default="macro", validator=in_(AVERAGES))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return scores and label: ``(n, ..., classes + 1)``; the label is -1 if ignored, and NaN if it is no class."""
        scores = log_odds(prediction)
        scores = f.expand(scores, 1) if len(scores.shape) == 1 else scores
        true = truth("auc", scores, targets, self.ignore_index)
        labels = f.where(true.known, f.cast(true.index, scores.dtype), nan)
        return f.concat(scores, f.expand(f.where(true.counted, labels, -1.0), -1), axis=-1)

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the mean of the areas, or a list with that of each class."""
        places = totals.reshape(-1, totals.shape[-1])
        check_classes("auc", bool(np.isnan(places[:, -1]).any()))
        places = places[places[:, -1] >= 0]
        scores, labels = places[:, :-1], places[:, -1]
        single = scores.shape[1] == 1
        areas = [area(column, labels == (1 if single else i)) for i, column in enumerate(scores.T)]
        if self.average == "each":
            return areas
        broken = bool(np.isnan(scores).any())  # else scores that are no numbers would pass as classes without an area
        numbers = [value for value in areas if value == value]
        return float("nan") if broken or not numbers else float(np.mean(numbers))


def area(scores: np.ndarray, own: np.ndarray) -> float:
    """Return the share of pairs of a row of the class and another in which the former scores higher; ties are halves.

    It is NaN without such pairs, and if a score is NaN.
    """
    pairs = int(own.sum()) * int((~own).sum())
    if not pairs or np.isnan(scores).any():
        return float("nan")
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    ours = np.bincount(place, own, len(count))
    others = count - ours
    below = np.cumsum(others) - others
    return float(np.sum(ours * (below + others / 2)) / pairs)


@define(eq=False, kw_only=True)
class AUC(Evaluate):
    """Publish ``<on>.loss`` and ``<on>.auc``, or ``<on>.auc_each``.

    Args:
        average: Over classes: the mean over those that have an area, or a list with one for each.
        ignore_index: Label that does not count, such as that of padding.
    """

    average: str = field(default="macro", validator=in_(AVERAGES))
    ignore_index: int | None = field(default=None, validator=optional(whole))

    def named_metrics(self) -> Mapping[str, Metric]:
        """Return the area and the configured metrics."""
        name = "auc" if self.average == "macro" else "auc_each"
        return {name: AUCMetric(self.average, self.ignore_index), **self.metrics}
