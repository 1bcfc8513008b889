"""Requests about what became of rows over the epochs: those learned late, forgotten, or probably mislabelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sigma_kernel.contracts import RowHistory, View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.protocol.data import MOST_ROWS, check_rows
from sigma_monitor_control.protocol.reading import Later, select_trainer
from sigma_monitor_control.protocol.values import column, to_json


def row_history(
    view: View,
    split: str = "training",
    order: str = "mislabelled",
    start: int = 0,
    count: int = 50,
    rows: list[int] | None = None,
    trainer: str | None = None,
) -> Later:
    """Return rows of a split in an order of their history, or numbered ones, with their losses at the kept epochs."""
    name = select_trainer(view, trainer)
    if start < 0 or not 0 < count <= MOST_ROWS or len(rows or ()) > MOST_ROWS:
        raise SigmaConfigError(f"row_history: 'start' is from 0 on, 'count' 1 to {MOST_ROWS}, and 'rows' no more.")
    if rows is not None:
        check_rows(view, name, split, rows)
    return Later(lambda: _row_history(view.trainer(name).row_history(split), order, slice(start, start + count), rows))


def _row_history(history: RowHistory, order: str, part: slice, rows: list[int] | None) -> dict[str, Any]:
    places = history.order(order) if rows is None else np.flatnonzero(np.isin(history.rows, rows))
    about = {"epochs": history.epochs.tolist(), "classes": bool((history.correct >= 0).any()), "total": len(places)}
    return {**about, "rows": [*_describe(history, places[part] if rows is None else places)]}


def _describe(history: RowHistory, places: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield rows; ``learned`` is None for one that is wrong now, ``correct`` if its class is not predicted."""
    for place in places.tolist():
        learned, correct = int(history.learned[place]), int(history.correct[place])
        yield {
            "row": int(history.rows[place]),
            "losses": column(history.losses[place]),
            "mean": to_json(history.mean[place]),
            "forgotten": int(history.forgotten[place]),
            "learned": None if learned < 0 else learned,
            "correct": None if correct < 0 else bool(correct),
        }
