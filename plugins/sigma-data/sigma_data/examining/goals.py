"""Targets of examined rows: classes, numbers, or several labels a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sigma_data.examining.rows import hash_matrix
from sigma_kernel import Dataset

CLASSES = 4  # rows for each distinct whole number, from which on these are classes


def describe_targets(values: np.ndarray | None, split: Dataset) -> dict[str, Any]:
    """Return targets as fields of examined rows; ``split`` knows the names of their classes."""
    if values is None:
        return {}
    goal, labels = _read_goal(values, split.class_names("targets"))
    indicators = _read_indicators(values)
    if indicators is not None:
        labels = getattr(split, "learned", {}).get("targets", {}).get("targets", ())
    return {"goal": goal, "labels": labels, "indicators": indicators, "target_keys": hash_matrix(values)}


def _read_goal(values: np.ndarray, labels: Sequence[Any]) -> tuple[np.ndarray | None, Sequence[Any]]:
    """Return targets as class indices or as numbers, one for each row, with the labels; None for others."""
    if values.size != len(values):
        return None, ()
    flat = values.reshape(-1)
    whole = values.ndim == 1 and flat.dtype.kind in "iu"
    if whole and (len(labels) or len(np.unique(flat)) * CLASSES <= len(flat)):
        return flat.astype(np.int64), labels
    return flat.astype(np.float64), ()


def _read_indicators(values: np.ndarray) -> np.ndarray | None:
    """Return targets as labels, several a row, that it has or not; None if they are others."""
    if values.ndim != 2 or values.shape[1] < 2 or not ((values == 0) | (values == 1)).all():
        return None
    return np.asarray(values, bool)
