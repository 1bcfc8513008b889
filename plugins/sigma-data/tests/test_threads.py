"""Columns are encoded in threads, with the results and errors of one thread."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from sigma_data import NumberEncoder, encoded, threads
from sigma_data.encoded import EncodedColumn, EncodedColumns
from sigma_data.encoders.target_mean import TargetMeanEncoder
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


def test_items_are_read_a_few_ahead_of_the_results_which_are_in_their_order():
    meeting, begun = threading.Barrier(2, timeout=30), []

    def read():
        for item in range(6):
            begun.append(item)
            yield item

    def meet(item):
        meeting.wait()
        return item * item

    results = threads.map_ahead(meet, read())
    assert next(results) == 0
    assert begun == [0, 1, 2]
    assert [*results] == [1, 4, 9, 16, 25]
    assert [*threads.map_ahead(meet, [])] == []


def test_results_before_the_first_error_are_there_with_any_number_of_processors(monkeypatch):
    def refuse(item):
        if item > 2:
            raise ValueError(str(item))
        return item

    for processors in (1, 2, 3):
        monkeypatch.setattr(threads, "count_processors", lambda processors=processors: processors)
        results = threads.map_ahead(refuse, [0, 2, 1, 3, 0, 4])
        assert [next(results) for _ in range(3)] == [0, 2, 1]
        with pytest.raises(ValueError, match="^3$"):
            next(results)


def test_columns_are_encoded_alike_in_threads(monkeypatch):
    draws = np.random.default_rng(0)
    table = pa.table({name: draws.normal(size=1000) for name in "abc"})
    columns = EncodedColumns(tuple(EncodedColumn(name, NumberEncoder()) for name in "abc"))

    def encode():
        fitted = columns.fit(table, None, str)
        return fitted.to_plain(), fitted.apply(table, str)

    (plain, alone), _ = encode(), monkeypatch.setattr(encoded, "MANY", 1)
    monkeypatch.setattr(encoded, "BATCH", 7)
    same, together = encode()
    assert same == plain
    assert np.array_equal(together, alone)
    wrong = table.set_column(1, "b", pa.array([*draws.normal(size=998), None, None]))
    strict = EncodedColumns(tuple(EncodedColumn(name, NumberEncoder(missing="refuse")) for name in "abc"))
    with pytest.raises(SigmaDataError, match=r"^998: column 'b'"):
        strict.fit(wrong, None, str)
    fitted = strict.fit(table, None, str)
    with pytest.raises(SigmaDataError, match=r"^row 998: column 'b'"):
        fitted.apply(wrong, "row {}".format)


@pytest.mark.parametrize("large", [0, 1024])
def test_training_rows_are_encoded_by_the_other_folds_in_any_batches(monkeypatch, large):
    monkeypatch.setattr(encoded, "BATCH", 7)
    monkeypatch.setattr(encoded, "LARGE", large)
    words, targets = pa.array([f"c{i % 5}" for i in range(60)]), np.random.default_rng(0).normal(size=60)
    table, training = pa.table({"a": np.arange(60.0), "b": words}), np.random.default_rng(1).permutation(60)[:40]
    mean, own = TargetMeanEncoder(), (EncodedColumn("a", NumberEncoder(scale="none")),)
    columns = EncodedColumns((*own, EncodedColumn("b", mean), *own)).fit(table, targets[training], str, training)
    state = mean.fit([words.take(pa.array(training))], [targets[training]])
    assert columns.columns[1].state == state
    wanted = np.stack([np.arange(60.0), mean.apply(words, state)[:, 0], np.arange(60.0)], axis=1)
    assert np.array_equal(columns.apply(table, str), wanted)
    wanted[training, 1] = mean.apply_training(words.take(pa.array(training)), state, np.arange(40))[:, 0]
    assert np.array_equal(columns.apply(table, str, training), wanted)
