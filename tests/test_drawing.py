"""Lanes beside a list of layers: every connection can be followed from its source to where it is used."""

from __future__ import annotations

import random

import pytest

from sigma_kernel.network.drawing import is_chain, lanes

DRAWN = {
    "a chain": ({"a": (), "b": ("a",), "c": ("b",)}, "● / ● / ●"),
    "a connection that passes": ({"a": (), "b": ("a",), "c": ("b", "a")}, "● / ├─● / ●─╯"),
    "two ends": ({"a": (), "b": ("a",), "c": ("a",)}, "● / ├─● / ●"),
    "two inputs": ({"a": (), "b": (), "c": ("a", "b")}, "● / │ ● / ●─╯"),
    "three into one": ({"a": (), "b": (), "c": (), "d": ("a", "b", "c")}, "● / │ ● / │ │ ● / ●─┴─╯"),
    "a crossing": (
        {"a": (), "b": ("a",), "c": ("a",), "d": ("c", "a"), "e": ("b", "d")}, "● / ├─● / ├─┼─● / ●─┼─╯ / ●─╯"),
    "to the left": ({"a": (), "b": (), "c": ("a",), "d": ("b",), "e": ("b", "d")}, "● / │ ● / ● │ / ●─┤ / ●─╯"),
    "nothing": ({}, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_connections_are_drawn_in_lanes(name):
    sources, text = DRAWN[name]
    drawn = lanes(sources)
    assert " / ".join(line.rstrip() for line in drawn) == text
    assert len({len(line) for line in drawn}) <= 1


UP, DOWN, LEFT, RIGHT = ("│├┤┼╰╯┴●", "│├┤┼●", "┤┼╯┴●─", "├┼╰┴●─")


def followed(drawn: list[str], i: int) -> set[int]:
    """Return the lines of the layers that the layer of a line is connected to, upwards, by its characters alone."""
    found, row = set(), drawn[i]
    place = row.index("●")
    ends = {place} if i and drawn[i - 1][place] in DOWN + "╭╮" else set()
    for step in (-2, 2):
        q = place + step
        while 0 <= q < len(row) and row[(q - step // 2)] == "─":
            if row[q] in "├┤┴╰╯" or row[q] == "┼":
                ends.add(q)
            if row[q] in "├┤╰╯":
                break
            q += step
    for q in ends:
        up = i - 1
        while up >= 0 and drawn[up][q] in "│┼├┤":
            up -= 1
        if up >= 0 and drawn[up][q] == "●":
            found.add(up)
    return found


def test_all_sources_of_random_networks_can_be_followed():
    for seed in range(200):
        draw = random.Random(seed)
        names = [f"n{i}" for i in range(draw.randint(2, 9))]
        sources = {
            name: tuple(draw.sample(names[:i], draw.randint(0 if draw.random() < 0.2 else 1, min(i, 3))) if i else ())
            for i, name in enumerate(names)
        }
        drawn = lanes(sources)
        assert len(drawn) == len(names)
        for i, own in enumerate(sources.values()):
            assert drawn[i].count("●") == 1
            assert {names.index(source) for source in own} <= followed(drawn, i), (seed, "\n".join(drawn))


def test_a_chain_is_known():
    assert is_chain({"a": (), "b": ("a",)})
    assert is_chain({"a": ()})
    assert not is_chain({"a": (), "b": ("a",), "c": ("a",)})
    assert not is_chain({"a": (), "b": (), "c": ("a", "b")})
