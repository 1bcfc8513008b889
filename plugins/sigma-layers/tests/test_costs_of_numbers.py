"""Absolute difference, Huber, Poisson and Kullback-Leibler, against formulas written out with NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import AbsoluteDifference, Huber, KullbackLeibler, Poisson
from sigma_testing import CostSuite

from .costing import cost, predicted, slopes, totals

DRAW = np.random.default_rng(0)
Y, T = DRAW.normal(size=(2, 5, 3)) * 2
ROWS = np.array([1.0, 0.0, 2.5, 0.25, 1.0])
SHARES = np.exp(T) / np.exp(T).sum(-1, keepdims=True)


class TestAbsoluteDifference(CostSuite):
    inputs = (Spec((2, 3)), Spec((2, 3)))

    def make(self):
        return AbsoluteDifference()


class TestHuber(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))

    def make(self):
        return Huber(0.7)


class TestPoisson(CostSuite):
    inputs = (Spec((3,)), Spec((3,)))
    scales = (1e-3, 1.0, 30.0)  # exp(1000) is infinite in any precision

    def make(self):
        return Poisson()

    def arrays(self, batch):
        rates, targets = super().arrays(batch)
        return rates, np.floor(np.exp(targets))


class TestKullbackLeibler(CostSuite):
    inputs = (Spec((2, 3)), Spec((2, 3)))

    def make(self):
        return KullbackLeibler()

    def arrays(self, batch):
        scores, targets = super().arrays(batch)
        return scores, np.exp(targets) / np.exp(targets).sum(-1, keepdims=True)


def huber(e, delta):
    return np.where(abs(e) <= delta, e**2 / 2, delta * (abs(e) - delta / 2))


def divergence(y, t):
    logs = y - np.log(np.exp(y).sum(-1, keepdims=True))
    return np.sum(np.where(t > 0, t * (np.log(np.where(t > 0, t, 1)) - logs), 0), -1)


COSTS = [
    (AbsoluteDifference(), T, abs(Y - T)),
    (Huber(), T, huber(Y - T, 1.0)),
    (Huber(0.3), T, huber(Y - T, 0.3)),
    (Poisson(), np.floor(abs(T)), np.exp(Y) - np.floor(abs(T)) * Y),
    (KullbackLeibler(), SHARES, divergence(Y, SHARES)),
]


@pytest.mark.parametrize(("layer", "targets", "losses"), COSTS)
def test_a_cost_is_the_mean_of_its_formula(layer, targets, losses):
    assert cost(layer, Y, targets) == pytest.approx(losses.mean(), rel=1e-13)


@pytest.mark.parametrize(("layer", "targets", "losses"), COSTS)
def test_with_sample_weights_it_is_their_weighted_mean(layer, targets, losses):
    each = ROWS.reshape(-1, *[1] * (losses.ndim - 1)) * np.ones_like(losses)
    assert totals(layer, Y, targets, weights=ROWS) == pytest.approx((np.sum(losses * each), each.sum()), rel=1e-13)


@pytest.mark.parametrize("layer", [AbsoluteDifference(), Huber(), Poisson()])
def test_a_column_takes_flat_targets_and_refuses_other_shapes(layer):
    column, answers = Y[:, :1], np.array([0, 3, 1, 0, 2], np.int32)
    assert cost(layer, column, answers) == cost(layer, column, answers[:, None].astype(float))
    layer.check(answers, Spec((1,)))
    with pytest.raises(SigmaNetworkError, match=r"\(3,\), \(4,\)\): section 'targets' must have the output's shape"):
        cost(layer, Y, np.zeros((5, 4)))
    with pytest.raises(SigmaDataError, match=r"'targets' has rows of shape \(4,\); expected \(3,\)"):
        layer.check(np.zeros((5, 4)), Spec((3,)))


def test_the_smooth_l1_loss_is_a_scaled_huber_loss():
    e, beta = Y - T, 0.4
    smooth = np.where(abs(e) < beta, e**2 / (2 * beta), abs(e) - beta / 2)
    assert cost(Huber(beta), Y, T) / beta == pytest.approx(smooth.mean(), rel=1e-13)


def test_slopes_of_huber_end_at_delta():
    far = np.array([[-100.0, -2.0, -0.5, 0.0, 0.5, 2.0, 1e300]])
    found = slopes(Huber(2.0), far, np.zeros((1, 7))) * 7
    np.testing.assert_array_equal(found, [[-2.0, -2.0, -0.5, 0.0, 0.5, 2.0, 2.0]])


def test_equal_distributions_do_not_diverge_and_shares_of_zero_count_nothing():
    assert cost(KullbackLeibler(), np.log(SHARES), SHARES) == pytest.approx(0.0, abs=1e-15)
    assert cost(KullbackLeibler(), np.zeros((1, 4)), np.eye(4)[:1]) == pytest.approx(np.log(4), rel=1e-15)
    assert np.isfinite(slopes(KullbackLeibler(), np.zeros((1, 4)), np.eye(4)[:1])).all()


def test_predictions_are_probabilities_and_rates():
    np.testing.assert_allclose(predicted(KullbackLeibler(), np.log(SHARES)), SHARES, rtol=1e-13)
    np.testing.assert_allclose(predicted(Poisson(), Y), np.exp(Y), rtol=1e-15)


def test_targets_that_are_no_distributions_or_no_counts_are_refused_with_their_row():
    KullbackLeibler().check(SHARES, Spec((3,)))
    with pytest.raises(SigmaDataError, match="row 1: .* are not probabilities, which are at least 0 and add up to 1"):
        KullbackLeibler().check(np.array([[0.5, 0.5, 0.0], [0.5, 0.6, 0.0]]), Spec((3,)))
    for wrong in (-1.0, np.nan):
        with pytest.raises(SigmaDataError, match=r"row 1: .* is not a count\. Counts are at least 0"):
            Poisson().check(np.array([[0.0], [wrong]]), Spec((1,)))


@pytest.mark.parametrize("delta", [0, -1, float("nan"), "one"])
def test_a_delta_must_be_positive(delta):
    with pytest.raises(SigmaConfigError, match="Huber.delta: must be"):
        Huber(delta)
