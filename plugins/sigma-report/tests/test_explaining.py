"""Which columns are shuffled together, and which entries count."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_report.answers import Answers
from sigma_report.explaining import group_columns


def test_the_columns_of_a_category_are_one_group():
    names = ["size", "city=Oslo", "age", "city=Rome", "city is other", "size is missing"]
    assert group_columns(names) == {"size": [0], "city": [1, 3, 4], "age": [2], "size is missing": [5]}


def test_labels_that_do_not_count_are_left_out_of_losses():
    odds = np.array([[0.5, 0.5], [0.9, 0.1], [np.nan, np.nan], [0.2, 0.8]])
    answers = Answers("output", "test", True, ("a", "b"), np.arange(2), {}, odds, np.array([0, -1, -1, 1]))
    assert answers.is_finite.tolist() == [True, False, False, True]
    assert answers.row_losses == pytest.approx([-np.log(0.5), -np.log(0.8)])
    assert answers.finite().truth.tolist() == [0, 1]


def test_the_columns_of_numbers_count_in_units_of_their_deviation():
    truth = np.array([[0.0, 0.0], [1000.0, 1.0]])
    predicted = truth + np.array([[100, 0], [0, 0.2]])
    answers = Answers("output", "test", False, ("a", "b"), np.arange(2), {}, predicted, truth)
    assert answers.row_losses == pytest.approx([0.02, 0.08])
