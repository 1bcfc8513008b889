"""Evaluate the area under the ROC curve of a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from attrs import define, field, frozen

from sigma_hooks.classes import flat_labels
from sigma_hooks.evaluate import Evaluate
from sigma_kernel import functions as f
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_kernel.settings import in_

AVERAGES = ("macro", "each")


@frozen
class AUCMetric(Metric):
    """Area under the ROC curve: how often a sample of a class has a higher score for it than one of another class.

    It is exact over all rows, which are kept until the end: a score of each, and the label. Ties count one half.
    Predictions ``(n, classes)`` are scores of each class against all others, with labels ``(n,)`` or ``(n, 1)``, or
    one-hot rows; predictions ``(n,)`` or ``(n, 1)`` are scores of class 1, with targets above one half for it. A class
    that no row or every row has has no area: NaN. The same as scikit-learn's ``roc_auc_score`` with ``multi_class =
    "ovr"``.  Hanley and McNeil, The Meaning and Use of the Area under a ROC Curve, 1982.

    Args:
        average: Over classes: ``macro`` is the mean over those that have an area, ``each`` a list with one for each.
    """

    keeps_rows: ClassVar[bool] = True

    average: str = field(default="macro", validator=in_(AVERAGES))

    def totals(self, prediction: Node, targets: Node) -> Node:
        """Return the scores and the label of each row: ``(n, classes + 1)``."""
        scores = f.reshape(prediction, (-1, 1)) if len(prediction.shape) == 1 else prediction
        if len(scores.shape) != 2:
            raise SigmaNetworkError(f"auc: predictions have shape {scores.shape}; expected (n, classes) or (n, 1).")
        if scores.shape[1] == 1:
            labels = f.greater(f.cast(f.reshape(targets, scores.shape), scores.dtype), 0.5)
        elif targets.shape == scores.shape:
            labels = f.argmax(targets, axis=1, keepdims=True)
        else:
            labels = f.expand(flat_labels("auc", scores, targets), 1)
        return f.concat(scores, f.cast(labels, scores.dtype), axis=1)

    def value(self, totals: np.ndarray, rows: int) -> Any:
        """Return the mean of the areas, or a list with that of each class."""
        scores, labels = totals[:, :-1], totals[:, -1]
        single = scores.shape[1] == 1
        areas = [area(column, labels == (1 if single else i)) for i, column in enumerate(scores.T)]
        if self.average == "each":
            return areas
        broken = bool(np.isnan(scores).any())  # else scores that are no numbers would pass as classes without an area
        known = [one for one in areas if one == one]
        return float("nan") if broken or not known else float(np.mean(known))


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
    """

    average: str = field(default="macro", validator=in_(AVERAGES))

    def measured(self) -> Mapping[str, Metric]:
        """Return the area and the configured metrics."""
        return {"auc" if self.average == "macro" else "auc_each": AUCMetric(self.average), **self.metrics}
