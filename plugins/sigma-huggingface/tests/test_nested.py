from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sigma_huggingface.nested import Sequences
from sigma_kernel import SigmaDataError

DEEP = pa.list_(pa.list_(pa.int64()))


def read(values, kind=None) -> Sequences:
    parts = [pa.array(values[:1], kind), pa.array(values[1:], kind)]  # in two chunks, of which one is a slice
    return Sequences.from_column(pa.chunked_array(parts, kind), "x", "row {}".format)


def test_lists_of_one_length_are_an_array():
    rows = read([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert rows.shape == (2,)
    values, lengths = rows.pad(2, "x")
    np.testing.assert_array_equal(values, [[1, 2], [3, 4], [5, 6]])
    assert (values.dtype, lengths.tolist()) == (np.float32, [2, 2, 2])


@pytest.mark.parametrize("outer", [pa.list_, pa.large_list])
def test_lists_of_several_lengths_are_padded_or_cut_off(outer):
    given = [[1, 2, 3], [], [4], [5, 6]]
    rows = read(given, outer(pa.int64()))
    assert rows.shape is None
    for length in (2, 3, 5):
        values, lengths = rows.pad(length, "x")
        assert values.dtype == np.int32
        assert values.tolist() == [(row + [0] * length)[:length] for row in given]
        assert lengths.tolist() == [min(length, len(row)) for row in given]


def test_inner_lists_are_axes():
    given = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    kind = pa.list_(pa.list_(pa.list_(pa.float32(), 2)))
    rows = read([given[0].tolist(), given[1].tolist()], kind)
    assert rows.shape == (3, 2, 2)
    np.testing.assert_array_equal(rows.pad(3, "x")[0], given)
    sliced = pa.chunked_array([pa.array([given[0].tolist(), given[1].tolist()], kind).slice(1)])
    np.testing.assert_array_equal(Sequences.from_column(sliced, "x", str).pad(3, "x")[0], given[1:])


def test_integers_are_exact_and_booleans_are_floats():
    limits = [[-(1 << 31), 1], [(1 << 31) - 1, 0]]
    assert (read(limits).numbers.dtype, read(limits).numbers.tolist()) == (np.int32, [*limits[0], *limits[1]])
    assert read([[True], [False]]).numbers.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        ([[1], None, [2]], None, "row 1: column 'x' has a gap"),
        ([[1], [2, None]], None, "row 1: column 'x' has a gap"),
        ([[[1]], [[2], None]], None, "row 1: column 'x' has a gap"),
        ([[[1, 2]], [[1, 2], [3, None]]], None, "row 1: column 'x' has a gap"),
        ([[[1, 2]], [[1, 2], [3]]], None, r"row 1: column 'x' holds inner lists of 2 and 1 values\. Only the outer"),
        ([[0, 1], [2, 1 << 31]], None, "row 1: column 'x' holds 2147483648, which is beyond int32. Cast the column to"),
        ([[], [[1, 2], [3, -(1 << 40)]]], DEEP, "row 1: column 'x' holds -1099511627776, which is beyond int32"),
        ([[1], [(1 << 64) - 1]], pa.list_(pa.uint64()), "row 1: column 'x' holds 18446744073709551615, which is"),
        ([["a"], ["b"]], None, r"row 0: column 'x' holds lists of string\. It takes lists of numbers"),
        ([1, 2], None, r"row 0: column 'x' holds int64, no lists\. Name another"),
    ],
)
def test_what_is_no_array_is_refused_with_its_row(values, kind, reason):
    with pytest.raises(SigmaDataError, match=reason):
        read(values, kind)


def test_padding_that_would_take_too_much_memory_is_refused():
    rows = Sequences(np.zeros(1000, np.float32), np.array([999, 1]))
    with pytest.raises(SigmaDataError, match=r"x: 2 rows of 2,000,000,000 steps take 16 GB\. Set `length` to fewer"):
        rows.pad(2_000_000_000, "x")
