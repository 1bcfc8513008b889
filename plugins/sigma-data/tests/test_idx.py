from __future__ import annotations

import gzip
import struct
import tracemalloc
from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from sigma_data import Compressed, IdxReader
from sigma_kernel import SigmaDataError

CODES = {"u1": 0x08, "i1": 0x09, ">i2": 0x0B, ">i4": 0x0C, ">f4": 0x0D, ">f8": 0x0E}


def idx(values: np.ndarray) -> bytes:
    """Return an IDX file by its specification: two zeros, type, axes, sides, values; big-endian."""
    code = CODES[values.dtype.str if values.dtype.itemsize > 1 else values.dtype.kind + "1"]
    return bytes([0, 0, code, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def read(source):
    return IdxReader().read(source)["values"]


@given(
    st.sampled_from(sorted(CODES)).flatmap(
        lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    )
)
def test_written_files_round_trip(held, values):
    found = read(held(idx(values)))
    assert found.dtype == values.dtype.newbyteorder("=")
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, values)


def test_the_example_of_the_format_specification_is_read(held):
    content = bytes.fromhex("00000803 00000002 00000001 00000003 0102030405ff".replace(" ", ""))
    np.testing.assert_array_equal(read(held(content)), [[[1, 2, 3]], [[4, 5, 255]]])


def test_values_can_be_changed_after_reading(held):
    values = read(held(idx(np.zeros((2, 3), "u1"))))
    values += 1
    assert values.sum() == 6


@pytest.mark.parametrize("magic", ["89504e47", "00010803", "00000a01", "1f8b0800", "0000ff01"])
def test_a_wrong_magic_number_is_reported(held, magic):
    with pytest.raises(SigmaDataError, match=f"held: byte 0: the magic number 0x{magic} is not that of an IDX file"):
        read(held(bytes.fromhex(magic) + bytes(100)))


@pytest.mark.parametrize("axes", [0, 33, 255])
def test_a_header_with_too_many_axes_is_reported(held, axes):
    with pytest.raises(SigmaDataError, match=f"held: byte 3: the file declares {axes} axes"):
        read(held(bytes([0, 0, 8, axes]) + bytes(2000)))


def test_a_file_truncated_anywhere_is_reported_with_the_position(held):
    content = idx(np.arange(60, dtype=">i4").reshape(3, 4, 5))
    for length in range(len(content)):
        place = 0 if length < 4 else 4 if length < 16 else 16
        with pytest.raises(
            SigmaDataError, match=f"held: byte {place}: .* bytes should follow, {length - place} are there"
        ):
            read(held(content[:length]))


def test_trailing_bytes_are_reported(held):
    with pytest.raises(SigmaDataError, match="held: more bytes follow than the file declares"):
        read(held(idx(np.zeros(3, "u1")) + b"\x00"))


@pytest.mark.parametrize("sides", [(10**6, 10**6), (2**32 - 1,) * 8, (2**31, 1, 1)], ids=str)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_header_that_declares_too_much_allocates_no_memory(held, sides, packed):
    content = bytes([0, 0, 0x0E, len(sides)]) + struct.pack(f">{len(sides)}I", *sides) + bytes(1000)
    source = Compressed(held(gzip.compress(content))) if packed else held(content)
    tracemalloc.start()
    try:
        with pytest.raises(SigmaDataError, match=f"held: byte .*{prod(sides) * 8} bytes should follow, 1000 are there"):
            read(source)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_the_size_of_a_file_is_checked_before_it_is_read(held):
    content = bytes([0, 0, 8, 1]) + struct.pack(">I", 2**32 - 1) + bytes(20_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(SigmaDataError, match="4294967295 bytes should follow, 20000000 are there"):
            read(held(content))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_shapes_with_zero_sides_do_not_hide_impossible_ones(held):
    content = bytes([0, 0, 8, 3]) + struct.pack(">3I", 0, 2**32 - 1, 2**32 - 1)
    with pytest.raises(SigmaDataError, match="held: byte 4: no array can have shape"):
        read(held(content))


@given(st.data())
def test_any_change_to_a_file_causes_only_data_errors(held, told, data):
    content = bytearray(idx(np.arange(24, dtype="u1").reshape(2, 3, 4)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    assert told(read, held(bytes(content[: data.draw(st.integers(0, len(content)))]))).startswith("held")
