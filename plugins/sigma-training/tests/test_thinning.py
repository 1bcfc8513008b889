"""Thinning: which states of a run are kept, the older, the further apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from sigma_kernel.contracts.storing import Retention, thin

LONGEST = 10**8


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[int], set[int]]:
    """Return a budget, the moments of states up to 10^8, in any order of magnitude apart, and which are named."""
    most = draw(st.integers(1, 64))
    step = draw(st.sampled_from([1, 10, 1000, 10**5, 10**6]))
    steps = draw(st.lists(st.integers(1, step), min_size=1, max_size=300))
    moments = [0]
    for each in steps:
        moments.append(min(LONGEST, moments[-1] + each))
    moments = sorted({*moments})
    return most, moments, draw(st.sets(st.sampled_from(moments), max_size=5))


def keep_arriving(moments: Sequence[int], most: int, named: set[int]) -> list[list[int]]:
    """Return what is kept after each state of a run."""
    kept, every = list[int](), list[list[int]]()
    for moment in moments:
        kept = thin([*kept, moment], most, named)
        every.append(kept)
    return every


@settings(max_examples=300, deadline=None)
@given(histories())
def test_few_states_of_a_long_run_are_kept_and_gaps_grow_with_their_age(
    history: tuple[int, list[int], set[int]],
) -> None:
    most, moments, named = history
    apart = max((b - a for a, b in pairwise(moments)), default=0)
    for now, kept in zip(moments, keep_arriving(moments, most, named), strict=True):
        assert kept == sorted({*kept})
        assert {moment for moment in named if moment <= now} <= {*kept}
        assert len(kept) - len(named.intersection(kept)) <= most
        assert kept[-1] == now
        assert most == 1 or kept[0] == 0
        if most > 2:
            ratio = max(now, 1) ** (1 / ((most - 1) // 2)) - 1
            for older, newer in pairwise(kept):
                assert newer - older <= max(apart, ratio * (now - newer) * (1 + 1e-9))


def test_states_of_10_to_the_8_iterations_are_within_a_factor_of_their_age() -> None:
    kept, now = list[int](), 0
    while now < LONGEST:
        kept = thin([*kept, now], 64)
        now += max(1, now // 1000)
    kept = thin([*kept, LONGEST], 64)
    assert len(kept) == 64
    assert (kept[0], kept[-1]) == (0, LONGEST)
    assert all(newer - older <= max(LONGEST // 1000, LONGEST - newer) for older, newer in pairwise(kept[:-1]))


@pytest.mark.parametrize(
    ("most", "fixed", "kept"),
    [
        (1, (), [9]),
        (2, (), [0, 9]),
        (0, (3,), [3, 9]),
        (3, (), [0, 8, 9]),
        (3, (4,), [0, 4, 8, 9]),
        (99, (), [*range(10)]),
    ],
)
def test_the_newest_the_first_and_the_fixed_are_kept(most: int, fixed: tuple[int, ...], kept: list[int]) -> None:
    assert thin(range(10), most, fixed) == kept


def test_retention_spreads_checkpoints_over_the_run() -> None:
    marks = {number: (None, number == 37) for number in range(1, 101)}
    retention = Retention(last=2, spread=6)
    kept = {*marks} - retention.select_removable(marks, newest=100)
    assert {1, 37, 99, 100} <= kept
    assert len(kept) == 6 + 3
