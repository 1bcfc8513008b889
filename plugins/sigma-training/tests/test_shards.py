"""How batches are split into shards, and how their results are summed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_kernel.contracts import merge_in_tree
from sigma_training.group.sharding import cut


@given(st.integers(1, 60), st.integers(1, 12))
def test_shards_keep_every_row_in_order_and_have_even_sizes(rows: int, shards: int) -> None:
    parts = cut(np.arange(rows), shards)
    assert np.concatenate([part.rows for part in parts]).tolist() == list(range(rows))
    assert [part.start for part in parts] == [int(part.rows[0]) for part in parts]
    sizes = [len(part.rows) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == min(shards, rows)


def test_gradients_of_shards_are_summed_pairwise() -> None:
    values = [{"x": np.array(v, np.float32)} for v in (1e8, 1.0, -1e8, 1.0, 3.0)]
    found = merge_in_tree(values, lambda a, b: {"x": a["x"] + b["x"]})["x"]
    wanted = ((np.float32(1e8) + np.float32(1)) + (np.float32(-1e8) + np.float32(1))) + np.float32(3)
    assert found == wanted
    assert found != pytest.approx(6.0)  # another order would give another sum
