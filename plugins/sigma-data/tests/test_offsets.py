from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_data import BytesReader, Field, Offsets
from sigma_kernel import SigmaDataError


def test_fields_of_a_record_become_sections(held):
    content = b"".join(struct.pack("<B2hfx", i, -i, 10 * i, i / 2) for i in range(3))
    sections = Offsets(
        {"label": Field(0), "pair": Field(1, "<i2", (2,)), "weight": Field(5, "<f4"), "half": Field(0, scale=0.5)}
    ).extract(BytesReader(10).read(held(content)))
    assert {name: (values.dtype.name, values.tolist()) for name, values in sections.items()} == {
        "label": ("int32", [0, 1, 2]),
        "pair": ("int32", [[0, 0], [-1, 10], [-2, 20]]),
        "weight": ("float32", [0.0, 0.5, 1.0]),
        "half": ("float32", [0.0, 0.5, 1.0]),
    }


@given(st.sampled_from(["<i2", ">i2", "<u4", ">i8", "<f8", ">f4"]), st.lists(st.integers(0, 30_000), min_size=1))
def test_numbers_of_either_byte_order_are_read(held, dtype, numbers):
    content = np.array(numbers, dtype).tobytes()
    records = BytesReader(np.dtype(dtype).itemsize).read(held(content))
    values = Offsets({"x": Field(0, dtype)}).extract(records)["x"]
    assert values.dtype.isnative
    assert values.tolist() == numbers


def test_cifar_records_have_a_label_and_three_planes_of_pixels(held):
    content = bytes([7]) + bytes(range(256)) * 12
    sections = Offsets({"targets": Field(0), "inputs": Field(1, shape=(3, 32, 32), scale=1 / 255)}).extract(
        BytesReader(3073).read(held(content))
    )
    assert sections["targets"].tolist() == [7]
    assert sections["inputs"].shape == (1, 3, 32, 32)
    assert sections["inputs"][0, 0, 7, 31] == 1.0


def test_a_field_that_ends_after_the_record_is_reported(held):
    records = BytesReader(4).read(held(bytes(8)))
    with pytest.raises(SigmaDataError, match="section 'x': ends with byte 5; a record has 4"):
        Offsets({"x": Field(1, "<f4")}).extract(records)


def test_input_that_is_not_byte_records_is_reported():
    with pytest.raises(SigmaDataError, match="there are no records of bytes to split. Use the reader `bytes`"):
        Offsets({"x": Field(0)}).extract({"values": np.zeros((2, 3), np.uint8)})


@pytest.mark.parametrize("dtype", ["O", "S4", "nothing", "M8[s]"])
def test_a_non_numeric_dtype_is_reported(dtype):
    with pytest.raises(SigmaDataError, match="dtype: .* is not a numeric dtype"):
        Field(0, dtype)


def test_integers_beyond_32_bits_are_reported_instead_of_wrapped():
    records = np.array([[1, 0, 0, 0], [0, 0, 0, 128]], np.uint8)
    with pytest.raises(SigmaDataError, match="section 'n', row 1: 2147483648 does not fit int32"):
        Offsets({"n": Field(0, "<u4")}).extract({"records": records})
