"""Hinge losses, binary and over classes, against loops over their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Hinge, MultiClassHinge
from sigma_testing import CostSuite

from .costing import cost, predicted, slopes, totals

DRAW = np.random.default_rng(0)
Y, ANSWERS = DRAW.normal(size=(6, 3)), DRAW.integers(0, 2, (6, 3))
LABELS, ROWS = DRAW.integers(0, 3, 6).astype(np.int32), np.array([1.0, 0.0, 2.5, 0.25, 1.0, 2.0])


class TestHinge(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        return Hinge(0.5)

    def arrays(self, batch):
        scores, targets = super().arrays(batch)
        return scores, np.sign(targets)


class TestSquaredHinge(TestHinge):
    def make(self):
        return Hinge(power=2)


class TestMultiClassHinge(CostSuite):
    inputs = (Spec((2, 3)), Spec((2,), "int32"))

    def make(self):
        return MultiClassHinge(0.5)


class TestSquaredHingeOfTheWorstClass(CostSuite):
    inputs = (Spec((3,)), Spec((), "int32"))

    def make(self):
        return MultiClassHinge(power=2, over="worst")


def by_hand(margin, power, over):
    """Return the loss of each row."""
    rows = []
    for scores, label in zip(Y, LABELS, strict=True):
        terms = [max(0.0, margin - scores[label] + scores[c]) ** power for c in range(3) if c != label]
        rows.append(max(terms) if over == "worst" else sum(terms) / 3)
    return np.array(rows)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0])
def test_a_binary_hinge_is_the_mean_over_all_elements(margin, power):
    signs = np.where(ANSWERS, 1.0, -1.0)
    losses = np.maximum(0.0, margin - signs * Y) ** power
    for targets in (ANSWERS, ANSWERS.astype(bool), signs):
        assert cost(Hinge(margin, power=power), Y, targets) == pytest.approx(losses.mean(), rel=1e-13)
    each = ROWS[:, None] * np.ones_like(losses)
    found = totals(Hinge(margin, power=power), Y, ANSWERS, weights=ROWS)
    assert found == pytest.approx((np.sum(losses * each), each.sum()), rel=1e-13)


@pytest.mark.parametrize("over", ["all", "worst"])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0])
def test_a_hinge_over_classes_is_the_mean_over_the_rows(margin, power, over):
    layer, losses = MultiClassHinge(margin, power=power, over=over), by_hand(margin, power, over)
    assert cost(layer, Y, LABELS) == pytest.approx(losses.mean(), rel=1e-13)
    assert cost(layer, Y, LABELS[:, None].astype(float)) == pytest.approx(losses.mean(), rel=1e-13)
    assert totals(layer, Y, LABELS, weights=ROWS) == pytest.approx((losses @ ROWS, ROWS.sum()), rel=1e-13)


def test_rows_beyond_the_margin_have_neither_loss_nor_slope():
    sure = np.array([[5.0, -5.0], [-5.0, 5.0]])
    np.testing.assert_array_equal(slopes(Hinge(), sure, np.array([[1, 0], [0, 1]])), np.zeros((2, 2)))
    np.testing.assert_array_equal(slopes(MultiClassHinge(), sure, np.array([0, 1], np.int32)), np.zeros((2, 2)))


def test_predictions_say_yes_for_positive_outputs_and_the_class_of_the_largest():
    np.testing.assert_array_equal(predicted(Hinge(), Y) > 0.5, Y > 0)
    found = predicted(MultiClassHinge(), Y)
    np.testing.assert_array_equal(found.argmax(1), Y.argmax(1))
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-13)


def test_targets_that_are_no_answers_are_refused_with_their_row():
    for wrong in (2, -2, 0.5, np.nan):
        with pytest.raises(SigmaDataError, match=r"row 1: .* is neither yes nor no\. Targets are 1 for yes"):
            Hinge().check(np.array([0.0, wrong]), Spec((1,)))
    with pytest.raises(SigmaDataError, match="row 1: label 3 is not one of 3 classes"):
        MultiClassHinge().check(np.array([0, 3]), Spec((3,)))


def test_targets_of_another_shape_are_refused():
    with pytest.raises(SigmaNetworkError, match=r"hinge\(\(3,\), \(2,\)\): section 'targets' must have"):
        cost(Hinge(), Y, np.zeros((6, 2)))
    with pytest.raises(SigmaDataError, match=r"rows of shape \(2,\); expected \(3,\)"):
        Hinge().check(np.zeros((6, 2)), Spec((3,)))
    with pytest.raises(SigmaNetworkError, match=r"multi_class_hinge\(\(3,\), \(3,\)\).*For binary outputs, use hinge"):
        cost(MultiClassHinge(), Y, ANSWERS)
    with pytest.raises(SigmaDataError, match=r"rows of shape \(3,\); expected \(\)"):
        MultiClassHinge().check(ANSWERS, Spec((3,)))


def test_settings_that_make_no_sense_are_refused():
    for made in (Hinge, MultiClassHinge):
        with pytest.raises(SigmaConfigError, match=f"{made.__name__}.margin: must be at least 0"):
            made(-1.0)
        with pytest.raises(SigmaConfigError, match=f"{made.__name__}.power: must be 1 or 2"):
            made(power=3)
    with pytest.raises(SigmaConfigError, match="MultiClassHinge.over: must be 'all' or 'worst'"):
        MultiClassHinge(over="best")
