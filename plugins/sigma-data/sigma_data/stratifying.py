"""Divide rows with several labels each, so that every part has its share of every label."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def divide_labels(labels: np.ndarray, counts: Mapping[str, int], order: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows of each part, as many as ``counts`` says, with about its share of each label.

    ``labels`` are (rows, labels), true where a row has a label; ``order`` is the order in which rows are drawn. The
    rarest label is divided first, each of its rows going to the part that lacks most of it (Sechidis, Tsoumakas and
    Vlahavas, 2011: On the stratification of multi-label data); rows without a label fill what is left.
    """
    room = np.array([*counts.values()])
    wanted = np.outer(room / max(1, room.sum()), labels.sum(axis=0))
    remaining, homes = labels.sum(axis=0), np.full(len(labels), -1)
    while remaining.any():
        rarest = int(np.argmin(np.where(remaining > 0, remaining, len(labels) + 1)))
        rows = order[(homes[order] < 0) & labels[order, rarest]]
        for row in rows.tolist():
            lacking = np.where(room > 0, wanted[:, rarest], -np.inf)
            part = int(np.argmax(np.where(lacking >= lacking.max(), room, -1)))
            homes[row] = part
            room[part] -= 1
            wanted[part] -= labels[row]
        remaining = remaining - labels[rows].sum(axis=0)
    rest = order[homes[order] < 0]
    homes[rest] = np.repeat(np.arange(len(room)), room)
    return {name: order[homes[order] == number] for number, name in enumerate(counts) if name}
