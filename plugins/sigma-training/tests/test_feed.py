"""The feed: every row once per epoch, in its own order, however the epoch is divided; and invalid data."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field
from hypothesis import given, settings, strategies as st

from sigma_data import Stream
from sigma_kernel.contracts import Batches, Dataset, Iterator, Preprocessor
from sigma_kernel.errors import SigmaComponentError, SigmaDataError
from sigma_kernel.graph.node import Spec
from sigma_testing.steering import Sweep, small_environment
from sigma_training.data.dataset import Rows
from sigma_training.data.feed import Cursor, Feed
from sigma_training.data.iterators import Shuffled
from sigma_training.data.preprocessing import Preparation, check_finite, conform


class Blocks(Dataset):
    """Numbered rows in blocks of these sizes; records which thread reads what."""

    def __init__(self, *sizes: int) -> None:
        ends = np.cumsum([0, *sizes])
        self._blocks = [np.arange(a, b) for a, b in pairwise(ends)]
        self.read: list[tuple[int, str]] = []

    @property
    def sections(self) -> Mapping[str, Spec]:
        return {"number": Spec((), "int32")}

    @property
    def blocks(self) -> int:
        return len(self._blocks)

    def rows(self, block: int) -> int:
        return len(self._blocks[block])

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        self.read.append((block, threading.current_thread().name))
        return {"number": self._blocks[block]}


class Walk:
    """A feed and a cursor, as a session has them."""

    def __init__(self, feed: Feed) -> None:
        self.feed, self.cursor = feed, feed.start()
        self.dataset, self.iterations_per_epoch, self.close = feed.dataset, feed.iterations_per_epoch, feed.close

    @property
    def iteration_in_epoch(self) -> int:
        return self.feed.iteration_in_epoch(self.cursor)

    def next(self, most: int) -> Batches:
        return self.feed.next_batches(self.cursor, most)

    def advance(self, batches: Batches, done: int) -> None:
        self.cursor = self.feed.advance(self.cursor, batches, done)


def _feed(*sizes: int, batch: int = 3, seed: int = 0, **settings: Any) -> Walk:
    return Walk(Feed(Blocks(*sizes), batch, seed, dict, np.array, **settings))


def _taken(feed: Walk, iterations: int, most: Sequence[int] = (1,)) -> list[list[int]]:
    """Return the numbers in each of the next minibatches, taken in bursts of these lengths in turn."""
    found: list[list[int]] = []
    turn = 0
    while len(found) < iterations:
        batches = feed.next(min(most[turn % len(most)], iterations - len(found)))
        found += [batches.block["number"][rows].tolist() for rows in batches.rows]
        feed.advance(batches, len(batches.rows))
        turn += 1
    feed.close()
    return found


sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4)
bursts = st.lists(st.integers(1, 7), min_size=1, max_size=5)


# -- the order ---------------------------------------------------------------------------------------------------------
@settings(max_examples=40)
@given(sizes, st.integers(1, 5), st.integers(0, 2**40), bursts)
def test_every_row_occurs_exactly_once_per_epoch(sizes: list[int], batch: int, seed: int, most: list[int]) -> None:
    feed = _feed(*sizes, batch=min(batch, sum(sizes)), seed=seed)
    for _ in range(3):
        rows = chain.from_iterable(_taken(feed, feed.iterations_per_epoch, most))
        assert sorted(rows) == list(range(sum(sizes)))


@settings(max_examples=40)
@given(sizes, st.integers(1, 4), bursts)
def test_the_lengths_of_bursts_do_not_change_the_bits(sizes: list[int], batch: int, most: list[int]) -> None:
    batch = min(batch, sum(sizes))
    assert _taken(_feed(*sizes, batch=batch), 20, most) == _taken(_feed(*sizes, batch=batch), 20)


def test_the_order_differs_between_seeds_epochs_and_blocks() -> None:
    one = _feed(50, 50, batch=50)
    first, second, again, _ = _taken(one, 4)
    (other,) = _taken(_feed(50, 50, batch=50, seed=1), 1)
    assert len({tuple(first), tuple(x - 50 for x in second), tuple(again), tuple(other)}) == 4


def test_the_order_is_a_function_of_seed_epoch_and_block_alone() -> None:
    order = Shuffled()
    wanted = order.indices(3, 5, 1, 40)
    order.indices(3, 6, 0, 40)
    assert order.indices(3, 5, 1, 40).tolist() == wanted.tolist()
    feed = _feed(40, 40, batch=40, seed=3)
    feed.cursor = Cursor(epoch=5, block=1)  # without any previous read
    assert _taken(feed, 1)[0] == (40 + wanted).tolist()


def test_a_custom_iterator_is_used() -> None:
    class Backwards(Iterator):
        def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
            return np.arange(rows)[::-1]

    assert _taken(_feed(4, batch=2, iterator=Backwards()), 2) == [[3, 2], [1, 0]]


def test_the_backend_draws_the_default_order_and_no_other() -> None:
    class Mine(Shuffled):
        def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
            return np.array([1, 0, 2])

    asked: list[tuple[int, ...]] = []

    def draw(*at: int) -> np.ndarray:
        asked.append(at)
        return np.array([2, 0, 1])

    assert _taken(_feed(3, 3, seed=7, draw=draw), 4) == [[2, 0, 1], [5, 3, 4]] * 2
    assert asked[:4] == [(7, 0, 0, 3), (7, 1, 0, 3), (7, 0, 1, 3), (7, 1, 1, 3)]
    assert _taken(_feed(3, draw=draw, iterator=Mine()), 1) == [[1, 0, 2]]


@pytest.mark.parametrize(
    "order",
    [
        [0, 0, 1, 2], [1, 2, 3, 3], [0, 1, 2, 4], [-1, 0, 1, 2], [0, 1, 2], [0.0, 1, 2, 3], [0, 1, 2, 2**64 - 1],
        [[0, 1], [2, 3]],
    ],
)  # fmt: skip
def test_an_order_that_is_no_permutation_is_refused(order: list[Any]) -> None:
    class Wrong(Iterator):
        def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
            return np.array(order)

    rule = r"Wrong\): indices\(\) must return a permutation of range\(4\), each row once \(got"
    with pytest.raises(SigmaComponentError, match=rule):
        _taken(_feed(4, batch=2, iterator=Wrong()), 1)


# -- remainders --------------------------------------------------------------------------------------------------------
def test_the_remainder_of_each_block_is_a_smaller_batch() -> None:
    assert [len(batch) for batch in _taken(_feed(7, 2, 3), 6)] == [3, 3, 1, 2, 3, 3]


def test_the_remainder_of_each_block_can_be_dropped() -> None:
    feed = _feed(7, 2, 3, keep_last=False)
    found = _taken(feed, 6, [4])
    assert [len(batch) for batch in found] == [3] * 6
    assert feed.iterations_per_epoch == 3
    assert feed.cursor == Cursor(epoch=2)
    assert all(len(set(chain.from_iterable(found[i : i + 3]))) == 9 for i in (0, 3))


@pytest.mark.parametrize("keep", [True, False])
def test_blocks_smaller_than_a_batch_are_smaller_batches_or_skipped(keep: bool) -> None:
    feed = _feed(2, 5, 1, keep_last=keep)
    assert feed.iterations_per_epoch == (4 if keep else 1)
    assert feed.cursor == Cursor(0, 0 if keep else 1, 0)
    assert [len(batch) for batch in _taken(feed, 5)] == ([2, 3, 2, 1, 2] if keep else [3] * 5)


@settings(max_examples=40)
@given(sizes, st.integers(1, 5), st.booleans(), bursts)
def test_remaining_iterations_are_counted_correctly_at_every_cursor(
    sizes: list[int], batch: int, keep: bool, most: list[int]
) -> None:
    if not keep and max(sizes) < batch:
        return
    feed = _feed(*sizes, batch=min(batch, sum(sizes)), keep_last=keep)
    for i in range(3 * feed.iterations_per_epoch):
        assert (feed.cursor.epoch, feed.iteration_in_epoch) == divmod(i, feed.iterations_per_epoch)
        feed.advance(feed.next(1), 1)
    feed.close()


def test_a_burst_never_spans_two_blocks() -> None:
    feed = _feed(7, 6)
    assert feed.next(10).rows.shape == (2, 3)
    feed.advance(feed.next(2), 2)
    assert feed.next(10).rows.shape == (1, 1)
    feed.close()


@pytest.mark.parametrize(("keep_last", "sizes"), [(True, [3, 1, 3, 1, 2]), (False, [3, 3])])
def test_no_minibatch_has_rows_of_two_blocks(keep_last, sizes):
    feed = Feed(Stream(range(10), names=("n",), block_rows=4), 3, 0, dict, np.array, keep_last=keep_last)
    found, at = [], feed.start()
    while at.epoch == 0:
        batches = feed.next_batches(at, 1)
        found.append(batches.block["n"][batches.rows[0]].tolist())
        at = feed.advance(at, batches, 1)
    feed.close()
    assert [len(batch) for batch in found] == sizes
    assert all(len({row // 4 for row in batch}) == 1 for batch in found)


def test_a_burst_that_ended_early_continues_where_it_ended() -> None:
    feed, whole = _feed(9), _taken(_feed(9), 3)
    batches = feed.next(3)
    feed.advance(batches, 2)
    assert _taken(feed, 1) == whole[2:]


# -- the cursor --------------------------------------------------------------------------------------------------------
@settings(max_examples=40)
@given(sizes, st.integers(1, 4), st.booleans(), st.integers(0, 12))
def test_a_new_feed_can_start_from_any_cursor(sizes: list[int], batch: int, keep: bool, done: int) -> None:
    if not keep and max(sizes) < batch:
        return
    batch = min(batch, sum(sizes))
    first = _feed(*sizes, batch=batch, keep_last=keep, seed=7)
    _taken(first, done)
    second = _feed(*sizes, batch=batch, keep_last=keep, seed=7)
    second.cursor = first.cursor
    assert _taken(second, 10) == _taken(first, 10)


def test_rewinding_starts_the_first_epoch_again() -> None:
    feed = _feed(7, 4)
    first = _taken(feed, 9)
    feed.cursor = feed.feed.start()
    assert _taken(feed, 9) == first


# -- residence ---------------------------------------------------------------------------------------------------------
def test_the_next_block_is_prefetched_in_another_thread() -> None:
    feed = _feed(3, 3, 3)
    _taken(feed, 4)
    data = feed.dataset
    assert isinstance(data, Blocks)
    feed.close()
    assert [block for block, _ in data.read][:4] == [0, 1, 2, 0]
    here = threading.current_thread().name
    assert [block for block, thread in data.read if thread == here] == [0]


@define
class Noting(Shuffled):
    """The default order; records which thread draws it."""

    drawn: list[tuple[int, int, bool]] = field(factory=list)

    def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
        self.drawn.append((epoch, block, threading.current_thread().name.startswith("sigma-feed")))
        return super().indices(seed, epoch, block, rows)


@pytest.mark.parametrize("sizes", [(3000,), (2500, 2048)])
def test_the_order_of_many_rows_is_drawn_in_another_thread(sizes: tuple[int, ...]) -> None:
    order = Noting()
    epochs = _taken(_feed(*sizes, batch=sum(sizes), iterator=order), 6)
    assert [beside for _, _, beside in order.drawn[:6]] == [False, *[True] * 5]
    wanted = [Shuffled().indices(0, n // len(sizes), n % len(sizes), sizes[n % len(sizes)]) for n in range(6)]
    starts = [sum(sizes[: n % len(sizes)]) for n in range(6)]
    assert epochs == [(start + rows).tolist() for start, rows in zip(starts, wanted, strict=True)]


def test_two_orders_are_drawn_ahead() -> None:
    order = Noting()
    feed = _feed(3000, batch=1000, iterator=order)
    for drawn in ([0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2, 3]):
        batches = feed.next(1)
        for future in feed.feed._orders._following.values():
            future.result()
        assert sorted(epoch for epoch, _, _ in order.drawn) == drawn
        feed.advance(batches, 1)
    feed.close()


def test_prefetched_orders_are_discarded_if_the_cursor_or_the_iterator_changes() -> None:
    feed = _feed(3000, batch=3000, iterator=Noting())
    feed.next(1)
    feed.cursor = Cursor(epoch=7)
    assert feed.next(1).rows[0].tolist() == Shuffled().indices(0, 7, 0, 3000).tolist()

    class Backwards(Iterator):
        def indices(self, seed: int, epoch: int, block: int, rows: int) -> np.ndarray:
            return np.arange(rows)[::-1]

    feed.close()
    feed = Walk(evolve(feed.feed, iterator=Backwards()))
    feed.cursor = Cursor(epoch=8)
    assert feed.next(1).rows[0].tolist() == list(range(3000))[::-1]
    feed.close()


def test_a_single_block_is_read_and_transferred_once() -> None:
    placed: list[np.ndarray] = []
    data = Blocks(10)
    feed = Walk(Feed(data, 3, 0, dict, lambda values: placed.append(values) or values))
    _taken(feed, 30)
    assert (len(data.read), len(placed)) == (1, 1)


def test_an_error_while_prefetching_is_raised_when_the_block_is_used() -> None:
    def prepare(block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if 3 in block["number"]:
            raise SigmaDataError("data: spoilt.")
        return dict(block)

    feed = Walk(Feed(Blocks(3, 3, 3), 3, 0, prepare, np.array))
    feed.advance(feed.next(1), 1)
    with pytest.raises(SigmaDataError, match="^block 1: data: spoilt.$"):
        feed.next(1)
    feed.close()


def test_closing_the_feed_ends_its_reader_thread() -> None:
    before = {*threading.enumerate()}  # those of other tests may still be ending
    feed = _feed(3, 3)
    feed.next(1)
    feed.close()
    assert not [one for one in {*threading.enumerate()} - before if one.name.startswith("sigma-feed")]
    feed.close()


# -- preparation -------------------------------------------------------------------------------------------------------
@define
class Centre(Preprocessor):
    """Subtract the mean of the data it was fitted on."""

    section: str = "x"
    seen: list[int] = field(factory=list)

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        values = np.concatenate([*blocks])
        self.seen.append(len(values))
        return {"mean": values.mean(axis=0)}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return values - state["mean"]


@define
class Double(Preprocessor):
    """Has no fitted values."""

    section: str = "x"

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return values * 2


class Several(Blocks):
    """Two blocks of plain arrays."""

    def __init__(self, *arrays: np.ndarray) -> None:
        super().__init__(*map(len, arrays))
        self._blocks = list(arrays)

    @property
    def sections(self) -> Mapping[str, Spec]:
        return {"x": Spec((), "float64")}

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        return {"x": self._blocks[block]}


def fitted(precision: str, steps: Mapping[str, Preprocessor], data: Dataset) -> Preparation:
    """Return the preparation after fitting all steps in order."""
    done = Preparation(precision)
    for name, step in steps.items():
        done = done.add_step(name, step, data)
    return done


def test_each_preprocessor_is_fitted_on_the_output_of_the_previous_ones_over_all_blocks() -> None:
    data = Several(np.array([1.0, 2.0]), np.array([6.0]))
    preparation = fitted("float64", {"a": Double(), "b": Centre()}, data)
    assert preparation.fitted["b"]["mean"] == 6.0
    assert preparation({"x": np.array([4.0])})["x"].tolist() == [2.0]


class Counting(Several):
    """Counts how often each block is read."""

    def __init__(self, *arrays: np.ndarray) -> None:
        super().__init__(*arrays)
        self.asked: list[int] = []

    def block(self, block: int) -> Mapping[str, np.ndarray]:
        self.asked.append(block)
        return super().block(block)


def test_only_preprocessors_that_learn_read_the_data_block_by_block() -> None:
    data = Counting(np.array([1.0, 2.0]), np.array([6.0]))
    fitted("float64", {"a": Double(), "b": Double()}, data)
    assert data.asked == []
    fitted("float64", {"a": Double(), "b": Centre()}, data)
    assert data.asked == [0, 1]


def test_blocks_can_be_iterated_again_with_only_one_in_memory() -> None:
    alive: list[weakref.ref[np.ndarray]] = []

    class Twice(Double):
        def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
            for values in blocks:
                alive.append(weakref.ref(values))
                del values
                assert sum(block() is not None for block in alive) <= 1
            return {"sums": np.array([float(values.sum()) for values in blocks])}

    class Made(Several):
        def block(self, block: int) -> Mapping[str, np.ndarray]:
            return {"x": super().block(block)["x"].copy()}

    preparation = fitted("float64", {"a": Twice()}, Made(np.array([1.0, 2.0]), np.array([6.0])))
    assert preparation.fitted["a"]["sums"].tolist() == [3.0, 6.0]


def test_a_non_finite_number_is_reported_with_block_and_row_if_there_are_several_blocks() -> None:
    data = Several(np.array([1.0, 2.0]), np.array([6.0, np.nan]))
    with pytest.raises(SigmaDataError, match="^block 1: data: section 'x', row 1: nan is not finite. Fill"):
        fitted("float32", {"a": Centre()}, data)


def test_preprocessors_are_fitted_on_the_training_split_alone() -> None:
    step = Centre("inputs")
    with small_environment(Sweep(), preprocessors={"centre": step}) as sigma:
        trainer = sigma.trainer("trainer")
        training = trainer.data["training"]
        shifted = Rows({name: values + 100.0 for name, values in training.block(0).items()})
        trainer.data = {"training": training, "validation": shifted}
        trainer.evaluate()
        state = trainer.session.snapshot().arrays
    assert step.seen == [len(training)]
    np.testing.assert_array_equal(
        state["data.preprocessors.centre.mean"], training.block(0)["inputs"].mean(axis=0), strict=True
    )


def test_a_preprocessor_of_a_missing_section_is_refused() -> None:
    with pytest.raises(SigmaDataError, match="preprocessor 'a': the data has no section 'y'"):
        fitted("float32", {"a": Double("y")}, Rows({"x": np.ones(3)}))


@pytest.mark.parametrize(
    ("given", "precision", "dtype"),
    [
        ("float64", "float32", "float32"),
        ("float16", "float64", "float64"),
        ("int64", "float32", "int32"),
        ("uint8", "float32", "int32"),
        ("bool", "float32", "bool"),
    ],
)
def test_sections_are_cast_to_the_dtypes_of_the_step(given: str, precision: str, dtype: str) -> None:
    prepared = Preparation(precision)({"x": np.ones(3, given)})["x"]
    assert prepared.dtype == dtype
    assert prepared.tolist() == [1, 1, 1]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1])
def test_integers_beyond_32_bits_are_refused(value: int) -> None:
    with pytest.raises(SigmaDataError, match=f"section 'x', row 1: {value} is beyond 32 bits. Of labels, give"):
        Preparation("float32")({"x": np.array([0, value], np.int64)})
    with pytest.raises(SigmaDataError, match="beyond 32 bits"):
        Preparation("float32")({"x": np.array([2**64 - 1], np.uint64)})


@pytest.mark.parametrize("values", [["a", "b"], [object(), None], [1j, 2j]])
def test_a_value_that_is_not_a_number_is_refused(values: list[Any]) -> None:
    with pytest.raises(SigmaDataError, match="section 'x' holds .*. Use numbers or booleans."):
        Preparation("float32")({"x": np.array(values)})


# -- non-finite numbers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_non_finite_number_is_reported_with_section_and_row(bad: float) -> None:
    values = np.ones((9, 2, 2))
    values[6, 1, 0] = values[8, 0, 0] = bad
    prepared = Preparation("float32")({"y": np.arange(9), "x": values})
    with pytest.raises(SigmaDataError, match=rf"section 'x', row 6, at \(1, 0\): {bad} is not finite. Fill"):
        check_finite(prepared)


def test_a_number_too_large_for_the_precision_is_distinguished_from_a_non_finite_one() -> None:
    values = np.ones((9, 2))
    values[6, 1] = -1e300
    with pytest.raises(SigmaDataError, match=r"section 'x', row 6.*: -1e\+300 is too large for float32. Scale"):
        Preparation("float32")({"x": values})
    assert np.array_equal(Preparation("float64")({"x": values})["x"], values)


def test_the_row_of_a_non_finite_value_is_found_after_preprocessing() -> None:
    values = np.ones((9, 2))
    values[6, 1] = np.nan
    with pytest.raises(SigmaDataError, match="section 'x', row 6, column 1: nan is not finite"):
        fitted("float32", {"a": Centre()}, Rows({"x": values}))


def test_a_preprocessor_may_fill_missing_values() -> None:
    class Fill(Double):
        def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
            return np.nan_to_num(values, nan=3.0)

    preparation = fitted("float32", {"fill": Fill(), "centre": Centre()}, Rows({"x": np.array([1.0, np.nan])}))
    assert preparation({"x": np.array([np.nan])})["x"].tolist() == [1.0]


def test_training_refuses_non_finite_data() -> None:
    with small_environment(Sweep()) as sigma:
        data = sigma.trainer("trainer").data["training"]
        data.block(0)["targets"][17] = np.nan
        with pytest.raises(SigmaDataError, match="section 'targets', row 17, column 0: nan"):
            sigma.run()


# -- data that does not fit --------------------------------------------------------------------------------------------
WANTED = {"x": Spec((2,), "float32"), "y": Spec((), "int32")}
FITTING = {"x": np.ones((3, 2), np.float32), "y": np.ones(3, np.int32)}


def test_only_requested_sections_remain_with_the_requested_dtype() -> None:
    found = conform({**FITTING, "x": np.ones((3, 2), np.int32), "more": np.ones(3)}, WANTED)
    assert {name: values.dtype.name for name, values in found.items()} == {"x": "float32", "y": "int32"}


def test_whole_numbers_are_the_same_in_any_type() -> None:
    found = conform({"x": np.full((3, 2), 7, np.int32), "y": np.array([1.0, -2.0, 2**24], np.float32)}, WANTED)
    assert [found[name].dtype for name in "xy"] == [np.float32, np.int32]
    assert (found["x"] == 7).all()
    assert found["y"].tolist() == [1, -2, 2**24]


@pytest.mark.parametrize("value", [np.nan, np.inf, 2.0**31, -1e30])
def test_a_float_that_is_no_whole_number_of_32_bits_is_refused_where_these_are_wanted(value: float) -> None:
    with pytest.raises(SigmaDataError, match=r"section 'y', row 2: .* is no int32"):
        conform({**FITTING, "y": np.array([0, 1, value], np.float32)}, WANTED)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((3, 4), np.float32)}, "data: section 'x' has shape (3, 4); expected ('n', 2)."),
        ({"y": np.int32(1)}, "data: section 'y' has shape (); expected ('n',)."),
        (
            {"y": np.array([1, 0.5, 2], np.float32)},
            "data: section 'y', row 1: 0.5 is no int32, for which the network was built. "
            "Round or scale the values as those of the training, or train on float32.",
        ),
        (
            {"x": np.array([[1, 2], [3, 2**24 + 1]])},
            "data: section 'x', row 1, column 1: 16777217 is no float32, for which the network was built. "
            "Round or scale the values as those of the training, or train on int64.",
        ),
        ({"y": None, "ys": np.ones(3)}, "data: section 'y' is missing. Did you mean 'ys'?"),
    ],
)
def test_a_section_that_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    block = {name: np.asarray(values) for name, values in {**FITTING, **change}.items() if values is not None}
    with pytest.raises(SigmaDataError) as error:
        conform(block, WANTED)
    assert str(error.value) == message


def test_a_split_of_another_shape_is_refused_when_it_is_used() -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        other = Rows({"inputs": np.ones((4, 2)), "targets": np.ones((4, 1))})
        trainer.data = {**trainer.data, "validation": other}
        with pytest.raises(SigmaDataError, match=r"section 'inputs' has shape \(4, 2\); expected \('n', 3\)"):
            trainer.evaluate()


def test_an_empty_data_set_is_refused() -> None:
    with pytest.raises(SigmaDataError, match="there are no rows. Check the path, the split and the filters."):
        Feed(Rows({"x": np.ones((0, 2))}), 1, 0, dict, np.array)


def test_a_batch_larger_than_the_data_is_refused() -> None:
    with pytest.raises(SigmaDataError, match="a batch of 8 is larger than the data, 7 rows. Choose a smaller"):
        _feed(5, 2, batch=8)


def test_batches_larger_than_every_block_are_refused() -> None:
    with pytest.raises(SigmaDataError, match="no block holds a whole batch of 6.*last_batch = 'keep'"):
        _feed(5, 5, batch=6, keep_last=False)


def test_sections_of_different_lengths_are_refused() -> None:
    with pytest.raises(SigmaDataError, match="sections must have equally many rows"):
        Rows({"x": np.ones(3), "y": np.ones(4)})
    with pytest.raises(SigmaDataError, match="sections must have equally many rows"):
        Rows({})
