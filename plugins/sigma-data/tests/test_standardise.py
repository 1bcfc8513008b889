from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from sigma_data import Arrays, Standardise, Wdbc
from sigma_kernel.training.feed import Preparation

VALUES = npst.arrays("f4", st.tuples(st.integers(2, 8), st.integers(1, 4)), elements=st.floats(-1e3, 1e3, width=32))


@given(VALUES)
def test_mean_and_deviation_are_those_of_the_standard_library(values):
    state = Standardise().fit(values)
    for i, column in enumerate(values.T.tolist()):
        assert state["mean"][i] == pytest.approx(statistics.fmean(column), abs=1e-9)
        wanted = statistics.pstdev(column) if len(set(column)) > 1 else 1.0
        assert state["deviation"][i] == pytest.approx(wanted, rel=1e-6)


def test_the_training_split_gets_mean_0_and_deviation_1():
    training = Wdbc()["training"].block(0)["inputs"]
    step = Standardise()
    changed = step.apply(training, step.fit(training))
    assert changed.dtype == np.float32
    np.testing.assert_allclose(changed.mean(axis=0, dtype="f8"), 0, atol=1e-6)
    np.testing.assert_allclose(changed.std(axis=0, dtype="f8"), 1, atol=1e-6)


@pytest.mark.parametrize("value", [0.1, 1e30, -3.7])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_feature_that_never_changes_becomes_0(value, dtype):
    values = np.full((1000, 2), value, dtype)
    values[:, 1] = np.arange(1000)
    step = Standardise()
    changed = step.apply(values, step.fit(values))
    assert (changed[:, 0] == 0).all()
    assert np.isfinite(changed).all()


def test_only_the_training_split_is_looked_at():
    training, validation = Arrays(inputs=np.array([[1.0], [3.0]])), Arrays(inputs=np.array([[100.0], [300.0]]))
    prepared = Preparation("float64", {"scale": Standardise()}).fit(training)
    assert {name: value.tolist() for name, value in prepared.fitted["scale"].items()} == {
        "mean": [2.0],
        "deviation": [1.0],
    }
    assert prepared(validation.block(0))["inputs"].tolist() == [[98.0], [298.0]]


def test_whole_numbers_become_float32():
    step, values = Standardise(), np.array([[1], [3]], np.uint8)
    assert step.apply(values, step.fit(values)).tolist() == [[-1.0], [1.0]]
    assert step.apply(values, step.fit(values)).dtype == np.float32
