"""Lots: rows drawn from several open blocks, each once in an epoch, as a function of seed and epoch alone."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_curation.edits import Edited
from sigma_data import Subset
from sigma_kernel.contracts import Augmentation, Dataset, Iterator
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph.node import Spec
from sigma_kernel.graph.random import permutation
from sigma_training.data.augmenting import Augmenter
from sigma_training.data.feed import Cursor, Feed
from sigma_training.data.iterators import InOrder
from sigma_training.group.sharding import cut


class OpenBlocks(Dataset):
    """Numbered rows in blocks of these sizes, drawn from two blocks at once; records which blocks are read."""

    def __init__(self, *sizes: int) -> None:
        self._blocks = [np.arange(a, b) for a, b in pairwise(np.cumsum([0, *sizes]))]
        self.read: list[int] = []

    @property
    def open_blocks(self) -> int:
        return 2

    @property
    def lanes(self) -> int:
        return 3

    @property
    def bytes_ahead(self) -> int:
        return 1000

    @property
    def sections(self) -> Mapping[str, Spec]:
        return {"number": Spec((), "int32")}

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def rows(self, block: int) -> int:
        return len(self._blocks[block])

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        self.read.append(block)
        return {"number": self._blocks[block]}


def make_feed(data: Any, batch: int = 4, seed: int = 3, **more: Any) -> Feed:
    return Feed(data, batch, seed, dict, np.array, **more)


def read_epoch(feed: Feed, epoch: int = 0, most: int = 3) -> list[np.ndarray]:
    """Return the rows of the minibatches of an epoch."""
    return read_on(feed, feed.start(epoch), most)


def read_on(feed: Feed, at: Cursor, most: int = 1) -> list[np.ndarray]:
    """Return the rows of the minibatches from a cursor to the end of its epoch."""
    epoch, rows = at.epoch, []
    while at.epoch == epoch:
        batches = feed.next_batches(at, most)
        rows += [batches.block["number"][order] for order in batches.rows]
        at = feed.advance(at, batches, len(batches.rows))
    return rows


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(1, 6), st.integers(0, 3))
def test_every_row_is_in_an_epoch_once_and_only_the_last_minibatch_is_smaller(sizes, batch, epoch):
    feed = make_feed(OpenBlocks(*sizes), min(batch, sum(sizes)))
    batches = read_epoch(feed, epoch)
    assert sorted(np.concatenate(batches)) == [*range(sum(sizes))]
    assert all(len(rows) == feed.batch_size for rows in batches[:-1])
    assert len(batches) == feed.iterations_per_epoch


def test_minibatches_mix_rows_of_distant_blocks() -> None:
    batches = read_epoch(make_feed(OpenBlocks(*[8] * 16), 8))
    spans = [np.ptp(rows) for rows in batches]
    assert np.median(spans) > 24  # within a block, it is at most 7


def test_blocks_and_rows_have_another_order_in_every_epoch_and_with_every_seed() -> None:
    orders = {
        tuple(np.concatenate(read_epoch(make_feed(OpenBlocks(*[5] * 6), seed=seed), epoch)))
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(orders) == 4


def test_an_epoch_that_is_continued_at_any_cursor_has_the_same_rows() -> None:
    sizes = (5, 5, 2, 5, 5)
    whole = read_epoch(make_feed(OpenBlocks(*sizes)), 2)
    feed = make_feed(OpenBlocks(*sizes))
    at, rest = feed.start(2), len(whole)
    while at.epoch == 2:
        rows = read_on(make_feed(OpenBlocks(*sizes)), at)  # as a new process does
        np.testing.assert_equal(rows, whole[len(whole) - rest :])
        batches = feed.next_batches(at, 1)
        at, rest = feed.advance(at, batches, 1), rest - 1


def test_an_iterator_that_keeps_the_order_keeps_that_of_the_blocks() -> None:
    feed = make_feed(OpenBlocks(3, 4, 3, 4, 1), iterator=InOrder())
    assert np.concatenate(read_epoch(feed, 1)).tolist() == [*range(15)]
    assert np.concatenate([feed.numbers(Cursor(1, lot)) for lot in range(2)]).tolist() == [*range(15)]


class LargestFirst(Iterator):
    """Draw the largest number of a lot in place of all its rows."""

    section = "number"

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        return permutation(seed, block, epoch, rows)

    def draw(self, seed: int, epoch: int, block: int, values: np.ndarray) -> np.ndarray:
        return np.full(len(values), np.argmax(values))


def test_rows_that_are_drawn_by_a_section_are_those_of_the_lot_of_the_epoch() -> None:
    feed = make_feed(OpenBlocks(5, 5, 2, 5, 5), 5, iterator=LargestFirst())
    drawn = set()
    for epoch in range(4):
        wanted = [max(feed.numbers(Cursor(epoch, lot))) for lot in range(3)]
        drawn.add(tuple(wanted))
        assert [rows[0] for rows in read_epoch(feed, epoch, 2)][::2] == wanted
    assert len(drawn) > 1


def test_numbers_of_a_lot_are_those_of_its_rows() -> None:
    feed = make_feed(OpenBlocks(5, 5, 2, 5, 5))
    for cursor in (Cursor(1, 0), Cursor(1, 1), Cursor(2, 0)):
        np.testing.assert_array_equal(feed.next_batches(cursor, 1).block["number"], feed.numbers(cursor))


def test_what_fits_one_lot_is_read_once() -> None:
    data = OpenBlocks(4, 4)
    feed = make_feed(data, 2)
    assert sorted(np.concatenate(read_epoch(feed))) == sorted(np.concatenate(read_epoch(feed, 1))) == [*range(8)]
    assert data.read == [0, 1]


@pytest.mark.parametrize(
    "view", [lambda data: Subset(data, np.arange(1, 21)), lambda data: Edited(data, {"excluded": [0, 21]})]
)
def test_parts_and_edited_rows_are_drawn_from_as_many_blocks(view):
    rows = view(OpenBlocks(5, 5, 2, 5, 5))
    assert (rows.open_blocks, rows.lanes, rows.bytes_ahead) == (2, 3, 1000)
    assert sorted(np.concatenate(read_epoch(make_feed(rows)))) == [*range(1, 21)]


def test_an_error_names_lot_and_epoch() -> None:
    def refuse(block: Any) -> Any:
        raise SigmaDataError("wrong")

    feed = Feed(OpenBlocks(5, 5, 5), 2, 0, refuse, np.array)
    with pytest.raises(SigmaDataError, match="rows drawn together, lot 0 of epoch 1: wrong"):
        feed.next_batches(Cursor(1), 1)


# -- lanes -------------------------------------------------------------------------------------------------------------
def read_lanes(feed: Feed, epoch: int, lanes: int, own: Any = None) -> list[list[np.ndarray]]:
    """Return the rows of the shards of each minibatch of an epoch, of all lanes or of one's ``own``."""
    at, batches = feed.start(epoch), []
    while at.epoch == epoch:
        given = feed.next_batches(at, 2)
        for i in range(len(given.rows)):
            shards = cut(given.rows[i], lanes)
            mine = [n for n in range(len(shards)) if own is None or n in own]
            batches.append([given.lanes[n].block["number"][shards[n].rows - given.lanes[n].first] for n in mine])
        at = feed.advance(at, given, len(given.rows))
    return batches


sizes_of_blocks = st.lists(st.integers(1, 9), min_size=1, max_size=7)


@settings(deadline=None, max_examples=60)
@given(sizes_of_blocks, st.integers(1, 6), st.integers(2, 5), st.integers(0, 3))
def test_shards_read_their_lane_and_every_row_is_in_an_epoch_once(sizes, batch, lanes, epoch):
    feed = make_feed(OpenBlocks(*sizes), min(batch, sum(sizes)), lanes=lanes)
    shards = read_lanes(feed, epoch, lanes)
    whole = read_epoch(make_feed(OpenBlocks(*sizes), min(batch, sum(sizes)), lanes=lanes), epoch)
    np.testing.assert_equal([np.concatenate(each) for each in shards], whole)
    assert sorted(np.concatenate(whole)) == [*range(sum(sizes))]
    assert all(len(rows) == feed.batch_size for rows in whole[:-1])


def rows_of_lanes(sizes: tuple[int, ...], epoch: int, lanes: int = 3, seed: int = 3) -> list[list[int]]:
    """Return the rows of each lane in an epoch, in their order."""
    batches = read_lanes(make_feed(OpenBlocks(*sizes), seed=seed, lanes=lanes), epoch, lanes)
    return [[row for shards in batches for row in shards[n : n + 1] for row in row.tolist()] for n in range(lanes)]


def test_a_lane_has_the_same_rows_in_every_epoch_in_another_order() -> None:
    sizes = (7,) * 12
    first, second = (rows_of_lanes(sizes, epoch) for epoch in (0, 1))
    assert [sorted(rows) for rows in first] == [sorted(rows) for rows in second]
    assert all(a != b for a, b in zip(first, second, strict=True))
    assert [sorted(rows) for rows in rows_of_lanes(sizes, 0, seed=4)] != [sorted(rows) for rows in first]


def test_rows_of_each_lane_are_shuffled_by_themselves() -> None:
    batches = make_feed(OpenBlocks(40, 40, 40), 120, lanes=3).next_batches(Cursor(), 1)
    shards = zip(cut(batches.rows[0], 3), batches.lanes, strict=True)
    assert len({tuple(shard.rows - lane.first) for shard, lane in shards}) == 3


def test_lanes_of_sorted_data_have_rows_of_distant_blocks() -> None:
    spans = [np.ptp(rows) for rows in rows_of_lanes((5,) * 60, 0)]
    assert min(spans) > 200  # of 300; of three parts of the data, it would be 99


def test_lanes_of_an_iterator_that_keeps_the_order_are_parts_of_the_data() -> None:
    feed = make_feed(OpenBlocks(4, 4, 4), 6, lanes=3, iterator=InOrder())
    assert [np.concatenate(each).tolist() for each in read_lanes(feed, 0, 3)] == [
        [0, 1, 4, 5, 8, 9],
        [2, 3, 6, 7, 10, 11],
    ]


def test_whoever_reads_one_lane_reads_its_blocks_alone() -> None:
    sizes, reads = (5,) * 24, dict[int, list[int]]()
    for lane in range(4):
        data = OpenBlocks(*sizes)
        read_lanes(make_feed(data, 8, lanes=4), 1, 4, own=[lane])
        reads[lane] = sorted({*data.read})
    assert {block for blocks in reads.values() for block in blocks} == {*range(24)}
    assert sum(map(len, reads.values())) <= 24 + 3  # a block at each of three borders is read twice


class NotAhead(OpenBlocks):
    """The same, of which nothing is prefetched."""

    @property
    def bytes_ahead(self) -> int:
        return 0


def test_lanes_that_are_used_no_more_are_released_and_those_taken_over_are_read() -> None:
    placed = list[weakref.ref[np.ndarray]]()

    def place(values: np.ndarray) -> np.ndarray:
        placed.append(weakref.ref(copy := values.copy()))
        return copy

    feed = Feed(NotAhead(*[5] * 24), 8, 3, dict, place, lanes=4)
    at, held = feed.start(), list[int]()
    for own in ((0, 1, 2), (0, 1, 2), (3,), (3, 0), (3,)):
        batches = feed.next_batches(at, 9)
        assert all(len(batches.lanes[lane].block["number"]) for lane in own)
        at = feed.advance(at, batches, len(batches.rows))
        held.append(sum(reference() is not None for reference in placed))
    assert held == [3, 3, 1, 2, 1]


def test_an_epoch_with_lanes_that_is_continued_at_any_cursor_has_the_same_rows() -> None:
    sizes = (5, 5, 2, 5, 5)
    whole, feed = read_lanes(make_feed(OpenBlocks(*sizes), lanes=3), 2, 3), make_feed(OpenBlocks(*sizes), lanes=3)
    at, rest = feed.start(2), len(whole)
    while at.epoch == 2:
        rows = read_on(make_feed(OpenBlocks(*sizes), lanes=3), at)  # as a new process does
        np.testing.assert_equal(rows, [np.concatenate(each) for each in whole[len(whole) - rest :]])
        batches = feed.next_batches(at, 1)
        at, rest = feed.advance(at, batches, 1), rest - 1


def test_numbers_of_a_lot_with_lanes_are_those_of_its_rows() -> None:
    feed = make_feed(OpenBlocks(5, 5, 2, 5, 5), lanes=3)
    for cursor in (Cursor(1, 0), Cursor(2, 0)):
        np.testing.assert_array_equal(feed.next_batches(cursor, 1).block["number"], feed.numbers(cursor))


def test_rows_are_drawn_by_a_section_in_each_lane() -> None:
    feed = make_feed(OpenBlocks(*[4] * 9), 6, lanes=3, iterator=LargestFirst())
    firsts = {n: {tuple(each[n]) for each in read_lanes(feed, 0, 3)} for n in range(3)}
    assert all(len({*rows}) == 1 for each in firsts.values() for rows in each)


class MixAll(Augmentation):
    """Add the mean of all rows that are varied together."""

    mixes_rows = True

    def augment(self, sections: Mapping[str, np.ndarray], draw: Any) -> Mapping[str, np.ndarray]:
        return {name: values + values.sum().astype(values.dtype) for name, values in sections.items()}


def test_the_whole_block_consists_of_the_lanes_as_they_are_varied() -> None:
    augmenter = Augmenter(0, {"mix": MixAll()})
    feed = make_feed(OpenBlocks(*[4] * 9), 6, lanes=3, augmenter=augmenter)
    batches = feed.next_batches(Cursor(1), 1)
    joined = np.concatenate([lane.block["number"] for lane in batches.lanes])
    np.testing.assert_array_equal(batches.block["number"], joined)
    assert batches.lanes[1].first == len(batches.lanes[0].block["number"])
