"""Rows of tables that are encoded in batches: the type of the numbers is that of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import frozen

from sigma_data import encoded
from sigma_data.encoded import EncodedColumn, EncodedColumns
from sigma_kernel import Encoder


@frozen
class Shortest(Encoder):
    """Whole numbers as int64 where a batch has no others."""

    section: str = "inputs"
    kinds = ("number",)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        return {}

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        values = np.asarray(column)[:, None]
        return values.astype(np.int64) if (values == values.round()).all() else values

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        return (column,)


@pytest.mark.parametrize("at", [0, 5, 39])
def test_numbers_that_a_later_batch_needs_are_kept(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    monkeypatch.setattr(encoded, "BATCH", 10)
    values = np.arange(40.0)
    values[at] += 0.5
    columns = EncodedColumns((EncodedColumn("x", Shortest()),))
    whole = columns.apply(pa.table({"x": values}), str)
    assert whole.dtype == np.float64
    assert whole[:, 0].tolist() == values.tolist()
