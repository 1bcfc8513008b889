"""Lots: rows drawn from several open blocks, each once in an epoch, as a function of seed and epoch alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sigma_curation.edits import Edited
from sigma_data import Subset
from sigma_kernel.contracts import Dataset, Iterator
from sigma_kernel.errors import SigmaDataError
from sigma_kernel.graph.node import Spec
from sigma_kernel.graph.random import permutation
from sigma_training.data.feed import Cursor, Feed
from sigma_training.data.iterators import InOrder


class OpenBlocks(Dataset):
    """Numbered rows in blocks of these sizes, drawn from two blocks at once; records which blocks are read."""

    def __init__(self, *sizes: int) -> None:
        self._blocks = [np.arange(a, b) for a, b in pairwise(np.cumsum([0, *sizes]))]
        self.read: list[int] = []

    @property
    def open_blocks(self) -> int:
        return 2

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
    assert (rows.open_blocks, rows.bytes_ahead) == (2, 1000)
    assert sorted(np.concatenate(read_epoch(make_feed(rows)))) == [*range(1, 21)]


def test_an_error_names_lot_and_epoch() -> None:
    def refuse(block: Any) -> Any:
        raise SigmaDataError("wrong")

    feed = Feed(OpenBlocks(5, 5, 5), 2, 0, refuse, np.array)
    with pytest.raises(SigmaDataError, match="rows drawn together, lot 0 of epoch 1: wrong"):
        feed.next_batches(Cursor(1), 1)
