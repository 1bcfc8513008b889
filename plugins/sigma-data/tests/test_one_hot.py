from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as npst

from sigma_data import OneHot
from sigma_kernel import SigmaDataError


@given(npst.arrays("i4", npst.array_shapes(max_dims=3, max_side=4), elements=st.integers(0, 6)))
def test_one_hot_sets_the_element_of_each_index(values):
    vectors = OneHot(7).apply(values, OneHot(7).fit([values]))
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.eye(7)[values])


def test_the_number_of_classes_is_that_of_the_training_split():
    state = OneHot().fit([np.array([0, 2, 1])])
    assert OneHot().apply(np.array([1]), state).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("value", [-1, 3])
def test_an_index_that_is_not_a_class_is_reported_with_its_row(value):
    with pytest.raises(SigmaDataError, match=f"one_hot: section 'targets', row 2: {value} is not one of 3 classes"):
        OneHot().apply(np.array([0, 1, value]), OneHot().fit([np.array([0, 2])]))


def test_fractions_are_not_indices():
    with pytest.raises(SigmaDataError, match="section 'kinds' holds float64. It takes class indices"):
        OneHot(section="kinds").fit([np.array([0.0, 1.0])])


def test_classes_are_counted_over_all_blocks_unless_their_number_is_set():
    blocks = [np.array([0, 4]), np.array([2])]
    assert OneHot().fit(blocks)["classes"] == 5
    assert OneHot(7).fit(iter(()))["classes"] == 7  # nothing is read
