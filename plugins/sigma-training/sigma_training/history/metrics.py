"""Record metrics: the history in memory, and the rows of the stored run.

There are at most ten rows a second, ever fewer in a long run, plus one for each of the first ``EACH`` epochs, each with
the last, the least, the greatest and the mean of the values since the previous row.  In memory, the newest values are
kept as they were measured, and those before are joined.
"""

from __future__ import annotations

import csv
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from io import StringIO
from itertools import groupby, islice
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.storing import RowWriter
from sigma_kernel.curves import (
    AXES,
    Branch,
    BranchedCurves,
    Curve,
    Stretch,
    Window,
    concatenate_curves,
    downsample,
    evenly_thinned,
    table,
)
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaPluginError, SigmaStateError, suggest_name
from sigma_kernel.network.tracing import Resolve
from sigma_kernel.periods import Period, add_times
from sigma_training.history.media import Gallery
from sigma_training.optional import optional

FRAMES = ("pandas", "polars")
DRAWN = 8  # values that a notebook shows
EACH = 10_000  # epochs that have a row of their own, however short they are
FULL = 2**16  # newest values of a name that are kept as they were measured, at least
JOINED = 2**14  # points that those before become, on each branch
LARGEST = float(np.finfo(float).max)
SPREAD = 2**19  # values that rows have over the whole time of a run, about: later ones are further apart


@frozen(eq=False)
class _Span:
    """What some values were measured in: a burst between two moments, or one moment, in which hooks published."""

    before: Moment
    after: Moment
    line: int  # the index of its branch


@define(eq=False)
class _Parts:
    """What was measured of a name: numbers, and arrays of the values of bursts; the spans follow the values.

    ``older`` are the curves of what was measured before these parts, by the index of the branch.
    """

    values: list[np.ndarray | float] = field(factory=list)
    spans: list[_Span] = field(factory=list)
    older: Mapping[int, Curve] = field(factory=dict)
    before: int = 0  # parts that became older, or one for all that were read
    size: int = 0  # values in these parts

    def add(self, values: np.ndarray | float, span: _Span, size: int) -> None:
        """Add the values of a span; readers in other threads go by the number of spans."""
        self.values.append(values)
        self.spans.append(span)
        self.size += size

    def select(self, places: Sequence[int]) -> _Parts:
        """Return the parts in some places."""
        return _Parts([self.values[place] for place in places], [self.spans[place] for place in places])

    def lines(self) -> dict[int, Curve]:
        """Return the curve on each branch, by the branch's index."""
        lines = dict(self.older)
        for line, own in groupby(range(len(self.spans)), lambda place: self.spans[place].line):
            lines[line] = concatenate_curves([*([lines[line]] if line in lines else []), _curve(self.select([*own]))])
        return lines

    def join_older(self) -> _Parts:
        """Return these parts with about the ``FULL`` newest values; those before are joined, evenly over iterations."""
        sizes = np.array([1 if isinstance(values, float) else len(values) for values in self.values])
        cut = int(np.searchsorted(-np.cumsum(sizes[::-1])[::-1], -FULL, "right")) - 1
        former = _Parts(self.values[:cut], self.spans[:cut], self.older)
        older = {line: evenly_thinned(curve, JOINED) for line, curve in former.lines().items()}
        return _Parts(self.values[cut:], self.spans[cut:], older, self.before + cut, int(sizes[cut:].sum()))


def _numbers(parts: Sequence[np.ndarray | float]) -> np.ndarray:
    """Return all values of some parts, in order."""
    alike = set(map(type, parts)) == {float}
    return np.array(parts) if alike else np.concatenate([np.atleast_1d(part) for part in parts])


def _curve(parts: _Parts) -> Curve:
    """Return the values of parts with their moments; within a burst, seconds are interpolated."""
    if not parts.values:
        return concatenate_curves([])
    values = _numbers(parts.values).astype(float)
    sizes = np.array([1 if isinstance(x, float) else len(x) for x in parts.values])
    first, last = (
        np.array([(m.iteration, m.epoch, m.second) for m in moments]).repeat(sizes, axis=0)
        for moments in ([span.before for span in parts.spans], [span.after for span in parts.spans])
    )
    size = sizes.repeat(sizes)
    count = np.arange(1, len(values) + 1) - (np.cumsum(sizes) - sizes).repeat(sizes)  # within its part
    iterations = (last[:, 0] - size + count).astype(np.int64)
    epochs = np.where(count < size, first[:, 1], last[:, 1]).astype(np.int64)
    return Curve(iterations, epochs, first[:, 2] + (last[:, 2] - first[:, 2]) / size * count, *3 * [values])


def _refuse_to_resolve(kind: str, _: str) -> Any:
    raise SigmaPluginError(f"{kind}: only the history of a trainer or of a run is drawn. Take that.")


@define(eq=False, repr=False)
class History(Mapping[str, np.ndarray]):
    """Measured values by name: ``training.*`` once an iteration, others once each time they were published.

    ``history[name]`` is every value measured, in order; of more than 65,536, the newest, and before them the last of
    those that were joined.  A :class:`Curve` has the moments as well, and the least and greatest of what was joined;
    after a rewind, it has only the values that led to the present state.  In a notebook, curves are drawn.
    """

    _resolve: Resolve = _refuse_to_resolve  # finds the charts that draw it
    _parts: dict[str, _Parts] = field(factory=dict)  # of all branches, as they were measured
    _branches: list[Branch] = field(factory=lambda: [Branch(0)])  # a reset begins one with the same number
    _span: _Span = field(factory=lambda: _Span(Moment(), Moment(), 0))  # the latest
    _most: float = 2 * FULL  # values of a name, beyond which the older ones are joined
    texts: dict[str, str] = field(factory=dict, init=False)  # published since the last row of metrics
    _gallery: Callable[[], Gallery] = field(default=Gallery, kw_only=True)
    periods: Callable[[], Sequence[Period]] = field(default=list, kw_only=True)  # in which it was trained

    @classmethod
    def from_curves(
        cls,
        read: BranchedCurves,
        resolve: Resolve = _refuse_to_resolve,
        gallery: Callable[[], Gallery] = Gallery,
        periods: Callable[[], Sequence[Period]] = list,
    ) -> History:
        """Return the history of what was read from a file, with what reads its media, and when it was trained."""
        parts = {name: _Parts(older=own, before=1) for name, own in read.lines.items()}
        return cls(resolve, parts, [*read.branches] or [Branch(0)], gallery=gallery, periods=periods)

    def media(self, name: str = "") -> Gallery:
        """Return the media that hooks have published under a name, or all; a notebook shows them.

        Raises SigmaAddressError if there are none of that name.
        """
        return self._gallery().select(name)

    def keep_all(self) -> None:
        """Join no values from now on, so that each can be compared."""
        self._most = np.inf

    def record(self, measured: Mapping[str, np.ndarray], before: Moment, after: Moment) -> None:
        """Add one or several values of each name, those of the iterations between two moments."""
        self._reach(before, after)
        for name, values in measured.items():
            self._add(name, values, len(values))

    def add(self, name: str, value: float, moment: Moment) -> None:
        """Add one value of a name, in well under a microsecond."""
        if moment is not self._span.before:
            self._reach(moment, moment)
        self._add(name, value)

    def _add(self, name: str, values: np.ndarray | float, size: int = 1) -> None:
        parts = self._parts.get(name)
        if parts is None:
            parts = self._parts[name] = _Parts()
        parts.add(values, self._span, size)  # one span for all names, so that a value makes no object to be collected
        if parts.size > self._most:
            self._parts[name] = parts.join_older()  # another object: others may be reading this one

    def _reach(self, before: Moment, after: Moment) -> None:
        """Begin a span, on a new branch if it is a step back."""
        if before.iteration < self._span.after.iteration:
            self.leave(self._branches[-1].number, before.iteration)
        self._span = _Span(before, after, len(self._branches) - 1)

    def leave(self, branch: int, iteration: int) -> None:
        """Leave the present branch at an iteration, for another of this number."""
        self._branches.append(Branch(branch, self._branches[-1].number, iteration))
        self._span = _Span(Moment(), Moment(iteration), len(self._branches) - 1)

    def begin(self, branch: int) -> None:
        """Give the first branch its number, that of a run that is resumed."""
        self._branches = [Branch(branch)]

    def branches(self) -> list[Branch]:
        """Return the branches, the present one last."""
        return list(self._branches)

    def curve(self, name: str) -> Curve:
        """Return the values of a name with their moments; raises a KeyError for a name that was not measured."""
        return self.branched_curves(name).curves()[name]

    def branched_curves(self, *names: str) -> BranchedCurves:
        """Return the values of these names, or of all, on all branches."""
        return BranchedCurves(self.branches(), {name: self._parts_of(name).lines() for name in names or self})

    def stretches_since(self, name: str, after: int, most: int) -> tuple[int, list[Stretch]]:
        """Return what was measured of a name since a cursor, and the next cursor; other threads may call this.

        Of more than ``most`` values, neighbours are joined.
        """
        parts = self._parts.get(name, _Parts())
        count = len(parts.spans)
        new = groupby(range(max(0, after - parts.before), count), lambda place: parts.spans[place].line)
        curves = [] if after else [(self._branches[line].number, curve) for line, curve in parts.older.items()]
        curves += [(self._branches[line].number, _curve(parts.select([*own]))) for line, own in new]
        share = most / max(1, sum(len(curve.values) for _, curve in curves))
        return parts.before + count, [
            Stretch(n, downsample(curve, max(2, int(len(curve.values) * share)))) for n, curve in curves
        ]

    def points(self, name: str, window: Window, after: int) -> tuple[int, list[Stretch]]:
        """Return the part of a name in a window, on all branches, or all since a cursor; and the next cursor."""
        if after or name not in self:
            return self.stretches_since(name, after, window.most)
        parts = self._parts[name]
        now = range(len(parts.spans))  # what is added meanwhile comes after the cursor
        lines = evolve(parts.select(now), older=parts.older).lines()
        cut = window.cut(BranchedCurves(self.branches(), {name: lines}))
        return parts.before + len(now), cut.stretches(name)

    def news(self, cursors: dict[str, int]) -> dict[str, np.ndarray]:
        """Return the values of each name since a cursor, and advance the cursors, for the training thread."""
        new = {n: parts.values[max(0, cursors.get(n, 0) - parts.before) :] for n, parts in self._parts.items()}
        cursors |= {name: parts.before + len(parts.values) for name, parts in self._parts.items()}
        return {name: _numbers(values) for name, values in new.items() if values}

    def curves(self) -> dict[str, Curve]:
        """Return all curves by name."""
        return self.branched_curves().curves()

    def frame(self, library: str = "", branches: bool = False) -> Any:
        """Return a data frame of the library, or of the first of ``FRAMES``: a row per iteration, a column per name.

        The columns ``iteration``, ``epoch``, ``second`` and ``time`` come first: that of day, in UTC, or NaT where none
        is known.  A value that was not measured is NaN.  With ``branches``, it also has what was measured on branches
        before and after they were left: a row per iteration of each ``branch``, which is the first column.  Raises
        SigmaPluginError if the library is not installed.
        """
        if library not in ("", *FRAMES):
            raise SigmaConfigError(f"frame: library must be one of {', '.join(FRAMES)} (got {library!r}).")
        return optional("frame", *([library] if library else FRAMES)).DataFrame(self._columns(branches))

    def _columns(self, branches: bool) -> dict[str, np.ndarray]:
        curves = self.branched_curves()
        own, timed = (
            each.table() if branches else table(each.curves()) for each in (curves, add_times(curves, self.periods()))
        )
        times = (1000 * timed["second"]).round().astype("datetime64[ms]")
        head = ("branch", *AXES) if branches else AXES
        return {**{name: own.pop(name) for name in head}, "time": times, **own}

    def to_csv(self, path: Path | str, branches: bool = False) -> None:
        """Write the rows of :meth:`frame` to a CSV file, with all digits; the cell of a value not measured is empty.

        Raises SigmaStateError if the file cannot be written.
        """
        columns, file = self._columns(branches), StringIO()
        columns["time"] = np.where(np.isnat(columns["time"]), "", np.datetime_as_string(columns["time"], "ms", "UTC"))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        writer.writerows(["" if value != value else value for value in row] for row in rows)  # NaN
        try:
            Path(path).write_text(file.getvalue(), "utf-8")
        except OSError as error:
            raise SigmaStateError(f"{path}: cannot be written: {error.strerror}. Pass another path.") from error

    def plot(self, *names: str, over: str = "iteration") -> Any:
        """Return a matplotlib figure of the named values, or of all, over ``iteration``, ``epoch`` or ``second``.

        What was measured on branches that were left is dotted.
        """
        if over not in AXES:
            raise SigmaConfigError(f"plot: over must be one of {', '.join(AXES)} (got {over!r}).")
        return self._resolve("chart", "default:figure").draw("", {"": self.branched_curves(*names)}, over)

    def _repr_html_(self) -> str | None:
        try:
            text = self._resolve("chart", "default:curves").draw("", {"": self.branched_curves(*islice(self, DRAWN))})
        except SigmaPluginError:  # nothing that is installed draws charts: the text has to do
            return None
        return f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{b64encode(text.encode()).decode()}">'

    def __repr__(self) -> str:
        shown = [f"{name} {values[-1]:.4g} ({len(values)})" for name, values in self.items() if len(values)]
        more = [f"and {len(shown) - DRAWN} more"] if len(shown) > DRAWN else []
        return f"History({', '.join(shown[:DRAWN] + more)})"

    def __getitem__(self, name: str) -> np.ndarray:
        parts = self._parts_of(name)
        return _numbers([*(curve.values for curve in parts.older.values()), *parts.values])

    def _parts_of(self, name: str) -> _Parts:
        if name not in self._parts:
            raise SigmaAddressError(f"history: has no {name!r}.{suggest_name(str(name), self, 'Measured was:')}")
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parts  # that of Mapping would raise an error, and look for similar names, for each miss

    def __iter__(self) -> Iterator[str]:
        return iter([*self._parts])  # a copy: training may measure something new meanwhile

    def __len__(self) -> int:
        return len(self._parts)


@define(eq=False)
class Samples:
    """Downsample measurements to rows: what they were since the row before, by name, and the last texts."""

    rows: RowWriter
    history: History
    interval: float = 0.1
    now: Callable[[], float] = time.monotonic
    _last: float = field(default=-np.inf, init=False)
    _row: dict[str, dict[str, float]] = field(factory=dict, init=False)
    _cursors: dict[str, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        """Begin after what was measured before."""
        self.history.news(self._cursors)

    def write(self, head: Mapping[str, Any], force: bool = False) -> None:
        """Write a row if there are new values, and either the interval has passed or ``force`` is set."""
        if not self.rows.is_kept or not (force or self.now() - self._last >= self._interval(head)):
            return
        for name, values in self.history.news(self._cursors).items():
            self._row[name] = _summarise(values, self._row.get(name))
        texts = self.history.texts
        if (self._row or texts) and (force or not self.rows.is_behind):
            self.rows.append({**head, **({"texts": texts} if texts else {}), "values": self._row})
            texts.clear()
            self._row, self._last = {}, self.now()

    def _interval(self, head: Mapping[str, Any]) -> float:
        """Return the seconds between two rows, which grow with a long run: its file grows ever more slowly."""
        return max(self.interval, float(head.get("seconds", 0.0)) * len(self.history) / SPREAD)


def _summarise(values: np.ndarray, before: Mapping[str, float] | None) -> dict[str, float]:
    """Return what a row says of values, and of those before that no row has yet."""
    old = before or {"low": np.nan, "high": np.nan, "mean": 0.0, "count": 0}
    # as float64: NumPy would round the former to the precision of the latter
    low, high = (float(reduced.reduce(values)) for reduced in (np.fmin, np.fmax))
    mean, count = _average(values[np.isfinite(values)], old["mean"], int(old["count"]))
    return {
        "last": float(values[-1]),
        "low": float(np.fmin(old["low"], low)),
        "high": float(np.fmax(old["high"], high)),
        "mean": mean,
        "count": count,
    }


def _average(values: np.ndarray, mean: float, before: int) -> tuple[float, int]:
    """Return the mean of finite values, and of those before with their mean; and the number of all."""
    if not (count := len(values) + before):
        return np.nan, 0
    old = mean if before else 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # a sum may be too large for a number: then that of shares
        total = float(values.sum(dtype=float)) + old * before
        shares = (values.astype(float) / count).sum() + old * (before / count)
    return total / count if isfinite(total) else float(np.clip(shares, -LARGEST, LARGEST)), count
