"""The arena, compared with first fit by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.graph import Arena


@pytest.mark.parametrize("ordered", [False, True], ids=["in any order", "in the order of steps"])
@pytest.mark.parametrize("least", [0, 1], ids=["empty values too", "no empty values"])
def test_an_arena_is_packed_first_fit(ordered, least):
    draw = np.random.default_rng(0)
    lives = [sorted(draw.integers(0, 40, 2).tolist()) for _ in range(300)]
    arena, placed = Arena(), list[tuple[int, int, int, int]]()
    for first, last in sorted(lives) if ordered else lives:
        size, start = int(draw.integers(least, 9)) * 64, 0
        for begin, end in sorted((b, e) for b, e, a, z in placed if a <= last and first <= z):
            if start + size <= begin:
                break
            start = max(start, end)
        assert arena.place(size, first, last) == start
        placed.append((start, start + size, first, last))
    assert arena.size == max(end for _, end, *_ in placed)


def test_values_that_are_alive_at_one_step_lie_apart():
    arena = Arena()
    assert [arena.place(64, 0, 2), arena.place(64, 2, 3), arena.place(64, 3, 4)] == [0, 64, 0]
    assert arena.size == 128


def test_an_arena_without_values_takes_no_memory():
    assert Arena().size == 0
