"""Write ``curves.bin``: the rows of metrics, and points that sum up ever more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.curves import numbers_of
from sigma_store.appending import AppendedFile
from sigma_store.files import get_size
from sigma_store.slots import (
    FACTOR,
    LONGEST,
    MOMENT,
    MOST_COUNT,
    MOST_SERIES,
    SIZE,
    Point,
    SlotReader,
    encode_point,
    encode_text,
    seal,
)

AGAIN = 5  # levels: names and places are written again after 1,024 points, so that damage to them loses no more


@define(eq=False)
class OpenPlace:
    """The rows of a trainer at one place, which do not go back, and the points that wait to be summed up."""

    place: int
    head: Mapping[str, Any]
    latest: int
    waiting: dict[int, list[list[Point]]] = field(factory=dict)  # by series and level

    def reach(self, iteration: int) -> None:
        """Take note of the iteration of a row."""
        self.latest = iteration

    def encode(self) -> bytes:
        """Return the slots that declare it."""
        return encode_text({"place": self.place, **self.head})

    def add(self, series: int, point: Point) -> list[bytes]:
        """Add a point of a row; return the slots of the points of higher levels that it completes."""
        levels = self.waiting.get(series)
        if levels is None:
            levels = self.waiting[series] = [[]]
        levels[0].append(point)
        return self._sum_up(series, levels) if len(levels[0]) == FACTOR else []

    def _sum_up(self, series: int, levels: list[list[Point]]) -> list[bytes]:
        slots, level = list[bytes](), 0
        while len(levels[level]) == FACTOR:
            point, levels[level] = sum_up(levels[level]), []
            level += 1
            if level == len(levels):
                levels.append([])
            levels[level].append(point)
            slots.append(encode_point(series, level, 0, self.place, *point))
        return slots


def sum_up(points: Sequence[Point]) -> Point:
    """Return one point in place of several: numbers that are not finite count no further than as the last one."""
    number, average, least, greatest = sum(point[0] for point in points), 0.0, inf, -inf
    for count, _, _, _, _, low, high, mean in points:
        if count:
            average += mean * (count / number)  # as the sum of large values may not be finite
        least, greatest = low if -inf < low < least else least, high if greatest < high < inf else greatest
    low, high = (nan if least == inf else least), (nan if greatest == -inf else greatest)
    return min(number, MOST_COUNT), *points[-1][1:5], low, high, average if number else nan


@define(eq=False)
class CurvesFile(AppendedFile):
    """The rows of metrics of a run, in slots: nothing that was written is changed.

    Each name and each place is written before the first point that has its number, and again with each point that
    completes ``AGAIN`` levels.  A row that goes back, or that a new process writes, begins another place.
    """

    _series: dict[str, int] = field(factory=dict, init=False)  # the numbers of names
    _next_series: int = field(default=0, init=False)
    _next_place: int = field(default=0, init=False)
    _refused: set[str] = field(factory=set, init=False)  # what was left out so far, for which reasons
    _stretches: dict[str, OpenPlace] = field(factory=dict, init=False)  # by trainer

    def _measure(self, path: Path) -> int:
        return get_size(path) // SIZE * SIZE

    def _begin(self, empty: bool) -> None:
        if empty:
            self.waiting.append(seal(encode_text({"format": 1})))
        for _, news in SlotReader(self._handle).news():
            if isinstance(news, Mapping) and "name" in news:
                self._series[news["name"]] = news["series"]
                self._next_series = max(self._next_series, news["series"] + 1)
            elif isinstance(news, Mapping) and "place" in news:
                self._next_place = max(self._next_place, news["place"] + 1)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        if self.path is not None:
            with self._gate:
                self.waiting.append(seal(self._encode(row)))
                self._write()

    def _encode(self, row: Mapping[str, Any]) -> bytes:
        stretch, slots = self._stretch_of(row)
        moment, points, sums = tuple(map(row.__getitem__, MOMENT)), list[bytes](), list[bytes]()
        if "texts" in row:
            moment_of = {**dict(zip(MOMENT, moment, strict=True)), "seconds": float(moment[2])}
            text = encode_text({"texts": row["texts"], "of": stretch.place, **moment_of})
            if len(text) <= LONGEST * SIZE:
                points.append(text)
            else:
                self._refuse(f"has no texts of more than 16 MiB: those of iteration {moment[0]} are", "texts")
        for name, value in row["values"].items():
            if (number := self._series.get(name)) is None:
                if (number := self._next_series) >= MOST_SERIES:
                    self._refuse(f"has values of {MOST_SERIES:,} names, and takes no more: that of {name} is", "names")
                    continue
                slots.append(encode_text({"series": number, "name": name}))
                self._series[name], self._next_series = number, number + 1
            last, low, high, mean, count = numbers_of(value)
            point = (count, *moment, last, low, high, mean)
            points.append(encode_point(number, 0, not points, stretch.place, *point))
            own = stretch.add(number, point)
            if len(own) >= AGAIN:
                slots += [stretch.encode(), encode_text({"series": number, "name": name})]
            sums += own
        return b"".join([*slots, *points, *sums])

    def _stretch_of(self, row: Mapping[str, Any]) -> tuple[OpenPlace, list[bytes]]:
        """Return the stretch that a row continues, and the slots that begin it if it is a new one."""
        head = {name: value for name, value in row.items() if name not in (*MOMENT, "values", "texts")}
        stretch, slots = self._stretches.get(row["trainer"]), list[bytes]()
        if stretch is None or stretch.head != head or row["iteration"] < stretch.latest:
            stretch = self._stretches[row["trainer"]] = OpenPlace(self._next_place, head, row["iteration"])
            slots.append(stretch.encode())
            self._next_place += 1
        stretch.reach(row["iteration"])
        return stretch, slots

    def _refuse(self, why: str, what: str) -> None:
        """Log what is left out, once of each kind."""
        if what not in self._refused:
            self.log(f"{self.path}: {why} left out.")
        self._refused.add(what)
