"""The suites of optimisers, transforms, modifiers, schedules and initialisers fail for planted faults."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from attrs import define, frozen

from sigma_kernel import (
    GradientOptimiser,
    Initialiser,
    Modifier,
    Node,
    Optimiser,
    Parameter,
    Schedule,
    Slot,
    Spec,
    Transform,
    Update,
    functions as f,
    live,
)
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError
from sigma_kernel.graph.node import symbol
from sigma_testing import (
    Bowl,
    GradientOptimiserSuite,
    ModifierSuite,
    OptimiserSuite,
    RandomInitialiserSuite,
    ScheduleSuite,
    TransformSuite,
    Trial,
)
from sigma_testing.optimisers import run_steps

from .faults import check_caught


# -- optimisers --------------------------------------------------------------------------------------------------------
def momentum(g: Node, p: Node, v: Node, step: Node, rate: Node, friction: Node) -> tuple[Node, Node]:
    new = friction * v + g
    return p - rate * new, new


@define(eq=False)
class Heavy(GradientOptimiser):
    """Momentum, with a rule that may be wrong."""

    rule: Callable[..., tuple[Node, Node]] = momentum
    friction: float = live(0.9, low=0.0, below=1.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"velocity": Slot()}

    def update(self, gradient: Any, parameter: Any, slots: Any, step: Any, hyper: Any) -> Any:
        new, velocity = self.rule(
            gradient, parameter, slots["velocity"], step, hyper["learning_rate"], hyper["friction"]
        )
        return new, {"velocity": velocity}


class ForgetsItsSlot(Heavy):
    def update(self, *given: Any) -> Any:
        return super().update(*given)[0], {}


class KeepsItsStart(Heavy):
    """Measure the way from where training began, as optimisers do that estimate it."""

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"velocity": Slot(), "start": Slot(copies_parameter=True), "way": Slot()}

    def update(self, gradient: Any, parameter: Any, slots: Any, *given: Any) -> Any:
        new, own = super().update(gradient, parameter, slots, *given)
        return new, {**own, "start": slots["start"], "way": f.abs(new - slots["start"])}


class NeverReadsItsStart(KeepsItsStart):
    def update(self, gradient: Any, parameter: Any, slots: Any, *given: Any) -> Any:
        new, own = super().update(gradient, parameter, slots, *given)
        return new, {**own, "way": f.abs(new)}


class ByOrder(Heavy):
    def build(self, objective: Any) -> Update:
        made = super().build(objective)
        scaled = {a: p * (1.0 - 1e-3 * i) for i, (a, p) in enumerate(made.parameters.items())}
        return Update(scaled, made.slots)


class IgnoresTransforms(Heavy):
    def transform_objective(self, objective: Any) -> Any:
        return objective


class KeepsSlotsOfTransforms(Heavy):
    def complete_update(self, update: Update, objective: Any) -> Update:
        done = super().complete_update(update, objective)
        return Update(done.parameters, {at: objective.slot(*at) if "." in at[1] else x for at, x in done.slots.items()})


class MovesWhatIsFrozen(Heavy):
    def build(self, objective: Any) -> Update:
        made = super().build(objective)
        return Update(
            {**made.parameters, "0-dense.biases": objective.fixed.get("0-dense.biases", 1.0) * 0.9}, made.slots
        )


class Noisy(Heavy):
    def update(self, gradient: Any, *given: Any) -> Any:
        return super().update(gradient * (1.0 + 1e-9 * float(np.random.default_rng().random())), *given)


@frozen
class OneCount:
    """An objective that counts the updates of the first parameter for all."""

    objective: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objective, name)

    def updates(self, address: str) -> Node:
        found: Node = self.objective.updates(next(iter(self.objective.parameters)))
        return found


class CountsForAll(Heavy):
    def build(self, objective: Any) -> Update:
        return super().build(OneCount(objective))


class SharesTheRate(Heavy):
    def update(self, gradient: Any, parameter: Any, slots: Any, step: Any, hyper: Any) -> Any:
        return super().update(gradient, parameter, slots, step, {**hyper, "learning_rate": self.learning_rate})


@define(eq=False)
class WeighsByRate(Heavy):
    """Momentum of gradients weighed by a power of the rate, relative to the greatest rate so far."""

    power: float = live(2.0, low=0.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"velocity": Slot(), "greatest": Slot(0.0)}

    def update(self, gradient: Any, parameter: Any, slots: Any, step: Any, hyper: Any) -> Any:
        before = slots["greatest"]
        greatest = f.maximum(before, hyper["learning_rate"])
        share = f.where(f.greater(before, 0.0), before / f.maximum(greatest, 1e-30), 1.0) ** hyper["power"]
        new, velocity = momentum(
            gradient, parameter, slots["velocity"] * share, step, hyper["learning_rate"], hyper["friction"]
        )
        return new, {"velocity": velocity, "greatest": greatest}


EXPECTED = "test_it_is_what_others_compute"
OPTIMISERS: dict[str, tuple[Callable[[], GradientOptimiser], str]] = {
    "right": (Heavy, ""),
    "right, with a slot that stays where training began": (KeepsItsStart, ""),
    "right, with a setting that matters while the rate varies": (WeighsByRate, ""),
    "a copy that nothing reads": (NeverReadsItsStart, "test_every_slot_is_returned_and_updated"),
    "a slot that is never returned": (ForgetsItsSlot, "test_every_slot_is_returned_and_updated"),
    "a slot that is never updated": (
        lambda: Heavy(rule=lambda g, p, v, step, rate, friction: (p - rate * g * friction, v)),
        "test_every_slot_is_returned_and_updated"),
    "a setting that is ignored": (
        lambda: Heavy(rule=lambda g, p, v, step, rate, friction: momentum(g, p, v, step, rate, 0.9 + friction * 0.0)),
        "test_every_live_setting_has_an_effect"),
    "a constant bias": (
        lambda: Heavy(rule=lambda g, *rest: momentum(g + 0.1, *rest)),
        "test_it_moves_by_its_gradients_and_parameters_alone"),
    "the order of parameters": (ByOrder, "test_the_order_of_parameters_does_not_matter"),
    "wrong for large gradients": (
        lambda: Heavy(rule=lambda g, *rest: momentum(f.clip(g, -100.0, 100.0), *rest)), EXPECTED),
    "wrong for small gradients": (
        lambda: Heavy(rule=lambda g, *rest: momentum(f.where(f.less(f.abs(g), 1e-3), 0.0, g), *rest)), EXPECTED),
    "wrong at the first step": (
        lambda: Heavy(rule=lambda g, p, v, step, *rest: momentum(
            g * f.where(f.equal(step, 1.0), 1.1, 1.0), p, v, step, *rest)), EXPECTED),
    "wrong from the third step on": (
        lambda: Heavy(rule=lambda g, p, v, step, *rest: momentum(
            g * f.where(f.greater(step, 2.0), 1.1, 1.0), p, v, step, *rest)), EXPECTED),
    "one count for all": (
        lambda: CountsForAll(rule=lambda g, p, v, step, *rest: momentum(
            g * f.where(f.greater(step, 10.0), 1.1, 1.0), p, v, step, *rest)),
        "test_a_released_parameter_takes_the_steps_of_a_new_one"),
    "uphill": (lambda: Heavy(rule=lambda g, *rest: momentum(-g, *rest)), "test_the_loss_falls"),
    "no transforms": (IgnoresTransforms, "test_transforms_act_or_are_refused"),
    "transforms that are not updated": (KeepsSlotsOfTransforms, "test_transforms_act_or_are_refused"),
    "a frozen parameter": (MovesWhatIsFrozen, "test_frozen_parameters_are_untouched"),
    "a division by the gradient": (
        lambda: Heavy(rule=lambda g, *rest: momentum(g * g / g, *rest)),
        "test_a_zero_gradient_keeps_all_values_finite"),
    "random numbers": (Noisy, "test_two_builds_give_the_same_graph"),
    "one precision": (
        lambda: Heavy(rule=lambda g, p, v, *rest: (f.cast(momentum(g, p, v, *rest)[0], "float32"), v + g)),
        "test_shapes_and_dtypes_stay_as_they_are"),
    "one rate for all": (SharesTheRate, "test_settings_of_one_parameter_apply_to_it_only"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_fault_in_an_optimiser_is_caught(name: str) -> None:
    class Suite(GradientOptimiserSuite):
        def make(self) -> GradientOptimiser:
            return OPTIMISERS[name][0]()

        def expected(self, start: np.ndarray, gradients: np.ndarray) -> np.ndarray:
            steps = range(len(gradients))
            velocity = [sum(0.9 ** (n - i) * gradients[i] for i in range(n + 1)) for n in steps]
            return np.asarray(start - 0.01 * np.cumsum(velocity, axis=0))

    check_caught(Suite(), OPTIMISERS[name][1])


@define(eq=False)
class Aware(Optimiser):
    """The gradient at the worst point nearby, with a rule that may be wrong."""

    rule: Callable[..., tuple[Any, Any]] = lambda p, g, norm, rate, radius: (p + radius * g / norm, rate)
    learning_rate: float = live(0.1, low=0.0)
    radius: float = live(0.05, low=0.0)

    def build(self, objective: Any) -> Update:
        here = objective.gradients()
        norm = f.sqrt(sum((f.sum(g * g) for g in here.values()), start=1e-30))
        points = {
            a: self.rule(p, here[a], norm, *(objective.setting(a, n) for n in ("learning_rate", "radius")))
            for a, p in objective.parameters.items()
        }
        there = objective.gradients({a: point for a, (point, _) in points.items()})
        return Update({a: p - points[a][1] * there[a] for a, p in objective.parameters.items()})


STEPS = "test_its_steps_are_what_others_compute"
OVERRIDING: dict[str, tuple[Callable[[], Optimiser], str]] = {
    "right": (Aware, ""),
    "half the radius": (lambda: Aware(lambda p, g, norm, rate, radius: (p + 0.5 * radius * g / norm, rate)), STEPS),
    "the norm of the square": (lambda: Aware(lambda p, g, norm, rate, radius: (p + radius * g / norm**2, rate)), STEPS),
    "the other side": (lambda: Aware(lambda p, g, norm, rate, radius: (p - radius * g / norm, rate)), STEPS),
    "a rate that is a little too large": (
        lambda: Aware(lambda p, g, norm, rate, radius: (p + radius * g / norm, rate * (1.0 + 1e-5))), STEPS),
    "short gradients only": (
        lambda: Aware(lambda p, g, norm, rate, radius: (p + radius * g / norm, f.where(f.less(norm, 10.0), rate, 0.0))),
        STEPS),
}  # fmt: skip


class AwareSuite(OptimiserSuite):
    def make(self) -> Optimiser:
        return Aware()

    def expected_steps(self, bowl: Bowl) -> list[np.ndarray]:
        points = [bowl.start]
        for _ in range(3):
            slope = bowl.gradient(points[-1])
            points.append(points[-1] - 0.1 * bowl.gradient(points[-1] + 0.05 * slope / np.linalg.norm(slope)))
        return points[1:]


@pytest.mark.parametrize("name", OVERRIDING)
def test_a_fault_in_an_optimiser_that_overrides_build_is_caught(name: str) -> None:
    class Suite(AwareSuite):
        def make(self) -> Optimiser:
            return OVERRIDING[name][0]()

    check_caught(Suite(), OVERRIDING[name][1])


def test_values_that_are_expected_and_wrong_are_caught_as_well() -> None:
    class Suite(AwareSuite):
        def expected_steps(self, bowl: Bowl) -> list[np.ndarray]:
            return [*super().expected_steps(bowl)[:-1], bowl.start]

    class Nothing(AwareSuite):
        def expected_steps(self, bowl: Bowl) -> list[np.ndarray]:
            return []

    for suite, said in ((Suite(), "step 3"), (Nothing(), "must return the parameter after each of some steps")):
        with pytest.raises(AssertionError, match=said):
            suite.test_its_steps_are_what_others_compute(1.0)


class DeclaresNodes(Heavy):
    def slots(self, parameter: Spec) -> Any:
        return {"velocity": symbol(parameter.shape)}


class ReturnsAnotherSlot(Heavy):
    def update(self, *given: Any) -> Any:
        new, slots = super().update(*given)
        return new, {**slots, "momentum": new}


class ReadsAnotherSlot(Heavy):
    def update(self, gradient: Any, parameter: Any, slots: Any, *given: Any) -> Any:
        return super().update(gradient, parameter, {"velocity": slots["momentum"]}, *given)


class Abbreviates(Heavy):
    def update(self, gradient: Any, parameter: Any, slots: Any, step: Any, hyper: Any) -> Any:
        return parameter - hyper["lr"] * gradient, slots


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (DeclaresNodes, "slots() must return a Slot for each name"),
        (ReturnsAnotherSlot, "update() returns momentum, which slots() does not declare (declared are friction, "),
        (ReadsAnotherSlot, "'momentum' is neither a slot nor a live setting (declared are friction, "),
        (Abbreviates, "'lr' is neither a slot nor a live setting (declared are friction, learning_rate, updates, "),
    ],
)
def test_an_optimiser_with_another_name_or_type_is_told_what_to_change(
    made: type[GradientOptimiser], said: str
) -> None:
    for run in (lambda: Trial(made()), lambda: run_steps(made(), np.ones(2), np.ones((1, 2)))):
        with pytest.raises(SigmaComponentError, match=re.escape(said)):
            run()


@define(eq=False)
class Whole(Optimiser):
    """Steps with a rate of the whole optimiser, which is asked for by a name that may be none of a live setting."""

    rate: float = live(0.5, low=0.0, below=1.0)
    plain: float = 0.5
    asked: str = "rate"

    def build(self, objective: Any) -> Update:
        rate = objective.setting("", self.asked) - f.exp(objective.log_setting("", "rate")) * 0.5
        return Update({a: objective.parameters[a] - rate * g for a, g in objective.gradients().items()})


def test_the_setting_of_the_whole_optimiser_is_the_same_for_each_parameter() -> None:
    class Suite(OptimiserSuite):
        def make(self) -> Optimiser:
            return Whole()

        def expected_steps(self, bowl: Bowl) -> list[np.ndarray]:
            return [bowl.start - 0.25 * bowl.gradient(bowl.start)]

    check_caught(Suite(), "")
    first, other = "0-dense.weights", "1-dense.weights"
    usual, whole, last = (Trial(Whole(), overrides=x) for x in ({}, {(first, "rate"): 0.8}, {(other, "rate"): 0.8}))
    for trial in (usual, whole, last):
        trial.run(1)
    assert {a for a in usual.values if not np.array_equal(usual.values[a], whole.values[a])} == {*usual.values}
    assert {a for a in usual.values if not np.array_equal(usual.values[a], last.values[a])} == set()


@pytest.mark.parametrize("asked", ["plain", "rat"])
def test_a_trial_refuses_a_setting_that_is_not_live_as_a_run_does(asked: str) -> None:
    for run in (lambda x: Trial(x), lambda x: run_steps(x, np.ones(2), np.ones((1, 2)))):
        with pytest.raises(SigmaConfigError, match=f"Whole has no live setting '{asked}'. Declare it with live"):
            run(Whole(asked=asked))


# -- transforms and modifiers ------------------------------------------------------------------------------------------
@define(eq=False)
class Clips(Transform):
    rule: Callable[[Node, Any, int], Node] = lambda g, limit, place: f.clip(g, -limit, limit)
    limit: float = live(0.5, low=0.0)

    def apply(self, gradients: Any, objective: Any, owner: str) -> Any:
        limit = objective.setting(owner, "limit")
        own = self.select_gradients(gradients, objective)
        return {**gradients, **{a: self.rule(g, limit, place) for place, (a, g) in enumerate(own.items())}}


class ClipsAll(Clips):
    def select_gradients(self, gradients: Any, objective: Any) -> Any:
        return gradients


TRANSFORMS: dict[str, tuple[Callable[[], Transform], str]] = {
    "right": (Clips, ""),
    "every gradient": (ClipsAll, "test_gradients_that_do_not_match_are_untouched"),
    "a setting that is ignored": (
        lambda: Clips(rule=lambda g, limit, place: f.clip(g, -0.5, 0.5 + 0.0 * limit)),
        "test_every_live_setting_has_an_effect"),
    "the order of gradients": (
        lambda: Clips(rule=lambda g, limit, place: f.clip(g, -limit, limit) * (1.0 + place)),
        "test_the_order_of_gradients_does_not_matter"),
    "a division by the norm": (
        lambda: Clips(rule=lambda g, limit, place: g * limit / f.sqrt(f.sum(g * g))),
        "test_vanishing_gradients_stay_finite"),
    "an exponential": (
        lambda: Clips(rule=lambda g, limit, place: f.clip(g, -limit, limit) + 0.0 * f.exp(f.abs(g))),
        "test_large_gradients_stay_finite"),
    "a sum": (
        lambda: Clips(rule=lambda g, limit, place: f.sum(g) * limit), "test_shapes_and_dtypes_stay_as_they_are"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_fault_in_a_transform_is_caught(name: str) -> None:
    class Suite(TransformSuite):
        def make(self) -> Transform:
            return TRANSFORMS[name][0]()

    check_caught(Suite(), TRANSFORMS[name][1])


@define(eq=False)
class Limits(Modifier):
    rule: Callable[[Node, Any], Node] = lambda p, most: f.clip(p, -most, most)
    most: float = live(2.0, low=0.0)

    def modify(self, parameter: Any, settings: Any) -> Any:
        return self.rule(parameter, settings["most"])


MODIFIERS: dict[str, tuple[Callable[[], Modifier], str]] = {
    "right": (Limits, ""),
    "a factor": (lambda: Limits(rule=lambda p, most: f.clip(p, -most, most) * 0.9),
        "test_modifying_twice_is_the_same_as_once_where_that_is_promised"),
    "a setting that is ignored": (lambda: Limits(rule=lambda p, most: f.clip(p, -2.0, 2.0)),
        "test_it_modifies_something_and_every_live_setting_has_an_effect"),
    "nothing": (lambda: Limits(rule=lambda p, most: p + most * 0.0),
        "test_it_modifies_something_and_every_live_setting_has_an_effect"),
    "a sum": (lambda: Limits(rule=lambda p, most: f.sum(p) * most), "test_shape_and_dtype_stay_as_they_are"),
    "a division by the norm": (lambda: Limits(rule=lambda p, most: p * most / f.sqrt(f.sum(p * p))),
        "test_shape_and_dtype_stay_as_they_are"),
    "matrices only": (lambda: Limits(rule=lambda p, most: f.clip(p, -most, most) @ np.eye(p.shape[1])),
        "test_shape_and_dtype_stay_as_they_are"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODIFIERS)
def test_a_fault_in_a_modifier_is_caught(name: str) -> None:
    class Suite(ModifierSuite):
        def make(self) -> Modifier:
            return MODIFIERS[name][0]()

    check_caught(Suite(), MODIFIERS[name][1])


def test_suites_name_the_remedies_for_a_live_setting_that_has_no_effect() -> None:
    class Steps(OptimiserSuite):
        def make(self) -> Optimiser:
            return Heavy(lambda g, p, v, step, rate, friction: (p - rate * g, v + g))

    class Gradients(TransformSuite):
        def make(self) -> Transform:
            return Clips(limit=1e9)

    class Values(ModifierSuite):
        def make(self) -> Modifier:
            return Limits(lambda p, most: f.clip(p, -2.0, f.maximum(most, 1e9)))

    tests = {
        "friction": Steps().test_every_live_setting_has_an_effect,
        "limit": Gradients().test_every_live_setting_has_an_effect,
        "most": Values().test_it_modifies_something_and_every_live_setting_has_an_effect,
    }
    for name, test in tests.items():
        rule = rf"{name} is ignored. Use it, declare it no more, or let make\(\) return an? \w+ .* another value of it"
        with pytest.raises(AssertionError, match=rule):
            test()


def test_a_live_setting_that_is_not_read_is_named() -> None:
    @define(eq=False)
    class Fixed(Whole):
        more: float = live(1.0)

    class Unread(OptimiserSuite):
        def make(self) -> Optimiser:
            return Fixed()

    with pytest.raises(AssertionError, match="but: more is not read. Read it, or declare it no more"):
        Unread().test_live_settings_are_inputs_within_their_ranges()


class Halved(Modifier):
    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        return parameter * 0.5


def test_a_modifier_that_only_watches_is_caught_if_it_changes_a_parameter() -> None:
    class Suite(ModifierSuite):
        idempotent = modifies = False

        def make(self) -> Modifier:
            return Halved()

    with pytest.raises(AssertionError, match="values around 100"):
        Suite().test_it_modifies_something_and_every_live_setting_has_an_effect()


# -- schedules ---------------------------------------------------------------------------------------------------------
class Falling(Schedule):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + iterations)


class BelowZero(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return 1.0 - iterations / 100.0


class Counted(Falling):
    calls = 0

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        self.calls += 1
        return super().factors(iterations, epochs) / self.calls


class FromTheFirst(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + iterations - iterations[0])


class Cached(Falling):
    def __init__(self) -> None:
        self.kept: dict[tuple[int, ...], np.ndarray] = {}

    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return self.kept.setdefault(tuple(iterations), super().factors(iterations, epochs))


class One(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return super().factors(iterations, epochs)[:1]


class Single(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return super().factors(iterations, epochs).astype(np.float32)


class InPlace(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        iterations += 1
        return 1.0 / iterations


class Exploding(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        return np.exp(iterations / 100.0)


SCHEDULES: dict[type[Schedule], str] = {
    Falling: "",
    BelowZero: "test_factors_are_not_negative",
    Counted: "test_a_long_burst_equals_many_short_bursts",
    FromTheFirst: "test_a_long_burst_equals_many_short_bursts",
    Cached: "test_factors_depend_on_the_clock_alone",
    One: "test_there_is_one_finite_factor_for_each_iteration",
    Single: "test_there_is_one_finite_factor_for_each_iteration",
    InPlace: "test_the_arguments_are_not_modified",
    Exploding: "test_factors_of_late_iterations_are_finite",
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_fault_in_a_schedule_is_caught(schedule: type[Schedule]) -> None:
    class Suite(ScheduleSuite):
        def make(self) -> Schedule:
            return schedule()

    with np.errstate(over="ignore"):
        check_caught(Suite(), SCHEDULES[schedule])


class AFloat(Falling):
    def factors(self, iterations: np.ndarray, epochs: np.ndarray) -> Any:
        return 0.5


@pytest.mark.parametrize(
    ("made", "said"), [(AFloat(), "must return an array, one factor per iteration (got 0.5)"), (0.5, "a Schedule (got")]
)
def test_a_float_in_the_place_of_a_schedule_or_its_factors_is_told_what_to_change(made: Any, said: str) -> None:
    class Suite(ScheduleSuite):
        def make(self) -> Schedule:
            return made  # type: ignore[no-any-return]

    with pytest.raises(AssertionError, match=re.escape(said)):
        Suite().test_there_is_one_finite_factor_for_each_iteration()
    check_caught(Suite(), "test_factors_of_late_iterations_are_finite")


# -- initialisers ------------------------------------------------------------------------------------------------------
@frozen
class Spread(Initialiser):
    """Normal numbers with a deviation of one over the root of the first fan."""

    rule: Callable[[str, Parameter, Any], np.ndarray] = lambda address, p, draws: draws.normal(p.shape) / p.fan_in**0.5

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        return self.rule(address, parameter, draws)


class Keeps(Spread):
    kept: Mapping[tuple[int, ...], np.ndarray] = {}

    def values(self, address: str, parameter: Parameter, draws: Any) -> np.ndarray:
        self.kept.setdefault(parameter.shape, super().values(address, parameter, draws))  # type: ignore[attr-defined]
        return self.kept[parameter.shape]


def _tiled(address: str, p: Parameter, draws: Any) -> np.ndarray:
    some = draws.normal((min(p.shape[0], 64), *p.shape[1:])) / p.fan_in**0.5
    return np.resize(some, p.shape)


def _vectors_wrong(address: str, p: Parameter, draws: Any) -> np.ndarray:
    return draws.normal(p.shape) / (1.0 if len(p.shape) == 1 else p.fan_in**0.5)


def _last_fan(address: str, p: Parameter, draws: Any) -> np.ndarray:
    return draws.normal(p.shape) / p.shape[-2:][0] ** 0.5


LAW = "test_values_of_large_parameters_have_the_mean_and_the_deviation"
INITIALISERS: dict[str, tuple[Callable[[], Initialiser], str]] = {
    "right": (Spread, ""),
    "its own random numbers": (
        lambda: Spread(lambda a, p, draws: np.random.default_rng().normal(size=p.shape) / p.fan_in**0.5),
        "test_the_same_seed_gives_the_same_values"),
    "no key": (
        lambda: Spread(lambda a, p, draws: np.random.default_rng(0).normal(size=p.shape) / p.fan_in**0.5),
        "test_another_seed_or_parameter_gives_other_values"),
    "no key for vectors": (
        lambda: Spread(lambda a, p, draws: draws.normal(p.shape) if len(p.shape) > 1 else np.ones(p.shape)),
        "test_another_seed_or_parameter_gives_other_values"),
    "a hash of the address": (
        lambda: Spread(lambda a, p, draws: draws.normal(p.shape) / p.fan_in**0.5 + hash(a) % 7919 * 1e-6),
        "test_another_process_draws_the_same_values"),
    "the number of the process": (
        lambda: Spread(lambda a, p, draws: draws.normal(p.shape) / p.fan_in**0.5 + os.getpid() * 1e-9),
        "test_another_process_draws_the_same_values"),
    "kept arrays": (Keeps, "test_returned_values_belong_to_the_caller"),
    "single precision": (
        lambda: Spread(lambda a, p, draws: (draws.normal(p.shape) / p.fan_in**0.5).astype(np.float32)),
        "test_values_have_the_parameters_shape_in_float64"),
    "a transposed shape": (
        lambda: Spread(lambda a, p, draws: draws.normal(p.shape[::-1])),
        "test_values_have_the_parameters_shape_in_float64"),
    "wrong for vectors": (lambda: Spread(_vectors_wrong), LAW),
    "wrong for kernels": (lambda: Spread(_last_fan), LAW),
    "wrong for large shapes": (lambda: Spread(_tiled), "test_all_parts_of_a_large_parameter_are_random"),
    "a shifted mean": (lambda: Spread(lambda a, p, draws: draws.normal(p.shape) / p.fan_in**0.5 + 0.1), LAW),
}  # fmt: skip


@pytest.mark.parametrize("name", INITIALISERS)
def test_a_fault_in_an_initialiser_is_caught(name: str) -> None:
    class Suite(RandomInitialiserSuite):
        def make(self) -> Initialiser:
            return INITIALISERS[name][0]()

        def deviation(self, parameter: Parameter) -> float:
            return float(parameter.fan_in**-0.5)

    check_caught(Suite(), INITIALISERS[name][1])
