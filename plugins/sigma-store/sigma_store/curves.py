"""Read the metrics of a run folder: as rows, or as curves of every branch of every trainer.

They are in ``curves.bin``; those of older runs in ``metrics.jsonl``, whose rows come first if such a run was continued.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from attrs import define, field

from sigma_kernel.curves import NUMBERS, BranchedCurves, Window, join_rows
from sigma_kernel.errors import SigmaConfigError
from sigma_store import older
from sigma_store.folders import CURVES, OLDER_METRICS
from sigma_store.levels import Levels
from sigma_store.regular import open_regular
from sigma_store.slots import MOMENT, SlotReader

Log = Callable[[str], Any]
EVERYTHING = Window()


@define(eq=False)
class CurvesReader:
    """Read the curves of a run folder again and again: only what was added since is looked through.

    With a file of older runs, everything is, but only once it has changed.
    """

    run: Path
    _levels: Levels | None = field(default=None, init=False)
    _joined: Mapping[str, BranchedCurves] = field(factory=dict, init=False)  # of a folder with a file of older runs
    _damage: Sequence[str] = field(default=(), init=False)  # in that
    _version: object = field(default=None, init=False)  # of that

    def read(self, log: Log, window: Window = EVERYTHING) -> dict[str, BranchedCurves]:
        """Return what the folder holds of each trainer, on all branches, as far as it is in a window.

        What cannot be read is left out, and its amount is logged.  Raises SigmaConfigError for a file that is not a
        regular one, or a folder without metrics.
        """
        if os.path.lexists(self.run / OLDER_METRICS):
            return {trainer: window.cut(own) for trainer, own in self._join(log).items()}
        return self.look_through(log).curves(window)

    def _join(self, log: Log) -> Mapping[str, BranchedCurves]:
        version = [_version(self.run / name) for name in (OLDER_METRICS, CURVES)]
        if version != self._version:
            said = list[str]()
            self._joined, self._damage, self._version = join_rows(rows(self.run, said.append)), said, version
        for text in self._damage:
            log(text)
        return self._joined

    def look_through(self, log: Log) -> Levels:
        """Return where the points of ``curves.bin`` are by now."""
        path = self.run / CURVES
        if self._levels is None or not self._levels.leads(path):
            with _open(path) as file:
                self._levels = Levels(os.dup(file.fileno()))
        _log_damage(path, self._levels.refresh(), log)
        return self._levels


def read_curves(run: Path, log: Log, window: Window = EVERYTHING) -> dict[str, BranchedCurves]:
    """Return the curves of a run folder: see :meth:`CurvesReader.read`."""
    return CurvesReader(run).read(log, window)


def rows(run: Path, log: Log) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of metrics in a run folder, in their order; what cannot be read, as :meth:`CurvesReader.read`."""
    older_path = run / OLDER_METRICS
    if os.path.lexists(older_path):
        yield from older.rows(older_path, log)
    if os.path.lexists(run / CURVES) or not os.path.lexists(older_path):
        yield from _rows(run / CURVES, log)


def _rows(path: Path, log: Log) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of ``curves.bin``."""
    with _open(path) as file:
        slots, joined = SlotReader(file.fileno()), _Rows()
        for _, news in slots.news():
            yield from joined.take(news)
        yield from joined.begin({})
    _log_damage(path, slots.damaged, log)


@define(eq=False)
class _Rows:
    """Rows from their points, but points whose name or place is damaged."""

    _names: dict[int, str] = field(factory=dict)
    _places: dict[int, Mapping[str, Any]] = field(factory=dict)
    _row: dict[str, Any] = field(factory=dict)  # the latest, which may not be complete

    def take(self, news: np.ndarray | Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Take what follows in the file; yield the rows that are complete by now."""
        if isinstance(news, np.ndarray):
            for point in news[(news["level"] == 0)]:
                yield from self._take_point(point)
        elif "name" in news:
            self._names[news["series"]] = news["name"]
        elif "place" in news:
            self._places[news["place"]] = {name: value for name, value in news.items() if name != "place"}
        elif news["of"] in self._places:
            moment = {name: news[name] for name in MOMENT}
            yield from self.begin({**self._places[news["of"]], **moment, "texts": news["texts"], "values": {}})

    def _take_point(self, point: np.ndarray) -> Iterator[Mapping[str, Any]]:
        name, place = self._names.get(int(point["series"])), self._places.get(int(point["place"]))
        if name is None or place is None:
            return
        moment = dict(zip(MOMENT, (point[key].item() for key in ("iteration", "epoch", "second")), strict=True))
        if point["head"] or any(self._row.get(key) != value for key, value in moment.items()):
            yield from self.begin({**place, **moment, "values": {}})
        numbers = {key: point[key].item() for key in NUMBERS}
        self._row["values"][name] = {key: x if isfinite(x) else None for key, x in numbers.items()}

    def begin(self, row: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Begin another row; yield the one before, if there is one."""
        before, self._row = self._row, row
        if before:
            yield before


def _version(path: Path) -> tuple[int, ...] | None:
    """Return what changes with a file; None if there is none."""
    with suppress(FileNotFoundError):
        about = path.lstat()
        return about.st_ino, about.st_mode, about.st_size, about.st_mtime_ns
    return None


def _open(path: Path) -> BinaryIO:
    try:
        return open_regular(path)
    except OSError as error:
        why = "" if isinstance(error, FileNotFoundError) else f": {error.strerror}"
        raise SigmaConfigError(f"{path}: no metrics there{why}. Pass the folder of a run.") from None


def _log_damage(path: Path, slots: int, log: Log) -> None:
    if slots:
        log(f"{path}: {slots} damaged slot{'s are' if slots > 1 else ' is'} left out.")
