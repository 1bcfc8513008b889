"""Random bits equal published vectors, and the distributions drawn from them have their properties."""

from __future__ import annotations

import math
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_kernel.errors import SigmaGraphError
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import Namespace, numpy_namespace
from sigma_kernel.graph.node import Graph, Node, symbol
from sigma_kernel.graph.philox import BLOCKS, fill, host_blocks, philox, product, random_bits, scratch_bytes, words
from sigma_kernel.graph.random import AHEAD, Draw, Key, RowDraws, Streams, _stable_order, permutation

NUMPY = numpy_namespace()
# The known-answer vectors of the Random123 distribution, file kat_vectors, for philox 4 x 32 with 10 rounds.
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
WORDS = st.integers(0, 2**32 - 1)


def numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


def bits(row, shape, *, seed=7, stream=3, iteration=5, scan=0) -> np.ndarray:
    key = np.array(words(seed), np.uint32)
    return random_bits(NUMPY, key, np.uint32(iteration), np.uint32(row), np.uint32(scan), shape=shape, stream=stream)


def evaluate(node: Node, key: Key, seed: int = 7, iteration: int = 5, row: int = 0) -> np.ndarray:
    graph = Graph((key.key, key.iteration, key.row, key.scan), (node,))
    scalars = (np.array(x, np.uint32) for x in (iteration, row, 0))
    return interpret(graph, NUMPY)(np.array(words(seed), np.uint32), *scalars)[0]


@pytest.fixture
def key() -> Key:
    scalars = (symbol((), "uint32") for _ in range(3))
    return Key(symbol((2,), "uint32"), *scalars, Streams(), "3-dropout")


# -- bits --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("carrier", [np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize(("counter", "secret", "expected"), VECTORS)
def test_blocks_are_those_of_the_published_vectors(counter, secret, expected, carrier):
    ns = Namespace("numpy", np, NUMPY.dtypes, carrier)
    with np.errstate(over="ignore"):
        assert [int(word) for word in philox(ns, numbers(counter), numbers(secret))] == numbers(expected)


@pytest.mark.parametrize(("counter", "secret", "expected"), VECTORS)
def test_blocks_on_the_host_are_those_of_the_published_vectors(counter, secret, expected):
    first, *tail = numbers(counter)
    drawn = host_blocks((np.array([first]), *tail), tuple(numbers(secret)), np.empty(64, np.uint8))
    assert drawn.tolist() == [numbers(expected)]


@pytest.mark.parametrize(
    ("row", "shape"),
    [
        (0, (8, 4)), (0, ()), (0, (0, 3)), (5, (1,)), (5, (2,)), (5, (7, 3)), (2**31 + 1, (3, 5)), (2**32 - 3, (3, 4)),
        (1, (5, 4 * BLOCKS)), (3, (4 * BLOCKS + 3, 1)), (7, (4097, 13)),
    ],
)  # fmt: skip
def test_the_host_draws_the_bits_of_the_reference(row, shape):
    seed, stream, iteration, scan = 0xFFFFFFFF_A4093822, 0xFFFFFFFF, 0x13198A2E, 0x85A308D3
    size, width = math.prod(shape), math.prod(shape[1:])
    drawn, scratch = np.empty(size, np.uint32), np.empty(scratch_bytes(size), np.uint8)
    fill(drawn, scratch, words(seed), row * width, (stream, iteration, scan))
    expected = bits(row, shape, seed=seed, stream=stream, iteration=iteration, scan=scan)
    np.testing.assert_array_equal(drawn.reshape(shape), expected)


@given(WORDS, WORDS)
def test_products_of_words_are_exact(x, y):
    high, low = product(NUMPY, np.array(x), y)
    assert (int(high) << 32 | int(low)) == x * y


def test_each_element_is_a_word_of_the_block_for_its_key_and_counter():
    drawn = bits(2, (3, 5), seed=2**40 + 9, stream=11, iteration=13, scan=17).reshape(-1)
    for place, word in enumerate(drawn):
        element = 2 * 5 + place
        block = philox(NUMPY, (element // 4, 11, 13, 17), (9, 2**8))
        assert int(word) == int(block[element % 4])


SPLITS = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@given(st.integers(0, 2**32 - 13), SPLITS, st.sampled_from([(), (1,), (3,), (4,), (7, 2)]))
def test_random_bits_of_a_shard_equal_those_of_its_rows_in_the_batch(row, cuts, rest):
    whole, start = bits(row, (sum(cuts), *rest)), 0
    for rows in cuts:
        np.testing.assert_array_equal(bits(row + start, (rows, *rest)), whole[start : start + rows])
        start += rows


def test_elements_beyond_the_first_2_to_the_32_do_not_repeat():
    assert (bits(2**30 + 1, (1, 8)) != bits(1, (1, 8))).all()
    element = (2**30 + 1) * 6
    assert int(bits(2**30 + 1, (1, 6))[0, 0]) == int(philox(NUMPY, (element // 4, 3, 5, 0), (7, 0))[element % 4])


@pytest.mark.parametrize("changed", [{"seed": 8}, {"seed": 7 + 2**32}, {"stream": 4}, {"iteration": 6}, {"scan": 1}])
def test_every_word_of_key_and_counter_affects_the_bits(changed):
    assert (bits(0, (100,)) != bits(0, (100,), **changed)).mean() > 0.9


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_outside_64_bits_is_refused(seed):
    with pytest.raises(SigmaGraphError, match=r"Use a whole number from 0 to 2\^64 - 1"):
        words(seed)


# -- streams -----------------------------------------------------------------------------------------------------------
def test_a_name_keeps_its_stream_and_a_new_name_gets_a_new_one():
    streams = Streams()
    assert [streams.number(name) for name in ("a", "b", "a", "c")] == [0, 1, 0, 2]
    resumed = Streams({"a": 0, "c": 2})
    assert [resumed.number(name) for name in ("c", "new", "a")] == [2, 3, 0]


def test_random_streams_of_a_layer_are_named_by_address_and_order(key):
    key.bits((2,))
    key.uniform((2,))
    key.for_layer("body").bits((2,))
    assert key.streams.numbers == {"3-dropout": 0, "3-dropout.1": 1, "3-dropout.body": 2}


def test_tracing_a_layer_again_gives_the_same_random_streams(key):
    again = Key(key.key, key.iteration, key.row, key.scan, key.streams, key.name)
    assert key.bits((2,)).attrs == again.bits((2,)).attrs


def test_random_bits_in_a_scan_use_the_scan_index(key):
    step = symbol((), "uint32")
    first, second = key.bits((2,)), key.for_scan(step).bits((2,))
    assert second.inputs[3] is step
    assert first.attrs["stream"] != second.attrs["stream"]


# -- distributions in graphs -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_nodes_are_uniform_over_their_interval(key, dtype):
    values = evaluate(key.uniform((100, 1000), -1.0, 3.0, dtype=dtype), key)
    assert values.dtype == dtype
    assert (values >= -1).all()
    assert (values < 3).all()
    counts = np.histogram(values, 100, (-1, 3))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 173  # chi squared, 99 degrees of freedom; false alarms: 1 in 100,000


def test_float32_uniforms_are_the_upper_24_bits_and_never_reach_1(key):
    node = key.uniform((1000,))
    drawn = bits(0, (1000,), stream=0)
    np.testing.assert_array_equal(evaluate(node, key), (drawn >> 8).astype("f4") / np.float32(2**24))


def test_float64_uniforms_have_53_bits(key):
    node = key.uniform((1000,), dtype="float64")
    a, b = bits(0, (1000, 2), stream=0).astype("u8").T
    np.testing.assert_array_equal(evaluate(node, key), ((a >> np.uint64(5)) * 2**26 + (b >> np.uint64(6))) / 2.0**53)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal_nodes_follow_the_normal_distribution(key, dtype):
    values = evaluate(key.normal((100, 1000), 2.0, 3.0, dtype=dtype), key).astype("f8").reshape(-1)
    assert_normal((values - 2) / 3)


def assert_normal(values: np.ndarray) -> None:
    """Compare a sample with the normal distribution: the Kolmogorov distance, and four moments."""
    n = values.size
    law = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in np.sort(values)])
    assert np.abs(law - (np.arange(n) + 0.5) / n).max() < 2.4 / math.sqrt(n)  # false alarms: 1 in 50,000
    assert np.allclose([(values**k).mean() for k in (1, 2, 3, 4)], [0, 1, 0, 3], atol=30 / math.sqrt(n))


def test_bernoulli_nodes_are_true_with_the_given_probability(key):
    assert evaluate(key.bernoulli(0.3, (100, 1000)), key).mean() == pytest.approx(0.3, abs=0.006)
    assert not evaluate(key.bernoulli(0.0, (1000,)), key).any()
    assert evaluate(key.bernoulli(1.0, (1000,)), key).all()


def test_dropout_keeps_the_mean_and_drops_the_rate(key):
    x = symbol((100, 1000))
    graph = Graph((x, key.key, key.iteration, key.row, key.scan), (key.dropout(x, 0.4),))
    arrays = (np.array(words(3), np.uint32), *(np.array(i, np.uint32) for i in (0, 0, 0)))
    (values,) = interpret(graph, NUMPY)(np.ones((100, 1000), "f4"), *arrays)
    assert (values == 0).mean() == pytest.approx(0.4, abs=0.006)
    assert values.mean() == pytest.approx(1.0, abs=0.01)


# -- distributions on the host -----------------------------------------------------------------------------------------
def test_initial_values_are_drawn_from_the_reference_bits():
    drawn = Draw(7, 3).bits((2, 4 * BLOCKS + 1))
    np.testing.assert_array_equal(drawn, bits(0, drawn.shape, iteration=0, scan=2**32 - 1))


def test_a_random_source_continues_and_an_equal_one_repeats_it():
    one, two = Draw(7, 3), Draw(7, 3)
    first, second = one.uniform((50,)), one.uniform((50,))
    assert (first != second).all()
    np.testing.assert_array_equal(two.uniform((50,)), first)
    assert (Draw(7, 4).uniform((50,)) != first).all()
    assert (Draw(8, 3).uniform((50,)) != first).all()


def test_host_uniforms_are_uniform_over_their_interval_in_float64():
    values = Draw(1, 0).uniform((100, 1000), -2.0, 5.0)
    assert values.dtype == np.float64
    assert values.min() >= -2
    assert values.max() < 5
    counts = np.histogram(values, 100, (-2, 5))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 173


def test_host_normals_follow_the_normal_distribution():
    assert_normal((Draw(2, 0).normal((100, 1000), 1.0, 0.5).reshape(-1) - 1.0) / 0.5)


def test_truncated_normals_stay_within_their_bounds_and_keep_the_density_inside():
    values = Draw(3, 0).truncated_normal((100, 1000), 1.0, 0.5)
    assert np.abs(values - 1.0).max() <= 1.0
    assert values.std() == pytest.approx(0.5 * 0.8796256610342398, rel=0.02)  # sqrt(1 - 4 phi(2) / (2 Phi(2) - 1))


def test_the_order_of_rows_is_a_permutation_for_each_seed_stream_and_epoch():
    order = permutation(1, 0, 0, 1000)
    assert sorted(order) == list(range(1000))
    np.testing.assert_array_equal(order, permutation(1, 0, 0, 1000))
    for other in (permutation(2, 0, 0, 1000), permutation(1, 1, 0, 1000), permutation(1, 0, 1, 1000)):
        assert (other != order).mean() > 0.9
    assert permutation(1, 0, 0, 0).shape == (0,)


@pytest.mark.parametrize("rows", [1, 5, AHEAD - 1, AHEAD, AHEAD + 1])
def test_rows_are_sorted_by_64_random_bits_within_and_across_chunks(rows):
    ahead = max(1, AHEAD // rows)
    for epoch in {0, 1, ahead - 1, ahead, 2 * ahead + 1}:
        high, low = bits(0, (rows, 2), stream=9, iteration=epoch, scan=2**32 - 2).T
        np.testing.assert_array_equal(permutation(7, 9, epoch, rows), np.lexsort((low, high)))


def test_many_rows_are_sorted_by_64_bits_each():
    high, low = bits(0, (100_000, 2), stream=0, iteration=2, scan=2**32 - 2).T
    assert len(np.unique(high)) < len(high)  # 32 bits would not suffice to break ties
    np.testing.assert_array_equal(permutation(7, 0, 2, 100_000), np.lexsort((low, high)))


@given(st.lists(st.integers(0, 3) | st.sampled_from([2**63, 2**63 + 1, 2**64 - 1, 2**40, 2**40 + 5]), max_size=80))
def test_sort_keys_with_equal_upper_bits_are_sorted(keys):
    array = np.array(keys, np.uint64)
    pairs = np.stack([array >> np.uint64(32), array & np.uint64(2**32 - 1)], axis=1).astype(np.uint32)
    np.testing.assert_array_equal(_stable_order(pairs), np.argsort(array, kind="stable"))


def test_iteration_orders_are_stable_across_versions():
    assert permutation(7, 0, 3, 10).tolist() == [7, 6, 8, 9, 2, 1, 0, 5, 3, 4]
    assert permutation(2**63 + 5, 2**32 - 1, 2**31, 7).tolist() == [2, 5, 1, 6, 4, 0, 3]
    many = permutation(5, 0, 0, 100_003).astype("<i8").tobytes()
    assert sha256(many).hexdigest() == "170e44a0cb133a118add29b18bdaa5286f3b9f892cb33f4ef522120c5bed796c"


def test_changing_a_returned_order_does_not_affect_others():
    expected = permutation(1, 2, 3, 4).tolist()
    permutation(1, 2, 3, 4)[:] = 0
    assert permutation(1, 2, 3, 4).tolist() == expected


def test_every_row_is_first_about_equally_often():
    first = [int(permutation(5, 0, epoch, 4)[0]) for epoch in range(400)]
    assert ((np.bincount(first, minlength=4) - 100) ** 2 / 100).sum() < 24  # false alarms: 1 in 40,000


@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_a_row_draws_the_blocks_of_its_number_epoch_stream_and_draw(shape):
    rows, ns = np.array([7, 0, 2**31, 7]), numpy_namespace()
    draws, width = RowDraws(2**40 + 9, 3, 11, rows), math.prod(shape)
    for number in range(2):
        bits = draws.bits(shape).reshape(4, width)
        for row, place in zip(rows, bits, strict=True):
            blocks = [philox(ns, (block, row, 11, 2**31 + 3 * 2**16 + number), words(2**40 + 9)) for block in range(3)]
            assert place.tolist() == [int(word) for block in blocks for word in block][:width]


def test_numbers_of_rows_follow_their_distributions():
    draws = RowDraws(1, 0, 0, np.arange(5000))
    uniform, normal = draws.uniform((20,), -1.0, 3.0), draws.normal((21,), 2.0, 0.5)
    assert (uniform.shape, normal.shape) == ((5000, 20), (5000, 21))
    assert -1.0 <= uniform.min() < -0.999 < 2.999 < uniform.max() < 3.0
    assert abs(uniform.mean() - 1.0) < 0.02
    assert abs(normal.mean() - 2.0) < 0.01
    assert abs(normal.std() - 0.5) < 0.01
    assert abs(((normal - 2.0) ** 3).mean()) < 0.01
    assert abs(((normal - 2.0) ** 4).mean() / 0.5**4 - 3.0) < 0.15
    counts = np.bincount(draws.integers(0, 4, (4,)).ravel(), minlength=5)
    assert len(counts) == 5
    assert (abs(counts - 4000) < 300).all()
