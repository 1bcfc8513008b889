"""Settings of optimisers, transforms and schedules: ranges, addresses, intervals; and custom optimisers."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from attrs import define, evolve

import sigma_optimisers
from sigma_kernel import functions as f
from sigma_kernel.contracts import Optimiser, Slot, Update, live, live_settings
from sigma_kernel.errors import SigmaConfigError, SigmaError
from sigma_optimisers import (
    CMAES,
    L2,
    LBFGS,
    AccumulateGradients,
    Adam,
    ClipGlobalNorm,
    ClipValue,
    ConstantFactor,
    Cosine,
    Exponential,
    GradientDescent,
    RandomSearch,
    StepDecay,
    WarmUp,
)
from sigma_optimisers.plugin import OPTIMISERS, TRANSFORMS
from sigma_testing import START, OptimiserSuite, Sweep, Trial, small_environment, small_network

NAMES = [target for target, _ in (*OPTIMISERS.values(), *TRANSFORMS.values())]
SETTINGS = [(name, setting) for name in NAMES for setting in live_settings(getattr(sigma_optimisers, name)())]
SHARES = {"momentum", "decay", "beta1", "beta2"}


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
@pytest.mark.parametrize("value", [-1e-300, -1.0, inf, -inf, nan, "banana", None, True])
def test_a_setting_out_of_range_is_refused_by_name(name, setting, value):
    with pytest.raises(SigmaError, match=setting):
        getattr(sigma_optimisers, name)(**{setting: value})


@pytest.mark.parametrize(("name", "setting"), [pair for pair in SETTINGS if pair[1] in SHARES])
def test_a_share_of_one_or_more_is_refused(name, setting):
    make = getattr(sigma_optimisers, name)
    for value in (1.0, 1.5):
        with pytest.raises(SigmaError, match=setting):
            make(**{setting: value})
    assert getattr(make(**{setting: 1.0 - 2.0**-53}), setting) < 1.0


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_the_lower_end_of_a_range_is_inclusive(name, setting):
    assert getattr(getattr(sigma_optimisers, name)(**{setting: 0.0}), setting) == 0.0


def test_each_parameter_may_have_its_own_settings():
    """With a constant gradient, each of Adam's steps has the length of the learning rate."""
    start = {"0-dense.weights": np.zeros(2), "1-dense.weights": np.zeros(2)}
    rates = {("1-dense.weights", "learning_rate"): 0.5}
    trial = Trial(Adam(0.1), lambda p: f.sum(p["0-dense.weights"] + p["1-dense.weights"]), start, rates)
    trial.run(3)
    assert trial.values["0-dense.weights"] == pytest.approx(-0.3, rel=1e-7)
    assert trial.values["1-dense.weights"] == pytest.approx(-1.5, rel=1e-7)


def test_gradient_transforms_apply_in_order():
    clip, decay = ClipGlobalNorm(0.01), L2(10.0)
    first = Trial(GradientDescent(0.1, transforms={"clip": clip, "decay": decay}))
    second = Trial(GradientDescent(0.1, transforms={"decay": decay, "clip": clip}))
    first.run(1)
    second.run(1)
    change = [np.concatenate([(t.values[a] - START[a]).ravel() for a in START]) for t in (first, second)]
    assert np.linalg.norm(change[1]) == pytest.approx(0.1 * 0.01, rel=1e-6)
    assert np.linalg.norm(change[0]) > 1.0


def test_a_transform_excludes_frozen_parameters_from_the_norm():
    optimiser = GradientDescent(1.0, transforms={"clip": ClipGlobalNorm(0.01)})
    trial = Trial(optimiser, frozen=frozenset({"0-dense.weights", "0-dense.biases"}))
    trial.run(1)
    assert np.linalg.norm(trial.values["1-dense.weights"] - START["1-dense.weights"]) == pytest.approx(0.01, rel=1e-3)


@define(eq=False)
class SharpnessAware(Optimiser):
    """Foret et al., 2021: the gradient at the worst point nearby."""

    learning_rate: float = live(0.1, low=0.0)
    radius: float = live(0.05, low=0.0)

    def build(self, objective):
        gradients = objective.gradients()
        norm = f.sqrt(sum(f.sum(g * g) for g in gradients.values())) + 1e-12
        worst = {a: p + objective.setting(a, "radius") * gradients[a] / norm for a, p in objective.parameters.items()}
        there = objective.gradients(worst)
        rates = {a: objective.setting(a, "learning_rate") for a in there}
        return Update({a: p - rates[a] * there[a] for a, p in objective.parameters.items()})


class TestOptimiserWithTwoGradients(OptimiserSuite):
    def make(self):
        return SharpnessAware()


def test_an_optimiser_may_evaluate_gradients_at_another_point():
    """For half a square, the gradient at ``x + radius`` is ``x + radius``."""
    trial = Trial(SharpnessAware(0.1, 0.5), lambda p: f.sum(p["x"] * p["x"]) * 0.5, {"x": np.array([2.0])})
    trial.run(1)
    assert trial.values["x"] == pytest.approx(2.0 - 0.1 * 2.5, rel=1e-12)


@define(eq=False)
class Normed(Optimiser):
    """Steps of the length of the rate over all parameters; the lengths of gradients are added up."""

    learning_rate: float = live(0.1, low=0.0)

    def shared_slots(self):
        return {"total": Slot()}

    def build(self, objective):
        gradients = objective.gradients()
        norm = f.sqrt(sum(f.sum(g * g) for g in gradients.values())) + 1e-12
        moves = {a: objective.setting(a, "learning_rate") * g / norm for a, g in gradients.items()}
        slots = {("", "total"): objective.slot("", "total") + norm}
        return Update({a: p - moves[a] for a, p in objective.parameters.items()}, slots)


class TestOptimiserThatOverridesBuild(OptimiserSuite):
    def make(self):
        return Normed()


def test_transforms_act_on_the_gradients_of_an_optimiser_that_overrides_build():
    """The gradient of half a square with a factor is the parameter times this factor."""

    def penalised(parameters):
        return small_network(parameters) + sum(0.15 * f.sum(x * x) for x in parameters.values())

    ours, theirs = Trial(Normed(transforms={"decay": L2(0.3)})), Trial(Normed(), penalised)
    ours.run(5)
    theirs.run(5)
    assert ours.slots["", "total"] == pytest.approx(theirs.slots["", "total"], rel=1e-12)
    for address, value in theirs.values.items():
        np.testing.assert_allclose(ours.values[address], value, rtol=1e-12)


def test_updates_that_are_not_due_leave_the_slots_of_an_optimiser_that_overrides_build():
    slow, plain = Trial(Normed(transforms={"three": AccumulateGradients(3)})), Trial(Normed())
    for done in range(1, 10):
        slow.run(1)
        plain.run(done % 3 == 0)
        assert slow.slots["", "total"] == pytest.approx(plain.slots["", "total"], rel=1e-12), done
    np.testing.assert_allclose(slow.values["0-dense.biases"], plain.values["0-dense.biases"], rtol=1e-12)


def test_a_shared_slot_is_updated_with_the_parameters_that_do_not_wait():
    trial = Trial(Normed(transforms={"three": AccumulateGradients(3, match="0-dense.biases")}))
    trial.run(1)
    assert trial.slots["", "total"] > 0.0


@define(eq=False)
class EverySecond(GradientDescent):
    """Update in every second step."""

    def build(self, objective):
        odd = f.equal(f.mod(objective.iteration, 2.0), 1.0)
        return evolve(super().build(objective), due=dict.fromkeys(objective.parameters, odd))


@pytest.mark.parametrize(
    ("optimiser", "why"),
    [
        (LBFGS(), "build() computes gradients at other parameters too, untransformed."),
        (SharpnessAware(), "build() computes gradients at other parameters too, untransformed."),
        (CMAES(), "build() does not use the gradients that transforms change."),
        (RandomSearch(), "build() does not use the gradients that transforms change."),
        (EverySecond(), "build() and a transform delay updates of the same parameters."),
    ],
)
def test_an_optimiser_that_transforms_cannot_reach_refuses_them(optimiser, why):
    Trial(optimiser)
    with pytest.raises(SigmaConfigError) as error:
        Trial(evolve(optimiser, transforms={"wait": AccumulateGradients(2), "short": ClipGlobalNorm(1.0)}))
    remedy = "Leave out the transforms (wait, short), or use another optimiser."
    assert str(error.value) == f"{type(optimiser).__name__}: {why} {remedy}"


def test_a_run_names_the_optimiser_that_refuses_transforms():
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = LBFGS(transforms={"short": ClipGlobalNorm(1.0)})
        with pytest.raises(SigmaConfigError, match=r"^LBFGS: build\(\) computes gradients at other .* \(short\)"):
            trainer.fit(epochs=1)


def test_a_run_transforms_the_gradients_of_an_optimiser_that_overrides_build():
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = Normed(transforms={"short": ClipValue(1e-30)})
        trainer.fit(iterations=3)
        assert trainer.session.host("optimiser.slots.total") == pytest.approx(3e-12)  # three times the epsilon


@define(eq=False)
class Halving(Optimiser):
    """Halve the parameters if that lowers the loss, without any gradient."""

    def build(self, objective):
        halves = {address: node * 0.5 for address, node in objective.parameters.items()}
        better = objective.loss(halves) < objective.loss()
        return Update({a: f.where(better, halves[a], node) for a, node in objective.parameters.items()})


@pytest.mark.parametrize(("start", "end"), [(8.0, 1.0), (0.5, 0.5)])
def test_an_optimiser_may_evaluate_the_loss_at_another_point(start, end):
    trial = Trial(Halving(), lambda p: f.sum((p["x"] - 1.0) * (p["x"] - 1.0)), {"x": np.array([start])})
    trial.run(6)
    assert trial.values["x"].tolist() == [end]


def test_a_changed_setting_needs_no_new_graph():
    assert Trial(Adam(0.1)).graph == Trial(evolve(Adam(0.1), learning_rate=0.3, beta1=0.5)).graph


@pytest.mark.parametrize("text", ["5", "epochs", "0 epochs", "-3 epochs", "1.5 epochs", "3 weeks", "", "nan epochs"])
@pytest.mark.parametrize("make", [StepDecay, Cosine, WarmUp, lambda text: Exponential(text, 0.9)])
def test_an_interval_needs_a_whole_number_and_a_unit(make, text):
    with pytest.raises(SigmaConfigError, match="epochs"):
        make(text)


@pytest.mark.parametrize("text", ["3 seconds", "100 samples", 5, None])
def test_a_schedule_counts_epochs_or_iterations(text):
    with pytest.raises(SigmaConfigError, match="epochs"):
        StepDecay(text)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: ConstantFactor(-0.1), "factor"), (lambda: StepDecay("1 epoch", float("nan")), "factor"),
        (lambda: Exponential("1 epoch", -1e-9), "factor"), (lambda: Cosine("1 epoch", 1.0 + 1e-15), "floor"),
        (lambda: WarmUp("1 epoch", -0.5), "start"),
    ],
)  # fmt: skip
def test_a_number_out_of_range_is_refused_by_name(make, name):
    with pytest.raises(SigmaError, match=f"{name}: must be"):
        make()
