from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_data import Stream
from sigma_kernel import SigmaConfigError, SigmaDataError


class Counted:
    """Ten samples, or batches of three rows, that can be iterated repeatedly; counts the iterations."""

    def __init__(self, batches: bool = False) -> None:
        self.times = 0
        self.batches = batches

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        self.times += 1
        for i in range(10):
            yield (np.full((3, 2), i), np.full(3, i)) if self.batches else (np.full(2, i), np.array(i))


def rows(data: Stream) -> list[int]:
    return [int(row) for i in range(data.blocks) for row in data.block(i)["targets"]]


@given(st.integers(0, 40), st.integers(1, 45), st.sampled_from(["blocks", "one"]))
def test_samples_are_gathered_into_blocks(count, block_rows, keep):
    data = Stream([(float(i), i) for i in range(count)] or [(0.0, 0)], block_rows=block_rows, keep=keep)
    count = max(count, 1)
    assert rows(data) == list(range(count))
    assert [data.rows(i) for i in range(data.blocks)] == [
        min(block_rows, count - i) for i in range(0, count, block_rows)
    ]


@given(st.lists(st.integers(1, 7), min_size=1, max_size=10), st.integers(1, 12))
def test_batches_of_any_size_are_gathered_into_blocks(sizes, block_rows):
    ends = np.cumsum(sizes)
    batches = [{"targets": np.arange(end - size, end)} for size, end in zip(sizes, ends, strict=True)]
    data = Stream(batches, of="batches", block_rows=block_rows)
    assert rows(data) == list(range(ends[-1]))
    assert {data.rows(i) for i in range(data.blocks - 1)} <= {block_rows}


def test_data_is_read_on_first_use_and_only_once():
    source = Counted()
    data = Stream(source, block_rows=4)
    assert source.times == 0
    assert rows(data) == rows(data) == list(range(10))
    assert source.times == 1


def test_keeping_one_block_iterates_the_source_every_epoch():
    source = Counted(batches=True)
    data = Stream(source, of="batches", block_rows=7, keep="one")
    assert len(data) == 30
    assert rows(data) == rows(data) == [i // 3 for i in range(30)]
    assert source.times == 3  # one to count rows, and one for each of two epochs
    assert data.block(4)["inputs"].shape == (2, 2)
    assert np.shares_memory(data.block(4)["inputs"], data.block(4)["inputs"])
    assert data.block(1)["targets"].tolist() == [2, 2, 3, 3, 3, 4, 4]


def test_blocks_may_be_read_by_several_threads():
    class Slow(Counted):
        def __iter__(self):
            for sample in super().__iter__():
                sleep(0.0005)
                yield sample

    data = Stream(Slow(), block_rows=3, keep="one")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: data.block(i)["targets"].tolist(), [0, 3, 1, 2] * 5))
    assert found == [[0, 1, 2], [9], [3, 4, 5], [6, 7, 8]] * 5


def test_a_generator_is_read_once_and_kept_in_memory():
    data = Stream(((np.zeros(2), i) for i in range(5)), block_rows=2)
    assert rows(data) == rows(data) == list(range(5))
    with pytest.raises(SigmaDataError, match="a generator can be used only once"):
        Stream(((np.zeros(2), i) for i in range(5)), keep="one")


def test_samples_that_are_not_tuples_are_the_first_section():
    assert Stream([1.0, 2.0]).block(0)["inputs"].tolist() == [1.0, 2.0]


def test_sections_can_be_given_other_names():
    block = Stream([(1.0, 2, True)], names=("left", "right", "same")).block(0)
    assert {name: values.tolist() for name, values in block.items()} == {"left": [1.0], "right": [2], "same": [True]}


def test_an_empty_iterable_is_reported():
    with pytest.raises(SigmaDataError, match="the iterable yields nothing"):
        len(Stream([]))


def test_too_many_values_per_sample_are_reported():
    with pytest.raises(SigmaDataError, match="sample 1 has 4 parts, for inputs, targets, weights. Set `names`"):
        len(Stream([(1, 2), (1, 2, 3, 4)]))
    with pytest.raises(SigmaDataError, match="sample 1 has inputs, targets, weights; sample 0, inputs, targets. Make"):
        len(Stream([(1, 2), (1, 2, 3)]))


def test_a_sample_of_another_shape_is_named():
    with pytest.raises(SigmaDataError, match=r"sample 2: section 'inputs' has shape \(3,\); before, it had \(2,\)"):
        len(Stream([([1, 2],), ([3, 4],), ([5, 6, 7],)]))


def test_a_sample_without_a_section_is_named():
    with pytest.raises(SigmaDataError, match="sample 1: section 'targets' is missing"):
        len(Stream([{"inputs": 1, "targets": 2}, {"inputs": 1}]))


def test_a_block_of_another_type_is_reported():
    with pytest.raises(SigmaDataError, match="from row 2 on there is inputs float64.*; before, inputs int64"):
        len(Stream([1, 2, 3.5], block_rows=2))


def test_batches_of_different_shapes_are_reported():
    with pytest.raises(SigmaDataError, match="the batches from row 0 on have different sections or shapes"):
        len(Stream([{"inputs": np.zeros((2, 3))}, {"inputs": np.zeros((2, 4))}], of="batches"))
    with pytest.raises(SigmaDataError, match="batch 0: the sections have|batch 0: the samples have different numbers"):
        len(Stream([(np.zeros(2), np.zeros(3))], of="batches"))
    with pytest.raises(SigmaDataError, match="section 'inputs' of a batch is a single number"):
        len(Stream([1.0], of="batches"))


def test_a_non_finite_value_names_its_row():
    with pytest.raises(SigmaDataError, match="section 'inputs', row 3: a value is not finite"):
        len(Stream([0.0, 1.0, 2.0, np.nan], block_rows=2))
    with pytest.raises(SigmaDataError, match="section 'inputs', row 3: a value is not finite"):
        len(Stream([np.zeros(2), np.array([0, np.inf])], of="batches"))


def test_words_are_reported():
    with pytest.raises(SigmaDataError, match="section 'targets' holds objects or words"):
        len(Stream([(1.0, "rose")]))


def test_the_memory_of_a_stream_can_be_limited():
    assert len(Stream(np.zeros((10, 100)), limit=8000)) == 10
    with pytest.raises(SigmaDataError, match="stream: more than 7999 bytes. Raise `limit`, or set keep='one'"):
        len(Stream(np.zeros((10, 100)), limit=7999))
    assert len(Stream(np.zeros((10, 100)), limit=1, keep="one")) == 10


def test_an_iterable_that_yields_fewer_rows_the_second_time_is_reported():
    class Shrinking:
        left = 6

        def __iter__(self):
            self.left -= 1
            return iter(range(self.left))

    data = Stream(Shrinking(), block_rows=2, keep="one")
    assert len(data) == 5
    with pytest.raises(SigmaDataError, match="does not yield as many rows as the first time"):
        [data.block(i) for i in range(3)]


@pytest.mark.parametrize("setting", [{"of": "rows"}, {"keep": "two"}, {"block_rows": 0}, {"limit": 0}, {"names": ()}])
def test_invalid_settings_are_refused(setting):
    with pytest.raises(SigmaConfigError, match=next(iter(setting))):
        Stream([], **setting)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (None, r"must be an iterable, such as a list or a generator, or a function that returns one \(got None\)"),
        (3, r"must be an iterable, .* \(got 3\)"),
    ],
)
def test_a_source_that_is_not_iterable_is_refused_immediately(source, text):
    with pytest.raises(SigmaDataError, match=f"^stream: {text}"):
        Stream(source)
