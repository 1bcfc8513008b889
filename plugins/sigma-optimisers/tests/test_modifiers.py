"""Parameter modifiers: closed forms, and settings that change during training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Modifier, Objective, Optimiser, Update, live_settings
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Graph, interpret, numpy_namespace, symbol
from sigma_optimisers import (
    Adam,
    AdamW,
    Clip,
    DecoupledDecay,
    GradientDescent,
    MaxNorm,
    Momentum,
    NonNegative,
    ScaleParameter,
    SpectralNorm,
    StepDecay,
    UnitNorm,
)
from sigma_testing import ModifierSuite, Sweep, Trial, small_environment


class TestClip(ModifierSuite):
    def make(self) -> Modifier:
        return Clip(-0.5, 0.75)


class TestMaxNorm(ModifierSuite):
    def make(self) -> Modifier:
        return MaxNorm(2.0)


class TestScaleParameter(ModifierSuite):
    idempotent = False

    def make(self) -> Modifier:
        return ScaleParameter(0.5)


class TestUnitNorm(ModifierSuite):
    def make(self) -> Modifier:
        return UnitNorm()


class TestNonNegative(ModifierSuite):
    def make(self) -> Modifier:
        return NonNegative()


class TestDecoupledDecay(ModifierSuite):
    idempotent = False

    def make(self) -> Modifier:
        return DecoupledDecay(0.5)


WEIGHTS = np.array([[3.0, 0.3, 0.0], [4.0, -0.4, 0.0]])


def modified(modifier: Modifier, value: np.ndarray) -> np.ndarray:
    parameter = symbol(value.shape, str(value.dtype), "parameter")
    settings = {name: symbol((), "float64", name) for name in live_settings(modifier)}
    graph = Graph((parameter, *settings.values()), (modifier.modify(parameter, settings),))
    (result,) = interpret(graph, numpy_namespace())(value, *(np.array(getattr(modifier, name)) for name in settings))
    return np.asarray(result)


def test_only_units_whose_weights_exceed_the_limit_are_scaled():
    assert modified(MaxNorm(1.0), WEIGHTS) == pytest.approx(np.array([[0.6, 0.3, 0.0], [0.8, -0.4, 0.0]]))
    assert modified(MaxNorm(0.0), WEIGHTS) == pytest.approx(np.zeros((2, 3)))


def test_max_norm_can_treat_another_axis_as_units():
    rows = modified(MaxNorm(2.0, axis=0), WEIGHTS)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([2.0, 2.0])


def test_a_vector_is_one_unit():
    assert modified(MaxNorm(1.0), np.array([3.0, 4.0])) == pytest.approx([0.6, 0.8])


def test_an_axis_out_of_range_is_refused():
    with pytest.raises(
        SigmaNetworkError, match=r"max_norm\(\(2, 3\)\): has no axis 2. Set axis to one from -2 to 1, or narrow"
    ):
        modified(MaxNorm(1.0, axis=2), WEIGHTS)


@pytest.mark.parametrize("modifier", [MaxNorm(1.0, axis=3), UnitNorm(axis=3), SpectralNorm(axis=3)])
def test_the_parameter_without_that_axis_is_named(modifier: Modifier):
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = Adam(modifiers={"m": modifier})
        with pytest.raises(SigmaNetworkError, match=r"weights: \w+_norm\(\(3, 1\)\): has no axis 3\. Set axis"):
            trainer.fit(epochs=1)


def test_every_unit_has_norm_1_unless_it_is_0():
    assert modified(UnitNorm(), WEIGHTS) == pytest.approx(np.array([[0.6, 0.6, 0.0], [0.8, -0.8, 0.0]]))
    assert np.linalg.norm(modified(UnitNorm(axis=0), WEIGHTS), axis=1) == pytest.approx([1.0, 1.0])
    assert modified(UnitNorm(), np.array([3.0, 4.0])) == pytest.approx([0.6, 0.8])
    kernels = np.random.default_rng(0).normal(size=(4, 3, 2, 2))
    assert np.linalg.norm(modified(UnitNorm(axis=0), kernels).reshape(4, 12), axis=1) == pytest.approx(np.ones(4))
    with pytest.raises(SigmaNetworkError, match=r"unit_norm\(\(2, 3\)\): has no axis -3. Set axis to"):
        modified(UnitNorm(axis=-3), WEIGHTS)


def test_negative_elements_become_0():
    assert modified(NonNegative(), np.array([-1.0, -0.0, 0.0, 2.0])).tolist() == [0.0, 0.0, 0.0, 2.0]


def test_decoupled_decay_with_adam_is_adamw():
    halves = {"learning_rate": StepDecay("1 epoch", 0.5)}
    ours = Trial(Adam(0.05, schedules=halves, modifiers={"decay": DecoupledDecay(0.3)}), iterations_per_epoch=3)
    theirs = Trial(AdamW(0.05, schedules=halves, weight_decay=0.3), iterations_per_epoch=3)
    assert ours.run(9) == pytest.approx(theirs.run(9), rel=1e-12)


def test_decoupled_decay_is_a_share_of_the_parameter_before_the_update_and_no_part_of_the_velocity():
    decay = {"decay": DecoupledDecay(0.5)}
    trial = Trial(Momentum(0.1, modifiers=decay), lambda p: f.sum(p["x"]) * 3.0, {"x": np.array([2.0, -4.0])})
    trial.run(1)
    assert trial.values["x"] == pytest.approx([2.0 - 0.3 - 0.1, -4.0 - 0.3 + 0.2])
    assert trial.slots["x", "velocity"].tolist() == [3.0, 3.0]


@define(eq=False)
class Resting(Optimiser):
    def build(self, objective: Objective) -> Update:
        return Update(objective.parameters)


def test_decoupled_decay_without_a_learning_rate_is_refused():
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = Resting(modifiers={"decay": DecoupledDecay()})
        with pytest.raises(SigmaConfigError, match="optimiser: Resting has no live setting 'learning_rate'"):
            trainer.fit(epochs=1)


def test_elements_are_clipped():
    assert modified(Clip(-0.35, 3.5), WEIGHTS).tolist() == [[3.0, 0.3, 0.0], [3.5, -0.35, 0.0]]


def test_parameters_are_scaled():
    assert modified(ScaleParameter(0.5), WEIGHTS).tolist() == (WEIGHTS / 2).tolist()


def trained(modifiers: Mapping[str, Modifier], address: str = "", value: float = 0.0) -> np.ndarray:
    """Return the weights after an epoch, a change of one setting, and another epoch."""
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.optimiser = GradientDescent(0.05, modifiers=modifiers)
        trainer.fit(epochs=1)
        if address:
            sigma.set(f"trainer.optimiser.modifiers.{address}", value)
        trainer.fit(epochs=1)
        return np.asarray(sigma.get("trainer.network.layers.weights"))


def test_the_settings_of_modifiers_are_live():
    assert np.linalg.norm(trained({})) > 0.7
    assert np.linalg.norm(trained({"short": MaxNorm(0.5)})) == pytest.approx(0.5, rel=1e-6)
    assert np.linalg.norm(trained({"short": MaxNorm(0.5)}, "short.limit", 0.25)) == pytest.approx(0.25, rel=1e-6)
    assert trained({"off": ScaleParameter(1.0)}, "off.factor", 0.0).tolist() == np.zeros((3, 1)).tolist()
    assert np.abs(trained({"low": Clip(-0.1, 0.2)})).max() == pytest.approx(0.2)


def test_a_setting_out_of_range_changes_nothing():
    with pytest.raises(SigmaAddressError, match="limit"):
        trained({"short": MaxNorm(0.5)}, "short.limit", -1.0)
