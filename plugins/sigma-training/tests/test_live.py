"""Live values: rules, schedules, ranges; a change applies at the next boundary and does not recompile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field

from sigma_kernel import functions as f
from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Objective, Optimiser, Schedule, Transform, Update, live
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError
from sigma_kernel.graph.node import Node
from sigma_step.graphs import training_step
from sigma_step.model import LAYERS
from sigma_testing.null import NullBackend
from sigma_testing.steering import Sweep, state_bytes
from sigma_training.session.applying import Applier

Deep = Callable[..., Environment]
BY_LAYER = {"first": {"match": "1-*.*", "learning_rate": 0.2}, "biases": {"match": "**.bias", "learning_rate": 0.3}}


@pytest.mark.parametrize("value", [1e300, -1e300, np.float64(4e38)])
@pytest.mark.parametrize("pattern", ["trainer.**.by", "trainer.network.layers.1-dense.bias"])
def test_a_number_that_the_precision_cannot_hold_is_refused_before_it_is_queued(
    deep: Deep, pattern: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deep() as sigma:
        sigma.trainer("trainer").optimiser.transforms = {"scale": Scale()}
        sigma.prepare()
        before = state_bytes(sigma.trainer("trainer"))
        monkeypatch.setattr(Applier, "send", None)
        with pytest.raises(SigmaAddressError, match="is too large for float32. Choose a smaller number."):
            sigma.set(pattern, value)
        assert state_bytes(sigma.trainer("trainer")) == before


def test_a_number_is_accepted_if_the_precision_can_represent_it(deep: Deep) -> None:
    with deep(precision="float64") as sigma:
        sigma.trainer("trainer").optimiser.transforms = {"scale": Scale()}
        sigma.prepare()
        sigma.set("trainer.**.by", 1e300)
        assert sigma.get("trainer.optimiser.transforms.scale.by") == 1e300


@pytest.mark.parametrize("value", [[1.0, 1e300, 1.0, 1.0], [[1.0], [2.0, 3.0]], "banana", [True] * 4])
def test_arrays_that_do_not_fit_a_parameter_are_refused_before_they_are_queued(
    deep: Deep, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with deep() as sigma:
        sigma.prepare()
        before = state_bytes(sigma.trainer("trainer"))
        monkeypatch.setattr(Applier, "send", None)
        with pytest.raises(SigmaAddressError, match="trainer.network.layers.1-dense.bias: "):
            sigma.set("trainer.network.layers.1-dense.bias", value)
        assert state_bytes(sigma.trainer("trainer")) == before


@define
class Halving(Schedule):
    """Halves at each iteration, with a tenth in each epoch after the first."""

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return 0.5**iterations * 0.1 ** np.floor(epochs)


@define(eq=False)
class Scale(Transform):
    """Multiply all gradients."""

    by: float = live(1.0)

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        return {name: gradient * objective.setting(owner, "by") for name, gradient in gradients.items()}


@define(eq=False, kw_only=True)
class Watch(Hook):
    """Record the ratio of update to gradient of each parameter: its learning rate, without momentum."""

    every: TimeStep = every(1, "iteration")
    rates: list[dict[str, float]] = field(factory=list)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("gradients.**", "updates.**")

    def fire(self, context: HookContext) -> None:
        gradients, updates = (context.read(f"{what}.**") for what in ("gradients", "updates"))
        self.rates.append(
            {
                name.removeprefix("gradients."): round(float(-np.sum(updates[f"updates{name[9:]}"]) / np.sum(g)), 6)
                for name, g in gradients.items()
            }
        )


def _rates(deep: Deep, optimiser: Any, iterations: int = 3, operator: Any = None) -> list[dict[str, float]]:
    watch = Watch()
    with deep(operator, precision="float64", optimiser=optimiser, hooks={"watch": watch}) as sigma:
        sigma.trainer("trainer").fit(iterations=iterations)
    return watch.rates


# -- effective values --------------------------------------------------------------------------------------------------
def test_without_rules_every_parameter_has_the_value_of_its_group(deep: Deep, momentum: Any) -> None:
    (found, *_) = _rates(deep, momentum(momentum=0.0, learning_rate=0.07))
    assert set(found.values()) == {0.07}


def test_the_most_specific_rule_applies_to_each_parameter(deep: Deep, momentum: Any) -> None:
    (found, *_) = _rates(deep, momentum(momentum=0.0, settings=BY_LAYER))
    assert found == {"1-dense.weights": 0.2, "1-dense.bias": 0.3, "4-dense.weights": 0.1, "4-dense.bias": 0.3}


def test_the_later_of_equally_specific_rules_applies(deep: Deep, momentum: Any) -> None:
    rules = {name: {"match": "**.bias", "learning_rate": rate} for name, rate in (("a", 0.5), ("b", 0.25))}
    (found, *_) = _rates(deep, momentum(momentum=0.0, settings=rules))
    assert found["1-dense.bias"] == 0.25


def test_rules_can_match_the_kind_of_a_layer(deep: Deep, momentum: Any) -> None:
    (found, *_) = _rates(
        deep, momentum(momentum=0.0, settings={"x": {"match": "<dense>.weights", "learning_rate": 0.4}})
    )
    assert found == {"1-dense.weights": 0.4, "1-dense.bias": 0.1, "4-dense.weights": 0.4, "4-dense.bias": 0.1}


def test_the_effective_value_is_the_base_times_the_schedule(deep: Deep, momentum: Any) -> None:
    found = _rates(deep, momentum(momentum=0.0, schedules={"learning_rate": Halving()}, settings=BY_LAYER), 7)
    factors = [0.5**i * 0.1 ** (i // 5) for i in range(7)]
    assert [rates["4-dense.weights"] for rates in found] == pytest.approx([0.1 * x for x in factors], abs=1e-6)
    assert [rates["1-dense.weights"] for rates in found] == pytest.approx([0.2 * x for x in factors], abs=1e-6)


class Single(Sweep):
    """One iteration at a time."""

    def train(self, work: Any) -> None:
        while work.boundary():
            work.advance(1)
            work.settle()


def test_a_schedule_gives_the_same_bits_in_bursts_of_any_length(deep: Deep, momentum: Any) -> None:
    found = []
    for operator in (Sweep(), Single()):
        with deep(operator, optimiser=momentum(schedules={"learning_rate": Halving()})) as sigma:
            sigma.trainer("trainer").fit(epochs=2)
            found.append(state_bytes(sigma.trainer("trainer")))
    assert found[0] == found[1]


def test_effective_values_of_future_iterations_can_be_computed(deep: Deep, momentum: Any) -> None:
    with deep(optimiser=momentum(schedules={"learning_rate": Halving()})) as sigma:
        session = sigma.trainer("trainer").session
        session.set_state(evolve(session.state, moment=session.moment.advance(1)))
        steer = session.present.steps().steer(training_step(session.setup.model, 5), 2, offset=1)
        assert steer["optimiser.4-dense.bias.learning_rate"] == pytest.approx([0.1 * 0.5**2, 0.1 * 0.5**3])
        assert np.ndim(steer["optimiser.4-dense.bias.momentum"]) == 0


def test_settings_of_transforms_are_live(deep: Deep, momentum: Any) -> None:
    optimiser = momentum(momentum=0.0, transforms={"scale": Scale(by=3.0)})
    watch = Watch()
    with deep(precision="float64", optimiser=optimiser, hooks={"watch": watch}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=1)
        sigma.set("trainer.optimiser.transforms.scale.by", 2.0)
        trainer.fit(iterations=1)
    assert [rates["1-dense.bias"] for rates in watch.rates] == pytest.approx([0.3, 0.2], abs=1e-6)


@define(eq=False, kw_only=True)
class Whole(Optimiser):
    """Gradient descent at a rate of the whole optimiser, asked for by a name."""

    rate: float = live(0.1, low=0.0, below=1.0)
    asked: str = "rate"

    def build(self, objective: Objective) -> Update:
        rate = objective.setting("", self.asked) - 0.5 * f.exp(objective.log_setting("", "rate"))
        return Update({a: objective.parameters[a] - rate * g for a, g in objective.gradients().items()})


@pytest.mark.parametrize("frozen", ["", "1-dense.weights"])
def test_a_setting_of_the_whole_optimiser_is_live_and_the_same_for_all_parameters(deep: Deep, frozen: str) -> None:
    rules = {"x": {"match": frozen, "frozen": True}} if frozen else {}
    watch, optimiser = Watch(), Whole(settings=rules, schedules={"rate": Halving()})
    with deep(precision="float64", optimiser=optimiser, hooks={"watch": watch}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(iterations=1)
        sigma.set("trainer.optimiser.rate", 0.4)
        trainer.fit(iterations=1)
        assert sigma.get("trainer.optimiser.rate") == 0.4
    assert [{*rates.values()} for rates in watch.rates] == [{0.05}, {0.1}]  # half of 0.1, and of 0.4 times 0.5


def test_a_setting_of_the_whole_optimiser_that_is_not_live_is_refused_by_name(deep: Deep) -> None:
    with deep(optimiser=Whole(asked="rat")) as sigma, pytest.raises(SigmaConfigError) as error:
        sigma.trainer("trainer").fit(iterations=1)
    assert "optimiser: Whole has no live setting 'rat'. Did you mean 'rate'?" in str(error.value)


@define(eq=False)
class Weaker(Transform):
    """Scale the gradients by a setting that is asked for by a name."""

    factor: float = live(0.5)
    asked: str = "factor"

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Mapping[str, Node]:
        return {address: g * objective.setting(owner, self.asked) for address, g in gradients.items()}


def test_a_setting_of_a_transform_that_is_not_live_is_refused_by_name(deep: Deep, momentum: Any) -> None:
    with deep(optimiser=momentum(transforms={"weak": Weaker()})) as sigma:
        sigma.trainer("trainer").fit(iterations=1)
    wrong = momentum(transforms={"weak": Weaker(asked="facto")})
    with deep(optimiser=wrong) as sigma, pytest.raises(SigmaConfigError) as error:
        sigma.trainer("trainer").fit(iterations=1)
    assert "optimiser: Weaker has no live setting 'facto'. Did you mean 'factor'?" in str(error.value)


# -- freezing ----------------------------------------------------------------------------------------------------------
def test_frozen_parameters_are_untouched_bit_for_bit_and_have_no_slots(deep: Deep, momentum: Any) -> None:
    rules = {"all": {"match": "<dense>.*", "frozen": True}, "but": {"match": "4-dense.weights", "frozen": False}}
    with deep(optimiser=momentum(settings=rules)) as sigma:
        trainer = sigma.trainer("trainer")
        before = state_bytes(trainer)
        trainer.fit(epochs=2)
        after = state_bytes(trainer)
    changed = {name for name in before if before[name] != after[name] and name.startswith(LAYERS)}
    assert changed == {f"{LAYERS}4-dense.weights", f"{LAYERS}2-track.mean"}
    slots = {f"optimiser.slots.4-dense.weights.{name}" for name in ("velocity", "updates")}
    assert {name for name in before if "slots" in name} == slots


def test_freezing_one_parameter_does_not_affect_the_others(deep: Deep, momentum: Any) -> None:
    found = []
    for settings in ({}, {"x": {"match": "1-dense.bias", "frozen": True}}):
        with deep(optimiser=momentum(settings=settings)) as sigma:
            sigma.trainer("trainer").fit(iterations=1)
            found.append(state_bytes(sigma.trainer("trainer")))
    free, held = found
    own = {f"optimiser.slots.1-dense.bias.{name}" for name in ("velocity", "updates")}
    assert {n for n in free if free[n] != held.get(n)} == {*own, f"{LAYERS}1-dense.bias"}


def test_a_group_of_frozen_parameters_still_has_a_value(deep: Deep, momentum: Any) -> None:
    with deep(optimiser=momentum(settings={"x": {"match": "**", "frozen": True}})) as sigma:
        sigma.prepare()
        assert sigma.get("trainer.optimiser.learning_rate") == 0.1


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rat": 1.0}, "optimiser.settings.x.learning_rat: no such setting. Did you mean 'learning_rate'?"),
        ({"learning_rate": -1.0}, "optimiser.settings.x.learning_rate: must be at least 0 (got -1.0)."),
        ({"learning_rate": "banana"}, "must be a finite number (got 'banana')."),
        ({"learning_rate": np.nan}, "must be a finite number (got nan)."),
        ({"momentum": 1.0}, "must be at least 0 and less than 1 (got 1.0)."),
        ({"frozen": "no"}, "optimiser.settings.x.frozen: must be true or false (got 'no')."),
        ({"match": "9-*.*"}, "trainer.optimiser.settings.x: '9-*.*' matches no parameter."),
        ({"match": "<conv>.*"}, "trainer.optimiser.settings.x: '<conv>.*' matches no parameter."),
        ({"match": None, "frozen": True}, "has no pattern. Add match = '**'."),
    ],
)
def test_invalid_rules_are_refused(deep: Deep, momentum: Any, settings: Any, message: str) -> None:
    rule = {key: value for key, value in {"match": "**", **settings}.items() if value is not None}
    with deep(optimiser=momentum(settings={"x": rule})) as sigma:
        with pytest.raises((SigmaConfigError, SigmaAddressError)) as error:
            sigma.prepare()
        assert message in str(error.value)
        assert sigma.state == "created"


def test_a_schedule_of_an_unknown_setting_is_refused(deep: Deep, momentum: Any) -> None:
    with (
        deep(optimiser=momentum(schedules={"learning": Halving()})) as sigma,
        pytest.raises(
            SigmaConfigError, match="optimiser.schedules.learning: no such setting. Did you mean 'learning_rate'"
        ),
    ):
        sigma.prepare()


@pytest.mark.parametrize("value", ["banana", None, True, -0.1, 1.0, float("nan"), 10**400])
def test_a_live_value_that_does_not_fit_is_refused_and_nothing_changes(deep: Deep, value: Any) -> None:
    with deep() as sigma:
        sigma.prepare()
        before = dict(sigma.trainer("trainer").session.state.live.base)
        for pattern in ("trainer.optimiser.momentum", "**.momentum", "trainer.network.layers.3-dropout.rate"):
            with pytest.raises(SigmaAddressError, match="must be"):
                sigma.set(pattern, value)
        assert sigma.trainer("trainer").session.state.live.base == before


def test_a_value_without_limits_must_still_be_finite(deep: Deep) -> None:
    with deep() as sigma:
        sigma.prepare()
        with pytest.raises(SigmaAddressError, match="must be a finite number"):
            sigma.set("trainer.optimiser.learning_rate", float("inf"))
        assert sigma.get("trainer.optimiser.learning_rate") == 0.1


def test_an_unknown_live_value_suggests_similar_names(deep: Deep) -> None:
    with deep() as sigma:
        sigma.prepare()
        with pytest.raises(SigmaAddressError, match="Did you mean 'learning_rate'"):
            sigma.set("trainer.optimiser.learning_rat", 0.1)


# -- changes -----------------------------------------------------------------------------------------------------------
def test_setting_a_group_sets_all_members_and_setting_one_leaves_the_others(deep: Deep) -> None:
    with deep() as sigma:
        sigma.prepare()
        assert sigma.set("trainer.optimiser.learning_rate", 0.4) == ["trainer.optimiser.learning_rate"]
        assert {sigma.get(f"trainer.optimiser.{n}.learning_rate") for n in ("1-dense.bias", "4-dense.weights")} == {0.4}
        sigma.set("**.1-dense.bias.learning_rate", 0.2)
        assert sigma.get("trainer.optimiser.1-dense.bias.learning_rate") == 0.2
        assert sigma.get("trainer.optimiser.4-dense.weights.learning_rate") == 0.4
        assert len(sigma.set("**.learning_rate", 0.3)) == 5
        assert {value for _, value in sigma.registry.find("**.learning_rate")} == {0.3}


@define(eq=False, kw_only=True)
class Order(Hook):
    """Set a value after the second iteration."""

    every: TimeStep = every(2, "iteration")
    address: str = "optimiser.learning_rate"
    value: float = 0.01

    def fire(self, context: HookContext) -> None:
        if context.moment.iteration == 2:
            context.command("set", pattern=self.address, value=self.value)


def test_a_live_change_applies_at_the_next_boundary(deep: Deep, momentum: Any) -> None:
    watch = Watch()
    hooks = {"order": Order(), "watch": watch}
    with deep(precision="float64", optimiser=momentum(momentum=0.0), hooks=hooks) as sigma:
        sigma.trainer("trainer").fit(iterations=4)
    assert [rates["4-dense.weights"] for rates in watch.rates] == [0.1, 0.1, 0.01, 0.01]


class Counting(NullBackend):
    """Counts compilations."""

    def __init__(self) -> None:
        self.compiled = 0

    def lower(self, *arguments: Any) -> Any:
        self.compiled += 1
        return super().lower(*arguments)


@pytest.mark.parametrize(
    "address", ["optimiser.learning_rate", "optimiser.1-dense.bias.momentum", f"{LAYERS}3-dropout.rate"]
)
def test_a_live_change_does_not_recompile(deep: Deep, address: str) -> None:
    found = []
    for hooks in ({}, {"order": Order(address=address)}):
        backend = Counting()
        with deep(backend=backend, hooks=hooks, splits=["training"]) as sigma:
            losses = sigma.trainer("trainer").fit(epochs=2)["training.loss"]
            found.append((backend.compiled, losses.tobytes()))
    assert found[0][0] == found[1][0] == 2  # batches of 5, and of the remaining 3 rows
    assert found[0][1] != found[1][1]
