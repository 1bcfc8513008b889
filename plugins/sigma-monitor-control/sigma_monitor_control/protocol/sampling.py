"""Draw rows for a map of the data, and read what it places and shows: values, labels, losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from attrs import evolve, frozen

from sigma_kernel.contracts import View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control.protocol.data import RowNames, compute_losses, sections
from sigma_monitor_control.protocol.values import to_json

PIECE = 500  # rows that are read, or predicted, at once
BYTES = 256 << 20  # of the values of all rows; of wide layers, fewer rows are on the map
INPUTS, PLANE = "inputs", "plane"  # what a map is of, unless a layer: the inputs, or the two numbers that they are
UNKNOWN = -1  # the class of a row without one, and whether an unknown answer is right
MOST_CLASSES = 40  # that a map tells apart


@frozen(eq=False)
class DrawnRows:
    """Rows of splits, in the order of the splits and of their numbers: ``split`` is the place of a row's split."""

    splits: Sequence[str]
    split: np.ndarray
    rows: np.ndarray

    def parts(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each split with the numbers of its rows."""
        for place, name in enumerate(self.splits):
            yield name, self.rows[self.split == place]

    def pieces(self) -> Iterator[tuple[str, list[int]]]:
        """Yield a split and numbers of some of its rows, until all have come."""
        for name, rows in self.parts():
            for start in range(0, len(rows), PIECE):
                yield name, rows[start : start + PIECE].tolist()

    def thin(self, most: int) -> DrawnRows:
        """Return at most so many of the rows, evenly spaced."""
        if len(self.rows) <= most:
            return self
        places = np.linspace(0, len(self.rows) - 1, most).astype(int)
        return evolve(self, split=self.split[places], rows=self.rows[places])


def draw_sample(sizes: Mapping[str, int], count: int, seed: int) -> DrawnRows:
    """Return at most ``count`` rows of splits of these sizes, each as probable: the same for the same seed."""
    starts = np.cumsum([0, *sizes.values()])
    draw = np.random.Generator(np.random.Philox(seed))
    drawn = np.sort(draw.choice(starts[-1], min(count, starts[-1]), replace=False))
    split = np.searchsorted(starts, drawn, side="right") - 1
    return DrawnRows([*sizes], split, drawn - starts[split])


# -- values ------------------------------------------------------------------------------------------------------------
def plane_of(view: View, trainer: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs, by section, if they are two numbers; raise SigmaConfigError for others."""
    shapes = sections(view, trainer)
    if sum(map(prod, shapes.values())) != 2:
        raise SigmaConfigError(
            f"plane: needs a network of two input numbers (this has {', '.join(map(str, shapes.values()))}). Map the "
            "inputs, or a layer."
        )
    return shapes


def read_values(view: View, trainer: str, of: str, sample: DrawnRows) -> tuple[DrawnRows, np.ndarray]:
    """Return what places rows on a map, float32 ``(n, numbers)``, and these rows: fewer if rows are too wide.

    Values that are not finite are 0.
    """
    name, numbers = next(sample.pieces())
    width = _row_values(view, trainer, of, name, numbers[:1]).shape[1]
    fitting = sample.thin(max(3, BYTES // (4 * max(1, width))))
    pieces = [_row_values(view, trainer, of, name, numbers) for name, numbers in fitting.pieces()]
    return fitting, np.nan_to_num(np.concatenate(pieces), nan=0.0, posinf=0.0, neginf=0.0)


def _row_values(view: View, trainer: str, of: str, split: str, numbers: list[int]) -> np.ndarray:
    """Return the inputs of rows as the network reads them, a layer's output, or the two numbers of a plane."""
    shapes, own = sections(view, trainer), view.trainer(trainer)
    arrays = own.rows(split, numbers, prepared=of == INPUTS)
    given = {name: arrays[name] for name in shapes if name in arrays}
    if of not in (INPUTS, PLANE):
        outputs = own.activations(given)
        if of not in outputs:
            raise SigmaConfigError(f"map: {of!r} is a cost, without outputs. Choose a layer before it.")
        given = {of: outputs[of]}
    flat = [x.reshape(len(numbers), -1) for x in map(np.asarray, given.values()) if x.dtype.kind in "biuf"]
    if not flat:
        raise SigmaConfigError("map: the inputs are no numbers. Choose a layer.")
    return np.concatenate([x.astype(np.float32) for x in flat], axis=1)


# -- what a map shows --------------------------------------------------------------------------------------------------
def read_labels(view: View, trainer: str, sample: DrawnRows) -> tuple[np.ndarray, list[Any]]:
    """Return the label of each row, changed ones included, and the classes: indices of these, or else numbers.

    A row without a class has the index -1, and one without a number is NaN.
    """
    labels = list[Any]()
    for split, numbers in sample.pieces():
        names, arrays = RowNames(view, trainer, split), view.trainer(trainer).rows(split, numbers)
        for i, row in enumerate(numbers):
            labels.append(names.label(row, {name: values[i] for name, values in arrays.items()}))
    return index_labels(labels, to_json(view.trainer(trainer).classes()))


def index_labels(labels: Sequence[Any], classes: Sequence[Any]) -> tuple[np.ndarray, list[Any]]:
    """Return labels as indices of classes: those given, or the labels if there are few that are not fractions."""
    single = [label for label in labels if isinstance(label, bool | int | str)]
    if not classes and len(single) == len(labels) and len({*single}) <= MOST_CLASSES:
        classes = sorted({*single}, key=lambda label: (isinstance(label, str), label))
    if classes:
        index = {str(name): place for place, name in enumerate(classes)}
        return np.array([index.get(str(label), UNKNOWN) for label in labels], np.float64), [*classes]
    return np.array([x if isinstance(x, int | float) else np.nan for x in labels], np.float64), []


def read_losses(view: View, trainer: str, sample: DrawnRows) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each row, NaN if it is excluded, and whether its class is predicted: 1, 0, or -1."""
    losses, right = np.full(len(sample.rows), np.nan), np.full(len(sample.rows), UNKNOWN, np.int8)
    for place, split in enumerate(sample.splits):
        measured, mine = compute_losses(view, trainer, split, again=True).losses, np.flatnonzero(sample.split == place)
        there = mine[np.isin(sample.rows[mine], measured.rows)]
        at = np.searchsorted(measured.rows, sample.rows[there])
        losses[there], right[there] = measured.losses[at], measured.correct[at]
    return losses, right


def find_excluded(view: View, trainer: str, sample: DrawnRows) -> np.ndarray:
    """Return which rows are excluded."""
    edits = view.trainer(trainer).edits()
    parts = [np.isin(rows, edits.get(split, {}).get("excluded", [])) for split, rows in sample.parts()]
    return np.concatenate(parts)
