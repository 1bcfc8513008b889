"""Curves: measured values over iterations, epochs and seconds, on all branches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any

import numpy as np
from attrs import define, field, fields, frozen

from sigma_kernel.arrays import read_only
from sigma_kernel.graph.reprs import brief

AXES = {"iteration": "iterations", "epoch": "epochs", "second": "seconds"}  # and the fields of a curve


@frozen(eq=False, repr=False)
class Curve:
    """A measured value over time: arrays of equal length, which cannot be written.

    ``values`` are those at each point, ``low`` and ``high`` the least and the greatest since the previous one.
    ``epochs`` are whole epochs completed by then.  In a curve that was read, values that were not finite are NaN.
    """

    iterations: np.ndarray = field(converter=read_only)
    epochs: np.ndarray = field(converter=read_only)
    seconds: np.ndarray = field(converter=read_only)
    values: np.ndarray = field(converter=read_only)
    low: np.ndarray = field(converter=read_only)
    high: np.ndarray = field(converter=read_only)

    def __repr__(self) -> str:
        ends = f", {self.values[0]:.4g} to {self.values[-1]:.4g}" if len(self.values) else ""
        return f"Curve({len(self.values)} points{ends})"


FIELDS = [one.name for one in fields(Curve)]


@frozen(eq=False)
class Stretch:
    """Consecutive values that were measured on one branch."""

    branch: int
    curve: Curve


@frozen
class Branch:
    """A branch of the history: its number, its parent's, and the iteration at which they separate."""

    number: int
    parent: int | None = None
    start: int = 0


def limits(branches: Sequence[Branch]) -> list[float]:
    """Return for each branch, the present one last, the iteration up to which it led to the present state."""
    return [*accumulate((branch.start for branch in reversed(branches[1:])), min, initial=inf)][::-1]


@frozen(eq=False)
class BranchedCurves:
    """The history of a trainer: its branches, and the curve of each name on each branch, by the branch's index.

    A reset begins another branch with the same number.
    """

    branches: Sequence[Branch]
    lines: Mapping[str, Mapping[int, Curve]]

    __repr__ = brief

    def stretches(self, name: str) -> list[Stretch]:
        """Return the values of a name on all branches; none for an unknown name."""
        return [Stretch(self.branches[at].number, curve) for at, curve in self.lines.get(name, {}).items()]

    def curves(self) -> dict[str, Curve]:
        """Return the values that led to the present state, by name."""
        ends = limits(self.branches)
        return {
            name: concatenate_curves([part(curve, slice(_reach(curve, ends[at]))) for at, curve in own.items()])
            for name, own in self.lines.items()
        }

    def table(self) -> dict[str, np.ndarray]:
        """Return the columns of :func:`table` for all branches, one after the other, after a column ``branch``."""
        tables = []
        for at, branch in enumerate(self.branches):
            own = table({name: curves[at] if at in curves else to_curve([]) for name, curves in self.lines.items()})
            tables.append({"branch": np.full(len(own["iteration"]), branch.number), **own})
        names = ("branch", *AXES, *self.lines)
        return {name: np.concatenate([t[name] for t in tables]) if tables else np.zeros(0) for name in names}

    def abandoned_stretches(self, joined: bool = True) -> dict[str, list[Stretch]]:
        """Return the values on branches after these were left, by name; ``joined`` with the last one before that."""
        ends, stretches = limits(self.branches), dict[str, list[Stretch]]()
        for name, own in self.lines.items():
            for at, curve in own.items():
                if (reach := _reach(curve, ends[at])) < len(curve.values):
                    rest = part(curve, slice(max(0, reach - joined), None))
                    stretches.setdefault(name, []).append(Stretch(self.branches[at].number, rest))
        return stretches


def to_curve(points: Sequence[tuple[float, ...]]) -> Curve:
    """Return points as a curve: of each iteration, epoch and second, value, lowest and highest."""
    iterations, epochs, *others = np.array(points).reshape(-1, 6).T
    return Curve(iterations.astype(np.int64), epochs.astype(np.int64), *others)


def part(curve: Curve, places: slice) -> Curve:
    """Return the points of a curve at some places."""
    return Curve(*(getattr(curve, name)[places] for name in FIELDS))


def _reach(curve: Curve, end: float) -> int:
    """Return how many points of a curve are not later than an iteration."""
    return int(np.searchsorted(curve.iterations, end, "right"))


def concatenate_curves(curves: Sequence[Curve]) -> Curve:
    """Return curves one after the other; an empty one for none."""
    columns = ([getattr(curve, name) for curve in curves] for name in FIELDS)
    return Curve(*map(np.concatenate, columns)) if curves else to_curve([])


def table(curves: Mapping[str, Curve]) -> dict[str, np.ndarray]:
    """Return columns with a row per iteration: iteration, epoch, second, and each curve, NaN where it has no value."""
    every = concatenate_curves([*curves.values()])
    iterations, first = np.unique(every.iterations, return_index=True)
    columns = {"iteration": iterations, "epoch": every.epochs[first], "second": every.seconds[first]}
    for name, curve in curves.items():
        columns[name] = np.full(len(iterations), np.nan)
        columns[name][np.searchsorted(iterations, curve.iterations)] = curve.values
    return columns


def downsample(curve: Curve, most: int) -> Curve:
    """Return a curve of at most ``most`` points: neighbours are joined to their last one, with the least and greatest.

    Values that are not finite are left out of ``low`` and ``high``, unless there are no others.
    """
    count = len(curve.values)
    return curve if count <= most else _merge_points(curve, np.arange(1, most + 1) * count // most - 1)


def evenly_thinned(curve: Curve, most: int) -> Curve:
    """Return a curve of at most ``most`` points, evenly over its iterations, however densely each part was measured."""
    if len(curve.values) <= most:
        return curve
    since = curve.iterations - curve.iterations[0]
    return _merge_points(curve, np.flatnonzero(np.diff(since * most // (since[-1] + 1), append=most)))


def _merge_points(curve: Curve, ends: np.ndarray) -> Curve:
    """Return a curve whose points are those at some places, joined with those between them."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    low, high = np.fmin.reduceat(curve.low, starts), np.fmax.reduceat(curve.high, starts)
    return Curve(curve.iterations[ends], curve.epochs[ends], curve.seconds[ends], curve.values[ends], low, high)


# -- rows of metrics ---------------------------------------------------------------------------------------------------
def join_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, BranchedCurves]:
    """Return the curves of each trainer, from the rows of metrics that a run has stored, in their order.

    After a resume, rows start again from an earlier iteration: they replace those from there on.  So do rows after a
    rewind where rows do not name their branch.
    """
    trainers: dict[str, _Rows] = {}
    for row in rows:
        trainers.setdefault(row["trainer"], _Rows()).add(row)
    return {name: own.curves() for name, own in trainers.items()}


@define(eq=False, repr=False)
class _Rows:
    """The rows of one trainer so far."""

    branches: list[Branch] = field(factory=list)
    points: list[dict[str, list[tuple[float, ...]]]] = field(factory=list)  # of each branch, as in a curve
    about: tuple[Any, ...] = ()  # branch, session and start of the last row
    latest: float = 0  # its iteration

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        at = row["iteration"], row["epoch"], row["seconds"]
        about = row.get("branch", 0), row.get("session"), row.get("start", 0)
        if about != self.about or at[0] < self.latest:
            self._turn(about, at[0])
        self.about, self.latest = about, at[0]
        for name, value in row["values"].items():
            points = self.points[-1].setdefault(name, [])
            _cut(points, at[0])
            points.append((*at, *(np.nan if value[key] is None else value[key] for key in ("last", "low", "high"))))

    def _turn(self, about: tuple[Any, ...], iteration: float) -> None:
        """Begin another branch, or continue after a resume from an earlier iteration: later rows are replaced."""
        number, session, start = about
        indices = [n for n, branch in enumerate(self.branches) if branch.number == number]
        if indices and (session is None or session != self.about[1]):
            del self.branches[indices[-1] + 1 :], self.points[indices[-1] + 1 :]
            for points in self.points[-1].values():
                _cut(points, (iteration if session is None else start) + 1)
        else:
            parent = self.branches[-1].number if self.branches else None
            self.branches.append(Branch(number, parent, start if self.branches else 0))
            self.points.append({})

    def curves(self) -> BranchedCurves:
        """Return the curves of all branches."""
        lines: dict[str, dict[int, Curve]] = {}
        for at, own in enumerate(self.points):
            for name, points in own.items():
                lines.setdefault(name, {})[at] = to_curve(points)
        return BranchedCurves(self.branches, lines)


def _cut(points: list[tuple[float, ...]], iteration: float) -> None:
    """Remove the points from an iteration on."""
    while points and points[-1][0] >= iteration:
        points.pop()
