from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_data import Arrays, Stream, Subset
from sigma_kernel import SigmaDataError


@given(st.lists(st.integers(0, 19), min_size=1), st.integers(1, 25))
def test_a_subset_has_the_requested_rows_block_by_block(rows, block_rows):
    data = Stream([(float(i), i) for i in range(20)], block_rows=block_rows)
    subset = Subset(data, rows)
    found = np.concatenate([subset.block(i)["targets"] for i in range(subset.blocks)])
    assert found.tolist() == sorted(rows, key=lambda row: row // block_rows)
    assert len(subset) == len(rows)
    assert all(subset.rows(i) == len(subset.block(i)["inputs"]) > 0 for i in range(subset.blocks))
    assert subset.sections == data.sections


def test_consecutive_rows_of_a_subset_are_not_copied():
    inputs = np.arange(10.0)
    assert np.shares_memory(Subset(Arrays(inputs=inputs), range(2, 6)).block(0)["inputs"], inputs)


@pytest.mark.parametrize("rows", [[], [0.5], [[0, 1]]])
def test_invalid_row_numbers_are_reported(rows):
    with pytest.raises(SigmaDataError, match="rows must be integers"):
        Subset(Arrays(inputs=[1.0, 2.0]), rows)


@pytest.mark.parametrize("row", [-1, 2])
def test_a_row_out_of_range_is_reported(row):
    with pytest.raises(SigmaDataError, match=f"there is no row {row}, only 0 to 1"):
        Subset(Arrays(inputs=[1.0, 2.0]), [0, row])
