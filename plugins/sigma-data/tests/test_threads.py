"""Columns are encoded in threads, with the results and errors of one thread."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from sigma_data import NumberEncoder, encoded, threads
from sigma_data.encoded import EncodedColumn, EncodedColumns
from sigma_kernel import SigmaDataError


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    monkeypatch.setattr(threads, "count_processors", lambda: 2)


def test_results_are_in_the_order_of_the_items():
    meeting = threading.Barrier(2, timeout=30)

    def meet(item):
        meeting.wait()  # which a single thread would do alone, for ever
        return item * item

    assert threads.map_in_threads(meet, [3, 1, 2, 5]) == [9, 1, 4, 25]
    assert threads.map_in_threads(meet, []) == []


def test_the_error_of_the_first_item_that_fails_is_raised():
    def refuse(item):
        if item > 1:
            raise ValueError(str(item))

    with pytest.raises(ValueError, match="^2$"):
        threads.map_in_threads(refuse, [0, 2, 1, 3])


def test_columns_are_encoded_alike_in_threads(monkeypatch):
    draws = np.random.default_rng(0)
    table = pa.table({name: draws.normal(size=1000) for name in "abc"})
    columns = EncodedColumns(tuple(EncodedColumn(name, NumberEncoder()) for name in "abc"))

    def encode():
        fitted = columns.fit(table, None, str)
        return fitted.to_plain(), fitted.apply(table, str)

    (plain, alone), _ = encode(), monkeypatch.setattr(encoded, "MANY", 1)
    same, together = encode()
    assert same == plain
    assert np.array_equal(together, alone)
    wrong = table.set_column(1, "b", pa.array([*draws.normal(size=998), None, None]))
    strict = EncodedColumns(tuple(EncodedColumn(name, NumberEncoder(missing="refuse")) for name in "abc"))
    with pytest.raises(SigmaDataError, match=r"^998: column 'b'"):
        strict.fit(wrong, None, str)
