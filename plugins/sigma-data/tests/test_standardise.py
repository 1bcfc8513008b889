from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from sigma_data import Standardise, Wdbc

VALUES_OF_3 = npst.arrays("f8", st.tuples(st.integers(1, 5), st.just(3)), elements=st.floats(-1e3, 1e3, width=32))
VALUES = npst.arrays("f4", st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.floats(-1e3, 1e3, width=32))


@given(VALUES)
def test_mean_and_deviation_agree_with_the_statistics_module(values):
    state = Standardise().fit([values])
    for i, column in enumerate(values.T.tolist()):
        assert state["mean"][i] == pytest.approx(statistics.fmean(column), abs=1e-9)
        wanted = statistics.pstdev(column) if len(set(column)) > 1 else 1.0
        assert state["deviation"][i] == pytest.approx(wanted, rel=1e-6)


@given(st.lists(VALUES_OF_3, min_size=1, max_size=6), st.sampled_from([0.0, 1e6]))
def test_blocks_merge_to_the_mean_and_deviation_of_all_rows(blocks, shift):
    blocks = [block + shift for block in blocks]
    state, whole = Standardise().fit(blocks), np.concatenate(blocks)
    np.testing.assert_allclose(state["mean"], whole.mean(axis=0), rtol=1e-12, atol=1e-9)
    wanted = np.where(np.ptp(whole, axis=0) > 0, whole.std(axis=0), 1.0)
    np.testing.assert_allclose(state["deviation"], wanted, rtol=1e-6, atol=1e-9)


def test_statistics_of_one_block_equal_numpys_bit_for_bit():
    values = np.random.default_rng(0).normal(3.0, 2.0, (1000, 5)).astype(np.float32)
    state = Standardise().fit([values])
    assert state["mean"].tobytes() == values.mean(axis=0, dtype="f8").tobytes()
    assert state["deviation"].tobytes() == values.std(axis=0, dtype="f8").tobytes()


def test_a_small_deviation_far_from_zero_survives_many_blocks():
    whole = 1e9 + np.random.default_rng(0).normal(size=(100_000, 1))
    state = Standardise().fit(np.array_split(whole, 1000))
    assert state["deviation"][0] == pytest.approx(whole.std(), rel=1e-6)


def test_the_training_split_gets_mean_0_and_deviation_1():
    training = Wdbc()["training"].block(0)["inputs"]
    step = Standardise()
    changed = step.apply(training, step.fit([training]))
    assert changed.dtype == np.float32
    np.testing.assert_allclose(changed.mean(axis=0, dtype="f8"), 0, atol=1e-6)
    np.testing.assert_allclose(changed.std(axis=0, dtype="f8"), 1, atol=1e-6)


@pytest.mark.parametrize("value", [0.1, 1e30, -3.7])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_constant_feature_becomes_0(value, dtype):
    values = np.full((1000, 2), value, dtype)
    values[:, 1] = np.arange(1000)
    step = Standardise()
    changed = step.apply(values, step.fit([values]))
    assert (changed[:, 0] == 0).all()
    assert np.isfinite(changed).all()


def test_another_split_is_scaled_by_the_mean_and_deviation_of_training():
    step = Standardise()
    state = step.fit([np.array([[1.0], [3.0]])])
    assert {name: value.tolist() for name, value in state.items()} == {"mean": [2.0], "deviation": [1.0]}
    assert step.apply(np.array([[100.0], [300.0]]), state).tolist() == [[98.0], [298.0]]


def test_integers_become_float64():
    step, values = Standardise(), np.array([[1], [3]], np.uint8)
    assert step.apply(values, step.fit([values])).tolist() == [[-1.0], [1.0]]
    assert step.apply(values, step.fit([values])).dtype == np.float64
