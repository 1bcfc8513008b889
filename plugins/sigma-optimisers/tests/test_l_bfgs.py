from __future__ import annotations

import itertools

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.errors import SigmaConfigError
from sigma_optimisers import LBFGS
from sigma_testing import OptimiserSuite, Sweep, Trial, small_environment

DRAW = np.random.default_rng(0)
ROOT = DRAW.normal(size=(5, 5))
FORM = ROOT @ ROOT.T + np.eye(5)
POINT = DRAW.normal(size=5)


class TestLBFGS(OptimiserSuite):
    def make(self):
        return LBFGS()


def rosenbrock(p):
    x = p["x"]
    n = x.shape[0]
    first, second = f.narrow(x, 0, 0, n - 1), f.narrow(x, 0, 1, n)
    return f.sum(100.0 * f.square(second - first * first) + f.square(1.0 - first))


def quadratic(p):
    away = p["x"] - POINT
    return 0.5 * f.sum(away * (FORM @ away))


def test_a_quadratic_function_of_five_numbers_is_minimised_in_fifteen_steps():
    trial = Trial(LBFGS(evaluations=10), quadratic, {"x": np.zeros(5)})
    trial.run(15)
    np.testing.assert_allclose(trial.values["x"], POINT, atol=1e-6)


def test_it_goes_along_the_valley_of_rosenbrock():
    trial = Trial(LBFGS(), rosenbrock, {"x": np.array([-1.2, 1.0])})
    losses = trial.run(40)
    assert losses[0] == pytest.approx(24.2)
    assert all(after <= before for before, after in itertools.pairwise(losses))
    np.testing.assert_allclose(trial.values["x"], 1.0, atol=1e-7)


@pytest.mark.parametrize("start", [[-1.2, 1.0, -1.2, 1.0], [2.0, -3.0, 0.5, 4.0]])
def test_every_step_satisfies_the_strong_wolfe_conditions(start):
    def loss(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def slope(x):
        return np.array([(loss(x + 1e-7 * e) - loss(x - 1e-7 * e)) / 2e-7 for e in np.eye(len(x))])

    trial = Trial(LBFGS(evaluations=20), rosenbrock, {"x": np.array(start)})
    for _ in range(20):
        before = trial.values["x"]
        trial.run(1)
        step = trial.values["x"] - before
        down = slope(before) @ step
        assert down < 0
        assert loss(trial.values["x"]) <= loss(before) + 1e-4 * down + 1e-9
        assert abs(slope(trial.values["x"]) @ step) <= 0.9 * abs(down) + 1e-5
        np.testing.assert_allclose(trial.slots["x", "steps"][-1], step, rtol=1e-9, atol=1e-15)


def test_the_first_trial_is_as_short_as_the_gradient_is_steep():
    """The step is the first trial: the slope of a plane is the same everywhere."""
    trial = Trial(LBFGS(evaluations=1), lambda p: f.sum(p["x"]) * 2.0, {"x": np.zeros(3)})
    trial.run(1)
    assert trial.values["x"] == pytest.approx(-2.0 / 6.0)


def test_a_pair_without_curvature_is_not_kept():
    trial = Trial(LBFGS(), lambda p: f.sum(p["x"]), {"x": np.zeros(3)})
    trial.run(2)
    assert (trial.values["x"] < 0).all()
    assert not trial.slots["x", "steps"].any()


def test_the_oldest_pair_is_dropped():
    trial = Trial(LBFGS(history=3), rosenbrock, {"x": np.array([-1.2, 1.0])})
    seen = []
    for _ in range(5):
        trial.run(1)
        seen.append(trial.slots["x", "steps"][-1])
    np.testing.assert_array_equal(trial.slots["x", "steps"], seen[-3:])


def test_it_comes_back_from_where_the_loss_is_not_a_number():
    """The first trials of a barrier function are beyond its barrier."""
    trial = Trial(LBFGS(100.0), lambda p: f.sum(-f.log(p["x"]) - f.log(3.0 - p["x"])), {"x": np.array([0.5, 2.9])})
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = trial.run(40)
    assert np.isfinite(losses).all()
    np.testing.assert_allclose(trial.values["x"], 1.5, atol=1e-6)


def test_a_point_without_a_gradient_stays():
    trial = Trial(LBFGS(), quadratic, {"x": POINT})
    trial.run(3)
    assert trial.values["x"].tolist() == POINT.tolist()


def test_several_parameters_are_one_vector():
    """The curvature along one parameter counts for the other."""
    whole = Trial(LBFGS(), lambda p: rosenbrock({"x": p["x"]}), {"x": np.array([-1.2, 1.0])})
    parts = Trial(
        LBFGS(), lambda p: rosenbrock({"x": f.concat(p["a"], p["b"], axis=0)}), {"b": np.ones(1), "a": np.array([-1.2])}
    )
    np.testing.assert_allclose(parts.run(15), whole.run(15), rtol=1e-9)


def test_a_rate_of_0_holds_a_parameter():
    trial = Trial(
        LBFGS(),
        lambda p: quadratic(p) + f.sum(p["y"]),
        {"x": np.zeros(5), "y": np.ones(1)},
        {("y", "learning_rate"): 0.0},
    )
    trial.run(12)
    assert trial.values["y"].tolist() == [1.0]
    np.testing.assert_allclose(trial.values["x"], POINT, atol=1e-5)


@pytest.mark.parametrize("setting", ["history", "evaluations"])
@pytest.mark.parametrize("value", [0, 1.5, True, None])
def test_its_numbers_are_whole_and_from_1_on(setting, value):
    with pytest.raises(SigmaConfigError, match=f"{setting}: must be"):
        LBFGS(**{setting: value})


def test_a_plane_is_fitted_to_all_rows():
    with small_environment(Sweep(), batch_size=23) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = LBFGS()
        trainer.fit(epochs=12)
        found = np.asarray(sigma.get("trainer.network.layers.weights"))
    np.testing.assert_allclose(found, [[1.0], [-2.0], [0.5]], atol=1e-4)
