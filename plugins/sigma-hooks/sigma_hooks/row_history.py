"""Record what becomes of each row over the epochs: its losses, when it is learned, how often it is forgotten."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, RowHistory, RowLosses
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import and_, ge, le, whole

TYPES = {  # of the arrays in the memory, one number a row
    "rows": "<u4",
    "total": "<f8",  # the sum of all losses
    "count": "<u4",  # how often the row was measured
    "correct": "<i1",
    "forgotten": "<u4",
    "learned": "<i4",
}
BLANK = {"correct": -1, "learned": -1}  # of a row that was not measured yet; else 0
NOTHING = dict.fromkeys(TYPES, "")  # the columns of no rows
LOSS = "<f2"  # beyond 65,504 it is infinite


@define(eq=False, kw_only=True)
class RecordRows(Hook):
    """Record the loss of each row of the split ``on``, and whether its class is predicted, at each firing.

    Each firing measures all rows of the split, without training on them. ``trainer.row_history(on)``, the dashboard and
    ``sigma data rows`` show what became of them: rows that are probably mislabelled, that were learned late, or
    forgotten (Toneva et al., An Empirical Study of Example Forgetting during Deep Neural Network Learning, 2019).
    ``<on>.row_history.forgotten`` is the number of rows that have been forgotten since the last firing.

    The record is a part of the state: it is saved, resumed, rewound and replayed with the run. It takes 33 bytes a row,
    and 3 more for each of the ``points``; each state that is kept for rewind takes the 33 bytes again. Of a split with
    more rows than ``most``, so many are drawn by ``seed``. Rows need numbers that stay the same: those of a generator
    have none.

    Args:
        on: Split of the data.
        points: Losses of a row that are kept at most; of more firings, every second, fourth ... and the last.
        most: Number of rows to record at most.
        seed: Seed of the draw of rows.
    """

    every: TimeStep = every(1, "epoch")
    on: str = "training"
    points: int = field(default=32, validator=and_(whole, ge(2), le(4096)))
    most: int = field(default=100_000, validator=and_(whole, ge(1)))
    seed: int = field(default=0, validator=and_(whole, ge(0)))

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError where the record would not be a part of the state."""
        if self.scope != "global" or self.background:
            what = "background = false" if self.background else "scope = 'global'"
            raise SigmaConfigError(f"row_history: records in the training thread, as a part of the state. Set {what}.")

    @property
    def splits(self) -> Sequence[str]:
        """Return the split to measure on."""
        return [self.on]

    @property
    def writes(self) -> Sequence[str]:
        """Return the only address."""
        return [f"{self.on}.row_history.forgotten"]

    def fire(self, context: HookContext) -> None:
        """Measure the loss of every row, and record it."""
        losses, memory, epoch = context.losses(self.on), context.memory, context.moment.epoch
        rows, kept = self._select_rows(memory, losses.rows), memory.get("kept", [])
        before, past = extend_record(read_columns(memory.get("columns", NOTHING)), kept, rows)
        columns, seen = add_losses(before, losses, epoch), memory.get("seen", 0) + 1
        last = [seen, epoch, encode(place_losses(rows, losses), LOSS)]
        stride, kept = thin_points([*past, last], memory.get("stride", 1), self.points)
        memory.update(on=self.on, seen=seen, stride=stride, kept=kept, columns=write_columns(columns))
        forgotten = int(columns["forgotten"].sum()) - int(before["forgotten"].sum())
        context.publish(f"{self.on}.row_history.forgotten", forgotten)

    def _select_rows(self, memory: Mapping[str, Any], rows: np.ndarray) -> np.ndarray:
        """Return the rows to record: those so far, and new ones, excluded before, unless they are too many."""
        earlier = read_columns(memory["columns"])["rows"] if memory else rows[:0]
        every_one = np.union1d(earlier, rows)
        if len(every_one) <= self.most or len(earlier):
            return every_one if len(every_one) <= self.most else earlier
        draw = np.random.Generator(np.random.Philox(self.seed))
        return np.sort(draw.choice(every_one, self.most, replace=False))

    def read_history(self, memory: Mapping[str, Any]) -> RowHistory | None:
        """Return the record in the memory of a hook; None if that is another hook's, or holds nothing yet."""
        if not {"on", "kept", "columns"} <= memory.keys():
            return None
        columns, kept = read_columns(memory["columns"]), memory["kept"]
        with np.errstate(divide="ignore", invalid="ignore"):  # of rows that were never measured
            mean = columns["total"] / columns["count"]
        return RowHistory(
            rows=columns["rows"].astype(np.int64),
            epochs=np.array([epoch for _, epoch, _ in kept], np.int64),
            losses=np.stack([decode(losses, LOSS) for _, _, losses in kept], axis=1).astype(np.float32),
            mean=mean,
            correct=columns["correct"],
            forgotten=columns["forgotten"].astype(np.int64),
            learned=columns["learned"].astype(np.int64),
        )


# -- the record --------------------------------------------------------------------------------------------------------
def extend_record(
    columns: Mapping[str, np.ndarray], kept: Sequence[Any], rows: np.ndarray
) -> tuple[Mapping[str, np.ndarray], Sequence[Any]]:
    """Return columns and kept losses for more rows, in the order of their numbers; of new ones they are blank."""
    if len(rows) == len(columns["rows"]):
        return columns, kept
    places = np.searchsorted(rows, columns["rows"])

    def spread(values: np.ndarray, blank: float) -> np.ndarray:
        wider = np.full(len(rows), blank, values.dtype)
        wider[places] = values
        return wider

    wide = {name: spread(values, BLANK.get(name, 0)) for name, values in columns.items()}
    losses = [[seen, epoch, encode(spread(decode(text, LOSS), np.nan), LOSS)] for seen, epoch, text in kept]
    return {**wide, "rows": rows}, losses


def add_losses(columns: Mapping[str, np.ndarray], losses: RowLosses, epoch: int) -> dict[str, np.ndarray]:
    """Return the columns after one more measurement; rows that were not measured keep theirs.

    A row that is wrong and was correct is forgotten once more; one that is correct and was not is learned now.
    """
    there = np.isin(columns["rows"], losses.rows)
    at = np.searchsorted(losses.rows, columns["rows"][there])
    was, now = columns["correct"], columns["correct"].copy()
    now[there] = losses.correct[at]
    added = np.zeros(len(now))
    added[there] = losses.losses[at]
    return {
        "rows": columns["rows"],
        "total": columns["total"] + added,
        "count": columns["count"] + there,
        "correct": now,
        "forgotten": columns["forgotten"] + ((was == 1) & (now == 0)),
        "learned": np.where(now != 1, -1, np.where(was == 1, columns["learned"], epoch)),
    }


def thin_points(kept: Sequence[Any], stride: int, most: int) -> tuple[int, list[Any]]:
    """Return how many firings lie between kept ones, and those, whose numbers come first: at most so many."""
    while len(thinned := [*(point for point in kept[:-1] if point[0] % stride == 0), kept[-1]]) > most:
        stride *= 2
    return stride, thinned


def place_losses(rows: np.ndarray, losses: RowLosses) -> np.ndarray:
    """Return the losses of recorded rows; NaN of those that were not measured."""
    there = np.isin(rows, losses.rows)
    placed = np.full(len(rows), np.nan)
    placed[there] = losses.losses[np.searchsorted(losses.rows, rows[there])]
    return placed


# -- as JSON -----------------------------------------------------------------------------------------------------------
def encode(values: np.ndarray, type_: str) -> str:
    """Return an array as text."""
    with np.errstate(over="ignore"):
        return b64encode(values.astype(type_).tobytes()).decode()


def decode(text: str, type_: str) -> np.ndarray:
    """Return an array from its text."""
    return np.frombuffer(b64decode(text), type_)


def write_columns(columns: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return columns as text."""
    return {name: encode(columns[name], type_) for name, type_ in TYPES.items()}


def read_columns(texts: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Return columns from their text."""
    return {name: decode(texts[name], type_) for name, type_ in TYPES.items()}
