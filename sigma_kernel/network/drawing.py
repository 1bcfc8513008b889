"""Drawings of the connections between layers: lanes of characters beside a list, and SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise

Sources = Mapping[str, Sequence[str]]  # of each layer, by name, sources first

MARKS = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"  # by the directions of a lane: 1 above, 2 below, 4 left, 8 right
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
    held: list[str | None] = []  # the layer whose value each lane holds
    lines = []
    for i, (name, own) in enumerate(sources.items()):
        after = [None if layer is None or last[layer] == i else layer for layer in held]
        free = [place for place, layer in enumerate(after) if layer is None]
        place = min(free, key=lambda q: held[q] is None, default=len(held))  # the first that ends there, else is free
        held, after = ([*lane, *[None] * (place == len(lane))] for lane in (held, after))
        lines.append(_line(place, [q for q, layer in enumerate(held) if layer in own], held, after))
        after[place] = name if name in last else None
        held = after
    width = max(map(len, lines), default=0)
    return [line.ljust(width) for line in lines]


def _line(place: int, joined: Sequence[int], before: Sequence[str | None], after: Sequence[str | None]) -> str:
    """Return the line of a layer in a lane: which lanes come from above, and go on below, and which it joins."""
    low, high = min([place, *joined]), max([place, *joined])
    marks = [
        MARKS[(layer is not None) + 2 * (after[q] is not None) + 4 * (low < q <= high) + 8 * (low <= q < high)]
        for q, layer in enumerate(before)
    ]
    marks[place] = "●"
    return "".join(mark + ("─" if low <= q < high else " ") for q, mark in enumerate(marks)).rstrip()


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
