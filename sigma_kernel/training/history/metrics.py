"""Record metrics: the history in memory, and the rows of ``metrics.jsonl``.

The file has at most ten rows a second, plus one for every epoch, with the last, the least and the greatest of the
values since the previous row.
"""

from __future__ import annotations

import csv
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from html import escape
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.charts import figure, svg
from sigma_kernel.clock import Moment
from sigma_kernel.curves import AXES, Curve, joined, panels, table
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.optional import optional
from sigma_kernel.training.files import put_text
from sigma_kernel.training.history.journal import Lines

FRAMES = ("pandas", "polars")
DRAWN = 8  # values that a notebook shows


@frozen(eq=False)
class _Part:
    """Values of consecutive iterations, which end at a moment; the burst began at the moment ``before``."""

    values: np.ndarray
    before: Moment
    after: Moment

    def curve(self) -> Curve:
        """Return the values with their moments; within a burst, seconds are interpolated."""
        count = np.arange(1, len(self.values) + 1)
        epochs = np.where(count < len(count), self.before.epoch, self.after.epoch)
        step = (self.after.second - self.before.second) / len(count)
        iterations = self.after.iteration - len(count) + count
        return Curve(iterations, epochs, self.before.second + step * count, *3 * [self.values.astype(float)])


@define(eq=False, repr=False)
class History(Mapping[str, np.ndarray]):
    """Measured values by name: ``training.*`` once an iteration, others once each time they were published.

    ``history[name]`` is every value measured, in order.  A :class:`Curve` has the moments as well; after a rewind, it
    has only the values that led to the present state.  In a notebook, curves are drawn.
    """

    _every: dict[str, list[np.ndarray]] = field(factory=dict)
    _parts: dict[str, list[_Part]] = field(factory=dict)  # of the present branch
    _read: Mapping[str, Curve] = field(factory=dict)
    _latest: int = 0

    @classmethod
    def of(cls, curves: Mapping[str, Curve]) -> History:
        """Return the history that curves describe."""
        return cls({name: [curve.values] for name, curve in curves.items()}, read=curves)

    def record(self, measured: Mapping[str, np.ndarray], before: Moment, after: Moment) -> None:
        """Add one or several values of each name, those of the iterations between two moments."""
        if before.iteration < self._latest:
            for parts in self._parts.values():
                while parts and parts[-1].after.iteration > before.iteration:
                    parts.pop()
        self._latest = after.iteration
        for name, values in measured.items():
            self._every.setdefault(name, []).append(values)
            self._parts.setdefault(name, []).append(_Part(values, before, after))

    def curve(self, name: str) -> Curve:
        """Return the values of a name with their moments; raises KeyError for a name that was not measured."""
        if name not in self._every:
            raise KeyError(name)
        there = [self._read[name]] if name in self._read else []
        return joined([*there, *(part.curve() for part in self._parts.get(name, ()))])

    def curves(self) -> dict[str, Curve]:
        """Return all curves by name."""
        return {name: self.curve(name) for name in self}

    def frame(self, library: str = "") -> Any:
        """Return a data frame of the library, or of the first of ``FRAMES``: a row per iteration, a column per name.

        The columns ``iteration``, ``epoch`` and ``second`` come first; a value that was not measured is NaN.  Raises
        SigmaPluginError if the library is not installed.
        """
        if library not in ("", *FRAMES):
            raise SigmaConfigError(f"frame: library must be one of {', '.join(FRAMES)} (got {library!r}).")
        return optional("frame", *([library] if library else FRAMES)).DataFrame(table(self.curves()))

    def to_csv(self, path: Path | str) -> None:
        """Write the rows of :meth:`frame` to a CSV file, with all digits; the cell of a value not measured is empty.

        Raises SigmaStateError if the file cannot be written.
        """
        columns, file = table(self.curves()), StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        writer.writerows(["" if value != value else value for value in row] for row in rows)  # NaN
        put_text(Path(path), file.getvalue())

    def plot(self, *names: str, over: str = "iteration") -> Any:
        """Return a matplotlib figure of the named values, or of all, over ``iteration``, ``epoch`` or ``second``."""
        if over not in AXES:
            raise SigmaConfigError(f"plot: over must be one of {', '.join(AXES)} (got {over!r}).")
        return figure("", panels({"": {name: self.curve(name) for name in names or self}}, over), over)

    def _repr_html_(self) -> str:
        text = svg("", panels({"": {name: self.curve(name) for name in islice(self, DRAWN)}}, "iteration"))
        return f'<img alt="{escape(repr(self))}" src="data:image/svg+xml;base64,{b64encode(text.encode()).decode()}">'

    def __repr__(self) -> str:
        shown = [f"{name} {values[-1][-1]:.4g} ({sum(map(len, values))})" for name, values in self._every.items()]
        more = [f"and {len(shown) - DRAWN} more"] if len(shown) > DRAWN else []
        return f"History({', '.join(shown[:DRAWN] + more)})"

    def __getitem__(self, name: str) -> np.ndarray:
        return np.concatenate(self._every[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._every)

    def __len__(self) -> int:
        return len(self._every)


@define(eq=False)
class Samples:
    """Downsample measurements to rows: the last, the least and the greatest value of each name."""

    lines: Lines
    interval: float = 0.1
    now: Callable[[], float] = time.monotonic
    _last: float = field(default=-np.inf, init=False)
    _row: dict[str, dict[str, float]] = field(factory=dict, init=False)

    def add(self, measured: Mapping[str, np.ndarray]) -> None:
        """Add one or several new values of each name."""
        if self.lines.path is None:
            return
        for name, values in measured.items():
            old = self._row.get(name, {"low": np.nan, "high": np.nan})
            low, high = np.fmin(old["low"], np.fmin.reduce(values)), np.fmax(old["high"], np.fmax.reduce(values))
            self._row[name] = {"last": float(values[-1]), "low": float(low), "high": float(high)}

    def write(self, head: Mapping[str, Any], force: bool = False) -> None:
        """Write a row if there are new values, and either the interval has passed or ``force`` is set."""
        if self._row and (force or (not self.lines.waiting and self.now() - self._last >= self.interval)):
            self.lines.append({**head, "values": self._row})
            self._row, self._last = {}, self.now()
