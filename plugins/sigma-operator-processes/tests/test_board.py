"""Sums in shared memory, by threads that are members."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from sigma_kernel.contracts import Position, ShardPart, ShardSum, merge_in_tree
from sigma_operator_processes import board as boards
from sigma_operator_processes.areas import SMALL, SlotLayout, cut_slice
from sigma_operator_processes.board import Board, BoardSegments


def never() -> bool:
    return False


class Members:
    """The boards of some members of one generation."""

    def __init__(self, count: int) -> None:
        self.segments = BoardSegments.create(count)
        self.boards = [Board(3, range(count), k, *self.segments.copy()) for k in range(count)]

    def sum(self, position: Position, parts: Mapping[int, ShardPart], owners: list[int], shards: int) -> list[ShardSum]:
        """Return the sums that members see, each in a thread of its own."""
        sums: dict[int, ShardSum | None] = {}

        def add(member: int) -> None:
            own = {shard: part for shard, part in parts.items() if owners[shard] == member}
            sums[member] = self.boards[member].sum(position, own, len(parts), shards, 20.0, never)

        threads = [threading.Thread(target=add, args=[member]) for member in range(len(self.boards))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [sums[member] for member in range(len(self.boards))]  # type: ignore[misc]


@pytest.fixture
def pair() -> Iterator[Members]:
    yield (members := Members(2))
    members.segments.close()


def draw_parts(count: int, length: int, note: int = 8, seed: int = 0) -> dict[int, ShardPart]:
    draw = np.random.default_rng(seed)
    return {
        shard: ShardPart({"a": draw.standard_normal(length, np.float32)}, bytes([shard]) * note)
        for shard in range(count)
    }


def expect(total: ShardSum, parts: Mapping[int, ShardPart]) -> None:
    right = merge_in_tree([part.vectors["a"] for part in parts.values()], np.add)
    assert total.vectors["a"].tobytes() == right.tobytes()
    assert list(total.notes) == [part.note for part in parts.values()]


@pytest.mark.parametrize("length", [0, 1, 5, 1000, SMALL // 16, SMALL // 16 + 1, 200_003])
@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_sums_have_the_bits_of_the_tree_and_every_member_sees_them(length: int, members: int) -> None:
    group = Members(members)
    for iteration in range(4):
        parts = draw_parts(5, length, seed=iteration)
        for total in group.sum(Position(0, iteration), parts, [shard % members for shard in range(5)], 5):
            expect(total, parts)
    group.segments.close()


@pytest.mark.parametrize("length", [10, 100_000])
def test_a_member_without_shards_learns_the_layout_from_others(length: int, pair: Members) -> None:
    for iteration in range(6):
        parts = draw_parts(1 + iteration % 2, length + iteration // 2, seed=iteration)
        for total in pair.sum(Position(0, iteration), parts, [iteration % 2] * 2, 2):
            expect(total, parts)


@pytest.mark.parametrize("length", [10, 100_000])
def test_lengths_of_notes_may_change_in_each_iteration(length: int, pair: Members) -> None:
    for iteration, note in enumerate([0, 5000, 3, 2_000_000, 4032, 4033, 0]):
        parts = draw_parts(3, length, note, iteration)
        for total in pair.sum(Position(0, iteration), parts, [0, 1, 1], 3):
            expect(total, parts)


def test_a_sum_that_is_not_complete_is_none_until_it_is(pair: Members) -> None:
    parts = draw_parts(2, 100_000)
    here = Position(0, 7)
    for _ in range(3):
        assert pair.boards[0].sum(here, {0: parts[0]}, 2, 2, 0.0, never) is None
    assert pair.boards[1].sum(here, {1: parts[1]}, 2, 2, 0.001, never) is None  # the first one has not added its slice
    total = pair.boards[0].sum(here, {0: parts[0]}, 2, 2, 0.0, never) or pair.boards[0].sum(here, {}, 2, 2, 0.0, never)
    assert total is not None
    expect(total, parts)
    other = pair.boards[1].sum(here, {1: parts[1]}, 2, 2, 0.0, never)
    assert other is not None
    expect(other, parts)


def test_a_sum_ends_with_its_generation(pair: Members) -> None:
    began = time.monotonic()
    assert pair.boards[0].sum(Position(), {0: draw_parts(1, 4)[0]}, 2, 2, 30.0, lambda: True) is None
    assert time.monotonic() - began < 5.0


def test_parts_of_another_position_do_not_count(pair: Members) -> None:
    parts = draw_parts(2, 4)
    assert pair.boards[0].sum(Position(0, 1), {0: parts[0]}, 2, 2, 0.0, never) is None
    assert pair.boards[1].sum(Position(0, 2), {1: parts[1]}, 2, 2, 0.01, never) is None
    assert pair.boards[0].sum(Position(0, 1, 1), {0: parts[0]}, 2, 2, 0.01, never) is None


def test_a_member_that_is_slow_to_read_sees_its_own_iteration(pair: Members) -> None:
    """The other member may be as far as the flag of the next iteration, and has written its next parts."""
    first, second = draw_parts(2, 50, seed=1), draw_parts(2, 50, seed=2)
    assert pair.boards[1].sum(Position(0, 0), {1: first[1]}, 2, 2, 0.0, never) is None
    total = pair.boards[0].sum(Position(0, 0), {0: first[0]}, 2, 2, 0.0, never)
    assert total is not None
    assert pair.boards[0].sum(Position(0, 1), {0: second[0]}, 2, 2, 0.0, never) is None
    late = pair.boards[1].sum(Position(0, 0), {1: first[1]}, 2, 2, 0.0, never)
    assert late is not None
    expect(late, first)
    expect(total, first)


def test_a_sum_is_not_written_to(pair: Members) -> None:
    for length in (10, 100_000):
        for total in pair.sum(Position(0, length), draw_parts(2, length), [0, 1], 2):
            with pytest.raises(ValueError, match="read-only"):
                total.vectors["a"][0] = 1


def test_flags_wait_for_what_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more members than processors nobody spins, and each iteration still ends."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(boards, "NAPS", (1e-5, 1e-5))
    group = Members(4)
    for iteration in range(20):
        parts = draw_parts(4, 30, seed=iteration)
        for total in group.sum(Position(0, iteration), parts, [0, 1, 2, 3], 4):
            expect(total, parts)
    group.segments.close()


def test_boards_leave_no_descriptors() -> None:
    gc.collect()  # those of earlier tests
    before = len(os.listdir("/dev/fd"))
    for seed in range(3):
        group = Members(2)
        for length in (10, 100_000):
            group.sum(Position(0, length), draw_parts(2, length, seed=seed), [0, 1], 2)
        group.segments.close()
        del group
        gc.collect()
    assert len(os.listdir("/dev/fd")) == before


def test_slices_of_members_cover_each_vector_once() -> None:
    for length in (0, 1, 2, 7, 100):
        for parts in (1, 2, 3, 8):
            cuts = [range(length)[cut_slice(length, part, parts)] for part in range(parts)]
            assert [i for cut in cuts for i in cut] == [*range(length)]


def test_a_layout_is_read_back_from_its_text() -> None:
    part = ShardPart({"b": np.zeros(3), "a": np.zeros(0, np.float16), "": np.zeros(2, np.int64)})
    layout = SlotLayout.from_part(part)
    assert SlotLayout.from_text(layout.text()) == layout
    views = layout.view(memoryview(bytearray(layout.nbytes)))
    assert {name: (view.dtype, len(view)) for name, view in views.items()} == {
        name: (vector.dtype, len(vector)) for name, vector in part.vectors.items()
    }
