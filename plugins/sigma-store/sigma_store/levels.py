"""Find points in ``curves.bin``: those of a range, as many as are asked for, without reading the others."""

from __future__ import annotations

import os
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_kernel.curves import NUMBERS, BranchedCurves, Curve, Stretch, Timeline, Window, begin_cursor, place_of
from sigma_store.slots import POINT, SIZE, SlotReader

COLUMNS = ("iteration", "epoch", "second", *NUMBERS)  # of a slot, in the order of a curve
EMPTY = array("I")
AT_ONCE = 8  # slots that are read for one that is wanted, rather than each alone
_NUMBER = {"iteration": Struct("<q"), "epoch": Struct("<q"), "second": Struct("<d")}


@define(eq=False)
class PlacedSlots:
    """The points of rows at one place, by series and level: their slots, in the order of time."""

    head: Mapping[str, Any]
    first: float = inf
    latest: float = -inf
    slots: dict[int, list[array[int]]] = field(factory=dict)

    def add(self, series: int, level: int, slots: np.ndarray, iterations: np.ndarray) -> None:
        """Add points of a series and a level."""
        self.first, self.latest = min(self.first, iterations[0]), max(self.latest, iterations[-1])
        levels = self.slots.setdefault(series, [])
        levels += [array("I") for _ in range(len(levels), level + 1)]
        levels[level].frombytes(slots.astype(np.uint32).tobytes())


@define(eq=False)
class Levels:
    """Where the points of an open file are, as far as it has been looked through."""

    handle: int  # which is closed with this
    _reader: SlotReader = field(init=False)
    _series: dict[str, int] = field(factory=dict, init=False)  # the numbers of names
    _stretches: list[PlacedSlots] = field(factory=list, init=False)
    _places: dict[int, PlacedSlots] = field(factory=dict, init=False)  # by their numbers
    _lines: dict[str, Timeline[PlacedSlots]] = field(factory=dict, init=False)  # by trainer
    _placed: int = field(default=0, init=False)  # stretches in them

    @_reader.default
    def _begin(self) -> SlotReader:
        weakref.finalize(self, os.close, self.handle)
        return SlotReader(self.handle)

    def leads(self, path: Path) -> bool:
        """Return whether a path still leads to this file, which only grows."""
        try:
            there = path.lstat()
        except OSError:
            return False
        same = os.path.samestat(there, os.fstat(self.handle))
        return same and there.st_size >= self._reader.next * SIZE

    def refresh(self) -> int:
        """Look through what was added to the file; return how many slots of that are damaged."""
        before = self._reader.damaged
        for start, news in self._reader.news():
            if isinstance(news, np.ndarray):
                self._add(start, news)
            elif "name" in news:
                self._series[news["name"]] = news["series"]
            elif "place" in news and not self._is_known(news):
                self._places[news["place"]] = stretch = PlacedSlots(news)
                self._stretches.append(stretch)
        return self._reader.damaged - before

    def _is_known(self, head: Mapping[str, Any]) -> bool:
        """Return whether a place is written again."""
        stretch = self._places.get(head["place"])
        return stretch is not None and stretch.head == head

    def _add(self, start: int, points: np.ndarray) -> None:
        place, series = points["place"].astype(np.int64), points["series"].astype(np.int64)
        keys = place << 24 | series << 8 | points["level"]
        order, declared = np.argsort(keys, kind="stable"), {*self._series.values()}
        ends = [0, *(np.flatnonzero(np.diff(keys[order])) + 1).tolist(), len(order)]
        for own in (order[first:end] for first, end in pairwise(ends)):
            key = int(keys[own[0]])
            stretch, number = self._places.get(key >> 24), key >> 8 & 0xFFFF
            if stretch is not None and number in declared:  # else what declares it is damaged
                stretch.add(number, key & 0xFF, own + start, points["iteration"][own])

    def curves(self, window: Window) -> dict[str, BranchedCurves]:
        """Return the curves of each trainer, as far as they are in a window."""
        return {name: self._read(timeline, window) for name, timeline in self._timelines().items()}

    def _timelines(self) -> Mapping[str, Timeline[PlacedSlots]]:
        """Return the timeline of each trainer, made anew once there are more stretches."""
        stretches = [stretch for stretch in self._stretches if stretch.slots]
        if len(stretches) != self._placed:
            self._lines, self._placed, latest = {}, len(stretches), dict[str, float]()
            for stretch in stretches:
                name = stretch.head["trainer"]
                back = stretch.first < latest.get(name, -inf)
                self._lines.setdefault(name, Timeline()).add(place_of(stretch.head), stretch.first, stretch, back)
                latest[name] = stretch.latest
        return self._lines

    def _read(self, timeline: Timeline[PlacedSlots], window: Window) -> BranchedCurves:
        names = [name for name in self._series if window.names is None or name in window.names]
        levels = {self._series[name]: self._choose_level(timeline, self._series[name], window) for name in names}

        def read(stretch: PlacedSlots, end: float) -> dict[str, Curve]:
            numbers = {name: self._series[name] for name in names if self._series[name] in stretch.slots}
            return {name: self._curve(self._select(stretch, n, levels[n], end, window)) for name, n in numbers.items()}

        return window.cut(timeline.curves(read))

    def points(self, trainer: str, name: str, window: Window, after: int) -> tuple[int, list[Stretch]]:
        """Return what there is of a value on all branches, and a cursor: see :meth:`StoredRun.points`."""
        timeline, series = self._timelines().get(trainer), self._series.get(name)
        if timeline is None or series is None:
            return 0, []
        begin = end = begin_cursor(timeline.replaced)
        pieces = list[Stretch]()
        for branch, own in zip(timeline.branches, timeline.stretches, strict=True):
            for stretch, reach in own:
                slots = stretch.slots.get(series, [EMPTY])[0]
                first, count = max(0, after - end), self._count(stretch, slots, reach)
                end += count
                if 0 < after < end:
                    pieces.append(Stretch(branch.number, self._curve(np.array(slots[first:count]))))
        if after and not begin <= after <= end:
            return 0, []
        return end, pieces if after else self._read(timeline, evolve(window, names=[name])).stretches(name)

    def _count(self, stretch: PlacedSlots, slots: Sequence[int], end: float) -> int:
        """Return how many slots of a stretch have points up to an iteration."""
        if stretch.latest <= end:
            return len(slots)
        return bisect_right(slots, end, key=lambda slot: self._place(slot, "iteration"))

    def _choose_level(self, timeline: Timeline[PlacedSlots], series: int, window: Window) -> int:
        """Return the lowest level at which a series has no more points than are asked for, or the highest."""
        stretches = [pair for own in timeline.stretches for pair in own if series in pair[0].slots]
        highest = max((len(stretch.slots[series]) for stretch, _ in stretches), default=1) - 1
        for level in range(highest):
            if sum(len(self._select(stretch, series, level, end, window)) for stretch, end in stretches) <= window.most:
                return level
        return highest

    def _select(self, stretch: PlacedSlots, series: int, level: int, end: float, window: Window) -> np.ndarray:
        """Return the slots of a series up to an iteration: of a level, and of those below what that does not reach."""
        chosen, after = list["array[int]"](), -1
        for lower in range(min(level, len(stretch.slots[series]) - 1), -1, -1):
            slots = stretch.slots[series][lower]
            first, last = bisect_right(slots, after), self._count(stretch, slots, end)
            if window.span is not None:
                first, last = self._narrow(slots, window, lower, first, last)
            if first < last:
                chosen, after = [*chosen, slots[first:last]], slots[last - 1]
        return np.concatenate([np.array([], np.int64), *chosen]).astype(np.int64)

    def _narrow(self, slots: Sequence[int], window: Window, level: int, first: int, last: int) -> tuple[int, int]:
        """Return which of some slots are in the span, and one more at each side."""
        (start, end), axis = window.span or (-inf, inf), window.over
        before = bisect_left(slots, start, key=lambda slot: self._place(slot, axis)) - 1
        beyond = bisect_right(slots, end, key=lambda slot: self._place(slot, axis)) + (level == 0)
        return max(first, min(before, last - 1)), min(last, beyond)

    # -- slots ---------------------------------------------------------------------------------------------------------
    def _place(self, slot: int, axis: str) -> float:
        """Return where the point in a slot is on an axis."""
        number, offset = _NUMBER[axis], POINT.fields[axis][1] if POINT.fields else 0
        place: float = number.unpack(os.pread(self.handle, number.size, slot * SIZE + offset))[0]
        return place

    def _curve(self, slots: np.ndarray) -> Curve:
        """Read the points in some slots."""
        handle, count = self.handle, len(slots)
        if count and slots[-1] - slots[0] < AT_ONCE * count:
            first = int(slots[0])
            data = os.pread(handle, (int(slots[-1]) + 1 - first) * SIZE, first * SIZE)
            points = np.frombuffer(data, POINT)[slots - first]
        else:
            points = np.frombuffer(b"".join(os.pread(handle, SIZE, slot * SIZE) for slot in slots.tolist()), POINT)
        *moments, counts = (points[name] for name in COLUMNS)
        numbers = (np.where(np.isfinite(column), column, np.nan) for column in moments[3:])
        return Curve(*[*moments[:3], *numbers, counts.astype(np.int64)])
