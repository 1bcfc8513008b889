"""Drawings of the connections between layers: lanes of characters beside a list, and SVG."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

Sources = Mapping[str, Sequence[str]]  # of each layer, by name, sources first

HIGH, ARC = 24, 8  # of a layer in SVG, and of an arc for each layer that it passes, in pixels


def is_chain(sources: Sources) -> bool:
    """Return whether each layer has the one before it as its only source."""
    names = list(sources)
    return all(list(sources[after]) == [before] for before, after in pairwise(names))


# -- lanes -------------------------------------------------------------------------------------------------------------
def lanes(sources: Sources) -> list[str]:
    """Return a line for each layer: its own mark, and the connections that pass it or end there.

    ::

        ●    0-input
        ├─●  1-dense
        ●─╯  2-add
    """
    last = {source: i for i, each in enumerate(sources.values()) for source in each}
    open_: list[str | None] = []  # the layer whose value each lane holds
    lines = []
    for i, (name, own) in enumerate(sources.items()):
        joined = [place for place, held in enumerate(open_) if held in own]
        ending = [place for place in joined if last[str(open_[place])] == i]
        place = _place(open_, ending)
        open_ += [None] * (place + 1 - len(open_))
        passing = {q for q, held in enumerate(open_) if held is not None and q not in ending}
        lines.append(_line(place, joined, ending, passing, len(open_)))
        for q in ending:
            open_[q] = None
        open_[place] = name if name in last else None
    width = max(map(len, lines), default=0)
    return [line.ljust(width) for line in lines]


def _place(lanes: Sequence[str | None], ending: Sequence[int]) -> int:
    """Return the lane of a new layer: the first that ends there, else the first that is free."""
    free = [place for place, held in enumerate(lanes) if held is None]
    return [*ending, *free, len(lanes)][0]


def _line(place: int, joined: Collection[int], ending: Collection[int], passing: Collection[int], count: int) -> str:
    low, high = min([place, *joined]), max([place, *joined])
    marks = (_mark(q, place, low, high, joined, ending, passing) for q in range(count))
    return "".join(mark + ("─" if low <= q < high else " ") for q, mark in enumerate(marks)).rstrip()


def _mark(
    q: int, place: int, low: int, high: int, joined: Collection[int], ending: Collection[int], passing: Collection[int]
) -> str:
    """Return the character of one lane in the line of a layer."""
    if q == place:
        return "●"
    if low < q < high:
        return "┴" if q in ending else "┼" if q in passing else "─"
    if q in ending:
        return "╰" if q < place else "╯"
    if q in joined:
        return "├" if q < place else "┤"
    return "│" if q in passing else " "


# -- SVG ---------------------------------------------------------------------------------------------------------------
def drawing(sources: Sources, labels: Mapping[str, str]) -> str:
    """Return layers and connections as SVG: one layer in each line, sources above.

    A connection that passes other layers is an arc to their left, the wider the more it passes.
    """
    index = {name: i for i, name in enumerate(sources)}
    left = 16 + ARC * max([0, *(index[name] - index[source] for name in sources for source in sources[name])])
    parts = [part for name in sources for part in _parts(name, sources[name], index, left, labels[name])]
    width, height = left + 20 + 8 * max(map(len, labels.values())), HIGH * len(sources)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' font-family="system-ui, sans-serif" font-size="12" role="img"><title>Layers</title>{"".join(parts)}</svg>'
    )


def _parts(name: str, own: Sequence[str], index: Mapping[str, int], left: int, label: str) -> Iterator[str]:
    y = HIGH * index[name] + 12
    for passed in (index[name] - index[source] - 1 for source in own):
        bend = left - 2 * ARC * passed
        path = f"M{left} {y - HIGH * (passed + 1)}C{bend} {y - HIGH * passed} {bend} {y - HIGH} {left} {y}"
        yield f'<path d="{path}" fill="none" stroke="currentColor"/>'
    yield f'<circle cx="{left}" cy="{y}" r="4" fill="currentColor"/>'
    yield f'<text x="{left + 12}" y="{y + 4}" fill="currentColor">{escape(label)}</text>'
