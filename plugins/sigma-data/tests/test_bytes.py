from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_data import BytesReader
from sigma_kernel import SigmaConfigError, SigmaDataError


@given(st.integers(1, 7), st.integers(0, 5), st.integers(0, 6), st.data())
def test_records_are_read_in_order(held, size, rows, skip, data):
    content = data.draw(st.binary(min_size=skip + rows * size, max_size=skip + rows * size))
    records = BytesReader(size, skip).read(held(content))["records"]
    assert records.shape == (rows, size)
    assert records.tobytes() == content[skip:]
    assert records.dtype == np.uint8


def test_an_incomplete_record_is_reported_with_its_position(held):
    with pytest.raises(SigmaDataError, match="held: byte 12: record 2 has 3 bytes instead of 5"):
        BytesReader(5, skip=2).read(held(bytes(15)))


def test_a_truncated_header_is_reported(held):
    with pytest.raises(SigmaDataError, match="held: the header: 16 bytes should follow, 3 are there"):
        BytesReader(5, skip=16).read(held(bytes(3)))


def test_a_record_has_at_least_one_byte():
    with pytest.raises(SigmaConfigError, match="size"):
        BytesReader(0)
