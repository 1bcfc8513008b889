"""The maximum mean discrepancy, against loops over pairs, and against its value for normal distributions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import exp, isnan, sqrt
from typing import Any

import numpy as np
import pytest

from sigma_hooks import MaximumMeanDiscrepancy, MaximumMeanDiscrepancyMetric, maximum_mean_discrepancy
from sigma_kernel import Environment, Metric
from sigma_kernel.contracts import Hook
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_testing import HookSuite, MetricSuite, Sweep, small_regression

DRAW = np.random.default_rng(3)
MADE, REAL = DRAW.normal(size=(2, 9, 2, 3))


def by_pairs(made: np.ndarray, real: np.ndarray, bandwidth: float) -> float:
    """Return the unbiased estimate, pair by pair."""

    def kernel(a: np.ndarray, b: np.ndarray) -> float:
        return exp(-sum((x - y) ** 2 for x, y in zip(a.ravel(), b.ravel(), strict=True)) / (2 * bandwidth**2))

    def within(rows: np.ndarray) -> float:
        return float(np.mean([kernel(rows[i], rows[j]) for i, j in product(range(len(rows)), repeat=2) if i != j]))

    return within(made) + within(real) - 2 * float(np.mean([kernel(a, b) for a, b in product(made, real)]))


class TestMetric(MetricSuite):
    def make(self) -> Metric:
        return MaximumMeanDiscrepancyMetric(1.5)

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        return MADE.astype(np.float32), REAL.astype(np.float32)

    def expected(self, prediction: np.ndarray, targets: np.ndarray) -> Any:
        return by_pairs(prediction, targets, 1.5)


class TestHook(HookSuite):
    def make(self) -> Hook:
        return MaximumMeanDiscrepancy(bandwidth=2.0)

    def environment(self, hooks: Mapping[str, Hook]) -> Environment:
        return small_regression(Sweep(), hooks=hooks)


def value(made: np.ndarray, real: np.ndarray, bandwidth: float = 1.0) -> float:
    rows = np.concatenate([made.reshape(len(made), -1), real.reshape(len(real), -1)], axis=1)
    return MaximumMeanDiscrepancyMetric(bandwidth).value(rows, len(rows))


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 7.0])
def test_it_is_the_same_in_parts(monkeypatch, bandwidth):
    monkeypatch.setattr(maximum_mean_discrepancy, "TOGETHER", 20)
    assert value(MADE, REAL, bandwidth) == pytest.approx(by_pairs(MADE, REAL, bandwidth), rel=1e-9, abs=1e-12)


def test_normal_distributions_have_their_known_discrepancy():
    def expected(mean: float, variance: float, bandwidth: float) -> float:
        """Return the expectation of the kernel over a difference with this mean and variance."""
        spread = bandwidth**2 + variance
        return bandwidth / sqrt(spread) * exp(-(mean**2) / (2 * spread))

    made, real = DRAW.normal(0.0, 1.0, (4000, 1)), DRAW.normal(0.5, 2.0, (4000, 1))
    known = expected(0, 2, 0.8) + expected(0, 8, 0.8) - 2 * expected(0.5, 5, 0.8)
    assert value(made, real, 0.8) == pytest.approx(known, abs=0.006)
    assert abs(value(made, DRAW.normal(size=(4000, 1)), 0.8)) < 0.001


def test_the_order_of_rows_does_not_count():
    assert value(MADE, REAL[::-1]) == pytest.approx(value(MADE, REAL), rel=1e-12)


@pytest.mark.parametrize("made", [MADE[:1], np.full((2, 2, 3), np.nan), np.full((2, 2, 3), np.inf)])
def test_a_single_row_and_numbers_that_are_not_finite_have_no_discrepancy(made):
    assert isnan(value(made, REAL[: len(made)]))


def test_equal_rows_are_no_distance_apart():
    assert value(np.ones((5, 2)), np.ones((5, 2))) == 0.0
    assert value(np.ones((5, 2)), np.full((5, 2), 1e8)) == 2.0


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, float("inf"), float("nan")])
def test_a_bandwidth_is_positive(bandwidth):
    with pytest.raises(SigmaConfigError, match=r"MaximumMeanDiscrepancyMetric\.bandwidth: must"):
        MaximumMeanDiscrepancyMetric(bandwidth)


# -- compared with a section -------------------------------------------------------------------------------------------
def trainer(sigma: Environment, **settings: Any) -> Any:
    """Return a trainer of a network whose output leads to no cost, and of another that fits targets."""
    rows = DRAW.normal(size=(20, 3))
    return sigma.create_trainer(
        data={"training": {"inputs": rows, "noise": rows[:, :2], "targets": rows[:, :1]}},
        network="""
            input(2, section="noise") + output(3, name="made")
            input(3) + output(1, name="fitted") + squared_difference()
        """,
        optimiser="adam",
        epochs=1,
        hooks={"score": {"type": "maximum_mean_discrepancy", "on": "training", "output": "made", **settings}},
    )


def test_an_output_without_a_cost_is_compared_with_the_section_that_is_named():
    with Environment("sections", seed=1) as sigma:
        trained = trainer(sigma, section="inputs")
        trained.fit()
        rows = trained.data["training"]
        made = trained.predict({"noise": rows["noise"], "inputs": rows["inputs"]})["made"]
        found = trained.history["training.made.maximum_mean_discrepancy"][-1]
        assert found == pytest.approx(by_pairs(made, rows["inputs"], 1.0), rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "made: no cost compares this output with targets"),
        ({"section": "targets"}, r"predictions have shape \(\d+, 3\), and the section to compare with has \(\d+, 1\)"),
        ({"section": "input"}, "the network reads no section 'input'. Did you mean 'inputs'"),
    ],
)
def test_what_it_cannot_be_compared_with_is_named(settings, message):
    with Environment("wrong") as sigma, pytest.raises((SigmaNetworkError, SigmaConfigError), match=message):
        trainer(sigma, **settings).fit()
