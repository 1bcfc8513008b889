"""Curves: measured values over iterations, epochs and seconds, on all branches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf, isfinite, nan
from typing import Any, Generic, TypeVar

import numpy as np
from attrs import define, field, fields, frozen

from sigma_kernel.arrays import read_only
from sigma_kernel.graph.reprs import brief
from sigma_kernel.settings import ge, in_

T = TypeVar("T")

AXES = {"iteration": "iterations", "epoch": "epochs", "second": "seconds"}  # and the fields of a curve


@frozen(eq=False, repr=False)
class Curve:
    """A measured value over time: arrays of equal length, which cannot be written.

    ``values`` are those at each point, ``low`` and ``high`` the least and the greatest since the previous one,
    ``means`` and ``counts`` the means and the numbers of those since then that were finite.  ``epochs`` are whole
    epochs completed by then.  In a curve that was read, values that were not finite are NaN.
    """

    iterations: np.ndarray = field(converter=read_only)
    epochs: np.ndarray = field(converter=read_only)
    seconds: np.ndarray = field(converter=read_only)
    values: np.ndarray = field(converter=read_only)
    low: np.ndarray = field(converter=read_only)
    high: np.ndarray = field(converter=read_only)
    means: np.ndarray = field(converter=read_only)
    counts: np.ndarray = field(converter=read_only)

    @means.default
    def _values(self) -> np.ndarray:
        return self.values

    @counts.default
    def _finite(self) -> np.ndarray:
        return np.array(np.isfinite(self.values), np.int64)

    def __repr__(self) -> str:
        ends = f", {self.values[0]:.4g} to {self.values[-1]:.4g}" if len(self.values) else ""
        return f"Curve({len(self.values)} points{ends})"


FIELDS = [one.name for one in fields(Curve)]
WHOLE = [at for at, name in enumerate(FIELDS) if name in ("iterations", "epochs", "counts")]  # fields of whole numbers


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

    A reset begins another branch with the same number.  ``replaced`` counts how often a resume has replaced points.
    """

    branches: Sequence[Branch]
    lines: Mapping[str, Mapping[int, Curve]]
    replaced: int = 0

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
    """Return points as a curve: of each iteration, epoch and second, value, lowest and highest, mean and number."""
    columns = [*np.array(points).reshape(-1, 8).T]
    return Curve(*(column.astype(np.int64) if at in WHOLE else column for at, column in enumerate(columns)))


def part(curve: Curve, places: slice | np.ndarray) -> Curve:
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
    counts = np.add.reduceat(curve.counts, starts)
    shares = curve.counts / np.maximum(counts, 1).repeat(np.diff([*starts, len(curve.counts)]))
    means = np.add.reduceat(np.where(curve.counts, curve.means, 0) * shares, starts)  # the sum itself may overflow
    means[counts == 0] = np.nan
    last = (getattr(curve, name)[ends] for name in FIELDS[:4])
    return Curve(*[*last, low, high, means, counts])


# -- what is asked for -------------------------------------------------------------------------------------------------
@frozen
class Window:
    """Which part of curves is asked for: what is larger is answered with fewer points, never refused.

    Args:
        names: Those that are wanted; None for all.
        span: The first and the last place on the axis, with one more point at each side; None for all.
        over: The axis: ``iteration``, ``epoch`` or ``second``.
        most: Points of a curve on all branches together, but at least one of each: of more, neighbours are joined.
    """

    names: Collection[str] | None = None
    span: tuple[float, float] | None = None
    over: str = field(default="iteration", validator=in_(tuple(AXES)))
    most: int = field(default=2**16, validator=ge(1))

    __repr__ = brief

    def cut(self, found: BranchedCurves) -> BranchedCurves:
        """Return this part of the curves of a trainer."""
        wanted = [name for name in found.lines if self.names is None or name in self.names]
        lines = {name: self._cut_lines(found.lines[name]) for name in wanted}
        return BranchedCurves(found.branches, lines, found.replaced)

    def _cut_lines(self, lines: Mapping[int, Curve]) -> dict[int, Curve]:
        inside = {at: part(curve, self._places(getattr(curve, AXES[self.over]))) for at, curve in lines.items()}
        share = self.most / max(1, sum(len(curve.values) for curve in inside.values()))
        return {at: downsample(curve, max(1, int(len(curve.values) * share))) for at, curve in inside.items()}

    def _places(self, axis: np.ndarray) -> slice:
        if self.span is None:
            return slice(None)
        first, last = np.searchsorted(axis, self.span[0], "left"), np.searchsorted(axis, self.span[1], "right")
        return slice(max(0, int(first) - 1), int(last) + 1)


def begin_cursor(replaced: int) -> int:
    """Return the cursor before the first point, given how often points were replaced: older cursors are below it."""
    return replaced << 32


# -- rows of metrics ---------------------------------------------------------------------------------------------------
NUMBERS = ("last", "low", "high", "mean", "count")  # of a value in a row
Place = tuple[int, int | None, int]  # of a row: branch, session (which older runs do not name) and start


def place_of(row: Mapping[str, Any]) -> Place:
    """Return where a row was measured."""
    return row.get("branch", 0), row.get("session"), row.get("start", 0)


@define(eq=False, repr=False)
class Timeline(Generic[T]):
    """The branches of a trainer, and the stretches of rows on each, as rows follow one another in a stored run.

    After a resume, rows start again from an earlier iteration: they replace those from there on.  So do rows after a
    rewind where rows do not name their branch.
    """

    branches: list[Branch] = field(factory=list)
    stretches: list[list[tuple[T, float]]] = field(factory=list)  # of each branch, each with its last iteration
    replaced: int = field(default=0, init=False)  # how often
    _place: Place | None = field(default=None, init=False)  # of the latest stretch

    def add(self, place: Place, first: float, stretch: T, back: bool) -> None:
        """Add a stretch of rows from an iteration on, which may go ``back`` before the latest row."""
        number, session, start = place
        indices = [at for at, branch in enumerate(self.branches) if branch.number == number]
        if place == self._place and not back:
            self.stretches[-1].append((stretch, inf))
        elif self._place is not None and indices and (session is None or session != self._place[1]):
            del self.branches[indices[-1] + 1 :], self.stretches[indices[-1] + 1 :]
            end = first if session is None else start
            kept = [(old, min(reach, end)) for old, reach in self.stretches[-1]]
            self.stretches[-1] = [*kept, (stretch, inf)]
            self.replaced += 1
        else:
            parent = self.branches[-1].number if self.branches else None
            self.branches.append(Branch(number, parent, start if self.branches else 0))
            self.stretches.append([(stretch, inf)])
        self._place = place

    def curves(self, read: Callable[[T, float], Mapping[str, Curve]]) -> BranchedCurves:
        """Return the curves of all branches, given those of a stretch up to an iteration."""
        parts: dict[str, dict[int, list[Curve]]] = {}
        for at, own in enumerate(self.stretches):
            for stretch, end in own:
                for name, curve in read(stretch, end).items():
                    parts.setdefault(name, {}).setdefault(at, []).append(curve)
        lines = {name: {at: _newest(concatenate_curves(own)) for at, own in at.items()} for name, at in parts.items()}
        return BranchedCurves(self.branches, lines, self.replaced)


def _newest(curve: Curve) -> Curve:
    """Return the newest point of each iteration: a later row replaces an earlier one."""
    return part(curve, np.diff(curve.iterations, append=np.iinfo(np.int64).max) > 0)


def join_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, BranchedCurves]:
    """Return the curves of each trainer, from the rows of metrics that a run has stored, in their order."""
    trainers = dict[str, _Rows]()
    for row in rows:
        trainers.setdefault(row["trainer"], _Rows()).add(row)
    return {name: own.timeline.curves(_curves_until) for name, own in trainers.items()}


Points = dict[str, list[tuple[float, ...]]]  # of each name, as in a curve


@define(eq=False, repr=False)
class _Rows:
    """The rows of one trainer so far."""

    timeline: Timeline[Points] = field(factory=Timeline)
    points: Points = field(factory=dict)  # of the latest stretch
    latest: tuple[Place | None, float] = (None, 0.0)  # where its last row was measured, and at which iteration

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        at, place = (row["iteration"], row["epoch"], row["seconds"]), place_of(row)
        if place != self.latest[0] or at[0] < self.latest[1]:
            self.points = {}
            self.timeline.add(place, at[0], self.points, at[0] < self.latest[1])
        self.latest = place, at[0]
        for name, value in row["values"].items():
            self.points.setdefault(name, []).append((*at, *numbers_of(value)))


def numbers_of(value: Mapping[str, Any]) -> tuple[float, float, float, float, int]:
    """Return the numbers of a value in a row; older rows have neither mean nor count: they stand for one value."""
    last, low, high = value["last"], value["low"], value["high"]
    mean, count = value.get("mean", last), value.get("count", 1)
    if None in (last, low, high, mean):
        last, low, high, mean = (nan if x is None else x for x in (last, low, high, mean))
        count = count if "count" in value else int(isfinite(last))
    return last, low, high, mean, count


def _curves_until(points: Points, end: float) -> dict[str, Curve]:
    curves = {name: to_curve(own) for name, own in points.items()}
    return {name: part(curve, slice(_reach(curve, end))) for name, curve in curves.items()}
