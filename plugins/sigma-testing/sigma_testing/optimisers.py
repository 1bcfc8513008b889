"""Conformance suites for optimisers, transforms, modifiers and schedules, and a small objective to test them on.

Inherit one in a plugin's tests and override ``make``::

    class TestAdam(GradientOptimiserSuite):
        def make(self):
            return Adam(0.01)

        def expected(self, start, gradients):
            ...
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import define, evolve, field

from sigma_kernel import functions as f
from sigma_kernel.contracts import (
    GradientOptimiser,
    Modifier,
    Objective,
    Optimiser,
    Schedule,
    Slot,
    Transform,
    Transformed,
    Update,
)
from sigma_kernel.contracts.optimisation import COUNT
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError
from sigma_kernel.graph.differentiation import gradient
from sigma_kernel.graph.meaning import interpret
from sigma_kernel.graph.namespace import numpy_namespace
from sigma_kernel.graph.node import Graph, Node, Spec, constant, symbol
from sigma_kernel.graph.random import Key, Streams
from sigma_kernel.network.tracing import LOG, live_settings
from sigma_testing.determinism import DeterministicSuite

Loss = Callable[[Mapping[str, Node]], Node]
Values = Mapping[str, np.ndarray]
Setting = tuple[str, str]  # an address, or ``transforms.<name>``, and the name of a live setting

ZERO = constant(0, "uint32")
RATE = "learning_rate"
USE = "Use it, declare it no more, or let make() return"
STEPS = "an optimiser whose first steps depend on it, with another value of it or of others"
GRADIENTS = "a transform with another value of it, such as a limit below 100: gradients are START times 100"
VALUES = "a modifier with another value of it, such as a limit below 100: the values are around 100"

# -- a small objective -------------------------------------------------------------------------------------------------
START: Values = {
    "0-dense.weights": np.array([[0.5, -1.5, 2.0, 0.25], [-0.75, 1.0, 0.0, -2.0], [1.25, 0.1, -0.4, 0.8]]),
    "0-dense.biases": np.array([0.3, -0.2, 0.0, 1.0]),
    "1-dense.weights": np.array([[1.0, -0.5], [0.7, 0.2], [-1.1, 0.9], [0.4, -0.3]]),
}


def small_network(parameters: Mapping[str, Node]) -> Node:
    """Return the mean squared error of two dense layers on three one-hot samples, all with targets of 0.5."""
    hidden = f.tanh(parameters["0-dense.weights"] + parameters["0-dense.biases"])
    error = hidden @ parameters["1-dense.weights"] - 0.5
    return f.mean(error * error)


def _separable_loss(parameters: Mapping[str, Node]) -> Node:
    """Return a loss whose gradient in a parameter depends on this parameter alone."""
    return sum((f.sum(x * x + x) for x in parameters.values()), start=constant(0.0, "float64"))


FAR, DISTANCE = "0-dense.biases", 1000.0
FAR_START: Values = {**START, FAR: START[FAR] + DISTANCE}


def _loss_without_far(parameters: Mapping[str, Node]) -> Node:
    """Return a loss that one of the parameters does not change."""
    return _separable_loss({a: x for a, x in parameters.items() if a != FAR}) + f.sum(parameters[FAR]) * 0.0


@define(eq=False)
class SmallObjective:
    """An objective made from a function of parameters; requested settings and slots become inputs of the graph."""

    function: Loss
    parameters: Mapping[str, Node]
    fixed: Mapping[str, Node]
    iteration: Node  # counted from 1
    slots: Mapping[Setting, Node]
    settings: dict[Setting, Node] = field(factory=dict, init=False)
    streams: Streams = field(factory=Streams, init=False)

    def loss(self, parameters: Mapping[str, Node] | None = None) -> Node:
        """Return the loss at the current or at given parameters."""
        return self.function({**self.fixed, **(self.parameters if parameters is None else parameters)})

    def gradients(self, parameters: Mapping[str, Node] | None = None) -> Mapping[str, Node]:
        """Return the gradients at the current or at given parameters."""
        at = self.parameters if parameters is None else parameters
        return dict(zip(at, gradient(self.loss(at), list(at.values())), strict=True))

    def updates(self, address: str) -> Node:
        """Return the number of updates of a parameter, this one included."""
        return f.cast(self.slots[address, COUNT] + 1, self.iteration.dtype)

    def parts(self) -> list[tuple[Node, Mapping[str, Node]]]:
        """Return the gradients with the weights of batches: all equal."""
        return [(constant(1.0, self.iteration.dtype), self.gradients())]

    def setting(self, address: str, name: str) -> Node:
        """Return the input for a setting; without an address, of the whole optimiser: that of the first parameter."""
        owner = address or next(iter(self.parameters))
        return self.settings.setdefault((owner, name), symbol((), self.iteration.dtype, f"{owner}.{name}"))

    def log_setting(self, address: str, name: str) -> Node:
        """Return the input for the logarithm of a setting."""
        return self.setting(address, f"{name}{LOG}")

    def slot(self, address: str, name: str) -> Node:
        """Return the input for a slot."""
        return self.slots[address, name]

    def tags(self, address: str) -> frozenset[str]:
        """Return the tag of a layer: its name without the number."""
        return _tags(address)

    def key(self, name: str) -> Key:
        """Return a key of random numbers, whose counter is the iteration."""
        done = f.cast(self.iteration, "uint32")
        return Key(constant(np.array([7, 0]), "uint32"), done, ZERO, ZERO, self.streams, name)


@define(eq=False)
class Trial:
    """Minimise a function of parameters with an optimiser, step by step, with the reference meanings of ops.

    ``overrides`` are values of live settings for single parameters; ``frozen`` parameters are hidden from the
    optimiser. ``values`` and ``slots`` hold the current state; all floats are of ``dtype``.
    """

    optimiser: Optimiser
    function: Loss = small_network
    start: Values = field(factory=lambda: START)
    overrides: Mapping[Setting, float] = field(factory=dict)
    frozen: frozenset[str] = frozenset()
    iterations_per_epoch: int = 10
    dtype: str = "float64"
    values: dict[str, np.ndarray] = field(init=False)
    slots: dict[Setting, np.ndarray] = field(init=False)
    done: int = field(default=0, init=False)
    objective: SmallObjective = field(init=False)
    graph: Graph = field(init=False)
    _run: Callable[..., tuple[Any, ...]] = field(init=False)
    _writes: tuple[list[str], list[Setting]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Build the update graph as a callable."""
        self.values = {address: np.array(value, self.dtype) for address, value in self.start.items()}
        nodes = {address: symbol(value.shape, self.dtype, address) for address, value in self.values.items()}
        trained = {address: node for address, node in nodes.items() if address not in self.frozen}
        self.slots = {key: x for a in trained for key, x in _initial_slots(self.optimiser, a, self.values[a]).items()}
        self.slots |= _shared_slots(self.optimiser, self.dtype)
        slots = {key: symbol(value.shape, value.dtype.name, ".".join(key)) for key, value in self.slots.items()}
        fixed = {address: nodes[address] for address in self.frozen}
        self.objective = SmallObjective(self.function, trained, fixed, symbol((), self.dtype, "iteration"), slots)
        self._build(nodes)

    def _build(self, nodes: Mapping[str, Node]) -> None:
        update, loss = _build_update(self.optimiser, self.objective), self.objective.loss()
        self._writes = list(update.parameters), list(update.slots)
        state, settings = (*nodes.values(), *self.objective.slots.values()), self.objective.settings.values()
        outputs = (*update.parameters.values(), *update.slots.values(), loss)
        self.graph = Graph((*state, self.objective.iteration, *settings), outputs)
        self._run = interpret(self.graph, numpy_namespace())

    def release(self) -> None:
        """Train all parameters from now on; those that were frozen begin with new slots."""
        begun, slots, self.frozen = self.start, self.slots, frozenset()
        self.start = self.values
        self.__attrs_post_init__()
        self.start = begun
        self.slots |= slots

    def set_parameter(self, address: str, value: Any) -> None:
        """Set a parameter, as the command ``set`` does: slots that copy it begin again."""
        self.values[address] = new = np.full(self.values[address].shape, value, self.dtype)
        declared = self.optimiser.declare_slots(address, Spec(new.shape, self.dtype), _tags)
        first = _initial_slots(self.optimiser, address, new)
        self.slots |= {key: x for key, x in first.items() if declared[key[1]].copies_parameter}

    @property
    def written_slots(self) -> list[Setting]:
        """Return the slots that the update returns."""
        return self._writes[1]

    def in_force(self, owner: str, name: str) -> float:
        """Return the value of a live setting for the next step, base times schedule, or its logarithm."""
        if name.endswith(LOG):
            return _log(np.asarray(self.in_force(owner, name.removesuffix(LOG)), self.dtype))
        whose = self.optimiser
        if owner in whose.changes:
            return float(getattr(whose.changes[owner], name))
        base = self.overrides.get((owner, name), getattr(whose, name))
        if name not in whose.schedules:
            return float(base)
        now = np.array([self.done]), np.array([self.done / self.iterations_per_epoch])
        return float(base * whose.schedules[name].with_end(LENGTH).factors(*now)[0])

    def run(self, steps: int) -> list[float]:
        """Train for a number of steps; return the loss before each of them."""
        return [self._advance() for _ in range(steps)]

    def inputs(self) -> list[np.ndarray]:
        """Return the inputs of the graph for the next step."""
        settings = [self.in_force(*key) for key in self.objective.settings]
        scalars = [np.array(value, self.dtype) for value in (self.done + 1, *settings)]
        return [*self.values.values(), *self.slots.values(), *scalars]

    def _advance(self) -> float:
        results = self._run(*self.inputs())
        parameters, slots = self._writes
        self.values |= dict(zip(parameters, results[: len(parameters)], strict=True))
        self.slots |= dict(zip(slots, results[len(parameters) : -1], strict=True))
        self.done += 1
        return float(results[-1])


def _initial_slots(optimiser: Optimiser, address: str, value: np.ndarray) -> dict[Setting, np.ndarray]:
    """Return the first slots of a parameter with this value."""
    spec = Spec(value.shape, value.dtype.name)
    declared = optimiser.declare_slots(address, spec, _tags)
    return {(address, name): slot.initial(slot.spec(spec), value) for name, slot in declared.items()}


def _shared_slots(optimiser: Optimiser, dtype: str) -> dict[Setting, np.ndarray]:
    """Return the first values of the slots that all parameters share."""
    spec = Spec((), dtype)
    return {("", n): slot.initial(slot.spec(spec), None) for n, slot in optimiser.declare_shared_slots().items()}


def _log(value: Any) -> float:
    """Return the natural logarithm in float64; that of 0 is -inf."""
    with np.errstate(divide="ignore"):
        return float(np.log(value, dtype=np.float64))


def _tags(address: str) -> frozenset[str]:
    """Return the tag of a layer: its name without the number."""
    return frozenset({address.partition("-")[2]})


def _build_update(optimiser: Optimiser, objective: SmallObjective) -> Update:
    declared = {name for _, name in objective.slots}
    names = ", ".join(sorted({*declared, *live_settings(optimiser)}))
    try:
        given = optimiser.transform_objective(objective)
        update = optimiser.build(given)
    except KeyError as error:
        where = f"optimiser: {error} is neither a slot nor a live setting (declared are {names})"
        raise SigmaComponentError(f"{where}. Correct the name, or declare it.") from error
    undeclared = sorted({name for _, name in update.slots} - declared)
    if undeclared:
        where = f"optimiser: update() returns {', '.join(undeclared)}, which slots() does not declare"
        raise SigmaComponentError(f"{where} (declared are {names}). Declare it, or do not return it.")
    done, live = optimiser.complete_update(update, given), live_settings(optimiser)
    for owner, name in objective.settings:
        if owner not in optimiser.changes and name.removesuffix(LOG) not in live:
            where = f"optimiser: {type(optimiser).__name__} has no live setting {name!r}"
            raise SigmaConfigError(f"{where}. Declare it with live(), or correct the name.")
    return done


@define(eq=False)
class Reverse(Transform):
    """Turn all gradients, and count how often."""

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        """Declare the count."""
        return {"count": Slot(0.0, ())}

    def apply(self, gradients: Mapping[str, Node], objective: Objective, owner: str) -> Transformed:
        """Return the gradients with the other sign, and one more."""
        counts = {(a, "count"): objective.slot(a, f"{owner}.count") + 1.0 for a in gradients}
        return Transformed({address: -gradient for address, gradient in gradients.items()}, counts)


@define(eq=False)
class Bowl:
    """An objective of one parameter in NumPy, for the arithmetic of an optimiser without Sigma.

    The loss is ``0.5 * sum(curvature * (x - lowest)^2)``: its Hessian is the diagonal ``curvature``.
    """

    start: np.ndarray
    lowest: np.ndarray
    curvature: np.ndarray

    def loss(self, x: np.ndarray) -> float:
        """Return the loss at a point."""
        return float(0.5 * np.sum(self.curvature * (x - self.lowest) ** 2))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient at a point."""
        return np.asarray(self.curvature * (x - self.lowest))

    def trace_loss(self, parameters: Mapping[str, Node]) -> Node:
        """Return the loss as a graph, of the parameter ``x``."""
        return 0.5 * f.sum(f.square(parameters["x"] - self.lowest) * self.curvature)


# -- suites ------------------------------------------------------------------------------------------------------------
class OptimiserSuite(DeterministicSuite):
    """Conformance tests of an optimiser."""

    steps: ClassVar[int] = 3  # after which every setting has had an effect

    @abstractmethod
    def make(self) -> Optimiser:
        """Return the optimiser under test, with settings suited to losses around 1."""

    def expected_steps(self, bowl: Bowl) -> Sequence[np.ndarray] | None:
        """Return the parameter after each of a few steps from ``bowl.start``, computed without Sigma.

        By default None: nothing is compared. An optimiser that uses gradients at the current parameters alone may have
        a :class:`GradientOptimiserSuite`, whose ``expected`` receives them.
        """
        return None

    def use(self) -> None:
        """Make it, and use it once."""
        Trial(self.make()).run(1)

    def results(self) -> Mapping[str, Any]:
        """Return the losses, the parameters and the slots of a few steps."""
        trial = Trial(self.make())
        return {"losses": trial.run(self.steps), "parameters": trial.values, "slots": trial.slots}

    def test_the_loss_falls(self) -> None:
        """Step against the gradient, and let make() return settings for losses around 1."""
        losses = Trial(self.make()).run(60)
        assert losses[-1] < losses[0]

    @pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
    def test_its_steps_are_what_others_compute(self, scale: float) -> None:
        """Compare the arithmetic of build() with that of expected_steps()."""
        draw = np.random.default_rng(4)
        bowl = Bowl(draw.normal(size=7), draw.normal(size=7), scale * draw.uniform(0.5, 2.0, 7))
        wanted = self.expected_steps(deepcopy(bowl))
        assert wanted is None or len(wanted), "expected_steps() must return the parameter after each of some steps"
        plain = evolve(self.make(), schedules={}, transforms={}, modifiers={})
        trial = Trial(plain, bowl.trace_loss, {"x": bowl.start})
        for step, values in enumerate(() if wanted is None else wanted, 1):
            trial.run(1)
            np.testing.assert_allclose(trial.values["x"], values, rtol=1e-7, atol=1e-12, err_msg=f"step {step}")

    def test_frozen_parameters_are_untouched(self) -> None:
        """Update the parameters of the objective only."""
        trial = Trial(self.make(), frozen=frozenset({"0-dense.biases"}))
        trial.run(3)
        assert np.array_equal(trial.values["0-dense.biases"], START["0-dense.biases"])
        assert all(address != "0-dense.biases" for address, _ in trial.slots)
        assert not np.array_equal(trial.values["0-dense.weights"], START["0-dense.weights"])

    def test_a_released_parameter_is_trained_and_the_loss_falls_on(self) -> None:
        """Allow parameters with new slots together with others that were updated before."""
        trial = Trial(self.make(), frozen=frozenset({"0-dense.biases"}))
        trial.run(5)
        trial.release()
        losses = trial.run(60)
        assert losses[-1] < losses[0]
        assert all(np.isfinite(value).all() for value in (*trial.values.values(), *trial.slots.values()))
        assert not np.array_equal(trial.values["0-dense.biases"], START["0-dense.biases"])

    def test_a_parameter_without_a_gradient_stays_near_where_it_is_released(self) -> None:
        """Declare a slot that begins as the parameter: Slot(copies_parameter=True). A released one has new slots."""
        trial = Trial(self.make(), _loss_without_far, FAR_START, frozen=frozenset({FAR}))
        trial.run(3)
        trial.release()
        trial.run(1)
        moved = np.abs(trial.values[FAR] - FAR_START[FAR]).max()
        assert moved < 0.5 * DISTANCE, f"{FAR} was released at some {DISTANCE:g} and has moved by {moved:.4g}"

    def test_a_parameter_without_a_gradient_stays_near_where_it_is_set(self) -> None:
        """Declare a slot that begins as the parameter: Slot(copies_parameter=True). It begins anew when set."""
        trial = Trial(self.make(), _loss_without_far, FAR_START)
        trial.run(3)
        trial.set_parameter(FAR, 3 * DISTANCE)
        trial.run(1)
        moved = np.abs(trial.values[FAR] - 3 * DISTANCE).max()
        assert moved < 0.5 * DISTANCE, f"{FAR} was set to {3 * DISTANCE:g} and has moved by {moved:.4g}"

    def test_shapes_and_dtypes_stay_as_they_are(self) -> None:
        """Compute in the shape and dtype of the operands; numbers take theirs."""
        for dtype in ("float32", "float64"):
            trial = Trial(self.make(), dtype=dtype)
            before = [*trial.values.values(), *trial.slots.values()]
            trial.run(2)
            after = [*trial.values.values(), *trial.slots.values()]
            assert [(x.shape, x.dtype) for x in before] == [(x.shape, x.dtype) for x in after]

    def test_a_zero_gradient_keeps_all_values_finite(self) -> None:
        """Add an epsilon to the gradient's divisor."""
        trial = Trial(self.make(), lambda parameters: f.sum(parameters["0-dense.biases"]) * 0.0)
        trial.run(3)
        assert all(np.isfinite(value).all() for value in (*trial.values.values(), *trial.slots.values()))

    def test_two_builds_give_the_same_graph(self) -> None:
        """Build the update from the settings alone."""
        assert Trial(self.make()).graph == Trial(self.make()).graph

    def test_live_settings_are_inputs_within_their_ranges(self) -> None:
        """Read live settings from `hyper`, or with objective.setting(), not from self."""
        optimiser = self.make()
        asked = {name for _, name in Trial(optimiser).objective.settings}
        for name, setting in live_settings(optimiser).items():
            setting.check(name, getattr(optimiser, name))
            assert name in asked, f"{name} is not read. Read it, or declare it no more"

    def test_every_live_setting_has_an_effect(self) -> None:
        """Let each live setting change the first steps, at a constant or at a rising learning rate."""
        for name, other in _other_values(self.make()).items():
            assert any(self._has_effect(name, other, rises) for rises in (False, True)), (
                f"{name} is ignored. {USE} {STEPS}"
            )

    def _has_effect(self, name: str, other: float, rises: bool) -> bool:
        """Return whether another value of a setting gives other parameters, at a constant or a rising learning rate."""
        usual, changed = Trial(self.make()), Trial(self.make(), overrides={(a, name): other for a in START})
        rate = getattr(usual.optimiser, RATE, 0.0)
        for step in range(self.steps):
            rates = {(a, RATE): rate * (step + 1) / self.steps for a in START if rises and name != RATE}
            for trial in (usual, changed):
                trial.overrides = {**trial.overrides, **rates}
                trial.run(1)
        return any(not np.array_equal(usual.values[a], changed.values[a]) for a in START)

    def test_every_slot_is_returned_and_updated(self) -> None:
        """Return a new value for each slot from the update; a copy of the parameter may stay, if anything reads it."""
        trial = Trial(self.make())
        before = dict(trial.slots)
        assert {*trial.written_slots} == {*before}, "build() must return a value for each slot"
        trial.run(3)
        for slot in {name for _, name in before}:
            same = [np.array_equal(trial.slots[key], value) for key, value in before.items() if key[1] == slot]
            assert not all(same) or self._reads_copy(slot), f"slot {slot!r} is never updated"

    def _reads_copy(self, slot: str) -> bool:
        """Return whether a slot is a copy of the parameter, such as where training began, on which others depend."""
        usual, moved = Trial(self.make()), Trial(self.make())
        spec = Spec(START[FAR].shape, usual.dtype)
        declared = usual.optimiser.declare_slots(FAR, spec, _tags)
        if slot not in declared or not declared[slot].copies_parameter:
            return False
        moved.slots |= {key: value + 1.0 for key, value in moved.slots.items() if key[1] == slot}
        usual.run(self.steps)
        moved.run(self.steps)
        others = [(usual.slots[key], value) for key, value in moved.slots.items() if key[1] != slot]
        pairs = [*others, *((usual.values[address], value) for address, value in moved.values.items())]
        return any(not np.array_equal(*pair) for pair in pairs)

    def test_transforms_act_or_are_refused(self) -> None:
        """Compute with objective.gradients(), and override neither transform_objective() nor complete_update()."""
        optimiser = evolve(self.make(), transforms={})
        usual = Trial(optimiser)
        try:
            turned = Trial(evolve(optimiser, transforms={"reverse": Reverse()}))
        except SigmaConfigError:  # such as that of one without gradients
            return
        usual.run(self.steps)
        turned.run(self.steps)
        same = [address for address in START if np.array_equal(usual.values[address], turned.values[address])]
        assert not same, f"a transform that turns all gradients changes nothing in {', '.join(same)}"
        counts = {address: float(turned.slots[address, "transforms.reverse.count"]) for address in START}
        assert {*counts.values()} == {float(self.steps)}, f"slots of a transform stay as they are (got {counts})"

    def test_the_order_of_parameters_does_not_matter(self) -> None:
        """Treat the parameters alike, wherever they stand."""
        usual, turned = Trial(self.make()), Trial(self.make(), start=dict(reversed([*START.items()])))
        usual.run(3)
        turned.run(3)
        for address, value in usual.values.items():
            np.testing.assert_allclose(turned.values[address], value, rtol=1e-9, atol=1e-12, err_msg=address)

    def test_it_moves_by_its_gradients_and_parameters_alone(self) -> None:
        """Add no constant: with both negated, each step is negated, too, unless it draws random numbers."""
        mirrored = {address: -value for address, value in START.items()}
        trials = (
            Trial(self.make(), small_network),
            Trial(self.make(), lambda parameters: small_network({a: -x for a, x in parameters.items()}), mirrored),
        )
        for trial in trials:
            trial.run(3)
        straight, mirror = (trial.values for trial in trials)
        for address in straight if not trials[0].objective.streams.numbers else ():
            np.testing.assert_allclose(mirror[address], -straight[address], rtol=1e-9, atol=1e-12, err_msg=address)


class GradientOptimiserSuite(OptimiserSuite):
    """Further conformance tests of an optimiser that updates each parameter independently."""

    @abstractmethod
    def make(self) -> GradientOptimiser:
        """Return the optimiser under test."""

    @abstractmethod
    def expected(self, start: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """Return the values after each step, given the gradients of the steps in rows, computed without Sigma.

        The learning rate is that of make() in every step: schedules, transforms and modifiers are left out.
        """

    @pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
    def test_it_is_what_others_compute(self, scale: float) -> None:
        """Compare the formula of update() with that of expected()."""
        draw = np.random.default_rng(4)
        start, gradients = draw.normal(size=7), draw.normal(size=(6, 7)) * scale
        results = run_steps(evolve(self.make(), schedules={}, transforms={}, modifiers={}), start, gradients)
        wanted = self.expected(start.copy(), gradients.copy())
        for step, (result, other) in enumerate(zip(results, wanted, strict=True), 1):
            np.testing.assert_allclose(result, other, rtol=1e-7, atol=1e-12, err_msg=f"step {step}")

    def test_a_released_parameter_takes_the_steps_of_a_new_one(self) -> None:
        """Count with `step` of update(), or objective.updates(address): a parameter's own updates."""
        optimiser, late = evolve(self.make(), schedules={}, transforms={}, modifiers={}), "1-dense.weights"
        new, released = (Trial(optimiser, _separable_loss, frozen=frozenset(x)) for x in ((), (late,)))
        released.run(20)
        released.release()
        for _ in range(8):
            new.run(1)
            released.run(1)
            np.testing.assert_allclose(released.values[late], new.values[late], rtol=1e-12)

    def test_settings_of_one_parameter_apply_to_it_only(self) -> None:
        """Read settings from `hyper`, which is the parameter's own."""
        optimiser, still = evolve(self.make(), schedules={}), "1-dense.weights"
        usual, held = Trial(optimiser), Trial(optimiser, overrides={(still, "learning_rate"): 0.0})
        usual.run(1)
        held.run(1)
        moved = {address for address in START if not np.array_equal(usual.values[address], held.values[address])}
        assert moved == {still}
        assert np.array_equal(held.values[still], START[still])


def run_steps(optimiser: Optimiser, start: np.ndarray, gradients: np.ndarray) -> list[np.ndarray]:
    """Return the values of one parameter after each step, given the gradients of the steps in rows; in float64."""
    x, slope = symbol(start.shape, "float64"), symbol(start.shape, "float64")
    first = {**_initial_slots(optimiser, "x", np.asarray(start, "float64")), **_shared_slots(optimiser, "float64")}
    nodes = {key: symbol(value.shape, value.dtype.name) for key, value in first.items()}
    objective = SmallObjective(lambda p: f.sum(p["x"] * slope), {"x": x}, {}, symbol((), "float64"), nodes)
    update = _build_update(optimiser, objective)
    inputs = (x, slope, objective.iteration, *(nodes[key] for key in update.slots), *objective.settings.values())
    run = interpret(Graph(inputs, (update.parameters["x"], *update.slots.values())), numpy_namespace())
    slots = [first[key] for key in update.slots]
    settings, values = [np.array(_configured_value(optimiser, name)) for _, name in objective.settings], [start]
    for count, row in enumerate(gradients, 1):
        new, *slots = run(values[-1], row, np.array(float(count)), *slots, *settings)
        values.append(new)
    return values[1:]


def _configured_value(component: Any, name: str) -> float:
    """Return the configured value of a live setting, or its logarithm."""
    value = float(getattr(component, name.removesuffix(LOG)))
    return _log(value) if name.endswith(LOG) else value


def _replace_setting(component: Any, setting: str, value: float) -> Any:
    return evolve(component, **{setting: value})


def _other_values(component: Any) -> dict[str, float]:
    """Return another value for each live setting."""
    values = {}
    for name, setting in live_settings(component).items():
        options = (setting.value * 0.5, setting.value + 0.25, setting.value * 2.0)
        values[name] = next(value for value in options if value != setting.value and setting.holds(value))
    return values


class TransformSuite(DeterministicSuite):
    """Conformance tests of a gradient transform."""

    transforms: ClassVar[bool] = True  # False if the first gradients stay as they are

    @abstractmethod
    def make(self) -> Transform:
        """Return the transform under test; it must match ``0-dense.weights``."""

    def apply_transform(self, transform: Transform, size: float = 1.0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return each gradient, filled with ``size``, before and after the transform."""
        return transform_gradients(transform, {address: np.full(value.shape, size) for address, value in START.items()})

    def use(self) -> None:
        """Make it, and use it once."""
        self.apply_transform(self.make())

    def results(self) -> Mapping[str, Any]:
        """Return gradients after the transform."""
        pairs = transform_gradients(self.make(), {address: value * 100.0 for address, value in START.items()})
        return {"gradients": {address: after for address, (_, after) in pairs.items()}}

    def test_shapes_and_dtypes_stay_as_they_are(self) -> None:
        """Compute in the shape and dtype of the operands; numbers take theirs."""
        for before, after in self.apply_transform(self.make()).values():
            assert (before.shape, before.dtype) == (after.shape, after.dtype)

    def test_gradients_that_do_not_match_are_untouched(self) -> None:
        """Transform what select_gradients() returns, and return the others as they are."""
        pairs = self.apply_transform(evolve(self.make(), match="0-dense.weights"), size=100.0)
        changed = {address for address, (before, after) in pairs.items() if not np.array_equal(before, after)}
        assert changed == ({"0-dense.weights"} if self.transforms else set())

    def test_a_pattern_that_matches_nothing_changes_nothing(self) -> None:
        """Allow for no gradient that is concerned."""
        pairs = self.apply_transform(evolve(self.make(), match="9-dense.weights"))
        assert all(np.array_equal(before, after) for before, after in pairs.values())

    def test_vanishing_gradients_stay_finite(self) -> None:
        """Divide by no norm that may be zero."""
        assert all(np.isfinite(after).all() for _, after in self.apply_transform(self.make(), size=0.0).values())

    def test_large_gradients_stay_finite(self) -> None:
        """Scale before squaring, so that float32 does not overflow."""
        assert all(np.isfinite(after).all() for _, after in self.apply_transform(self.make(), size=1e8).values())

    def test_the_order_of_gradients_does_not_matter(self) -> None:
        """Treat the gradients alike, wherever they stand."""
        gradients = {address: value * 100.0 for address, value in START.items()}
        usual = transform_gradients(self.make(), gradients)
        for address, (_, after) in transform_gradients(self.make(), dict(reversed([*gradients.items()]))).items():
            np.testing.assert_allclose(after, usual[address][1], rtol=1e-12, err_msg=address)

    def test_every_live_setting_has_an_effect(self) -> None:
        """Let each live setting change gradients around 100."""
        gradients = {address: value * 100.0 for address, value in START.items()}
        for name, other in _other_values(self.make()).items():
            usual, changed = (
                transform_gradients(x, gradients) for x in (self.make(), _replace_setting(self.make(), name, other))
            )
            different = any(not np.array_equal(usual[a][1], changed[a][1]) for a in START)
            assert different, f"{name} is ignored. {USE} {GRADIENTS}"


class ModifierSuite(DeterministicSuite):
    """Conformance tests of a parameter modifier: inherit, and override :meth:`make`."""

    idempotent: ClassVar[bool] = True  # modifying twice is the same as once
    modifies: ClassVar[bool] = True  # False if it only watches, and writes slots

    @abstractmethod
    def make(self) -> Modifier:
        """Return the modifier under test."""

    def apply_modifier(self, modifier: Modifier, values: np.ndarray) -> np.ndarray:
        """Return a modified parameter, computed in NumPy, before the first update of which it was the same."""
        objective, given = _objective_for(modifier, "modifiers.it", {"x": values})
        node, _ = modifier.apply(objective.parameters["x"], "x", objective, "modifiers.it")
        return np.asarray(_evaluate_nodes(modifier, objective, given, (node,))[0])

    def use(self) -> None:
        """Make it, and use it once."""
        self.apply_modifier(self.make(), np.ones((5, 3)))

    def results(self) -> Mapping[str, Any]:
        """Return a modified parameter."""
        return {"parameters": self.apply_modifier(self.make(), 100.0 * np.random.default_rng(0).normal(size=(5, 3)))}

    @pytest.mark.parametrize("shape", [(7,), (5, 3), (1, 4), (6, 2, 3, 3)])
    @pytest.mark.parametrize("precision", ["float32", "float64"])
    def test_shape_and_dtype_stay_as_they_are(self, shape: tuple[int, ...], precision: str) -> None:
        """Compute in the dtype of the parameter, and avoid dividing by zero."""
        for scale in (0.0, 1.0, 1e6):
            values = (scale * np.random.default_rng(0).normal(size=shape)).astype(precision)
            result = self.apply_modifier(self.make(), values)
            assert (result.shape, result.dtype) == (values.shape, values.dtype)
            assert np.isfinite(result).all(), f"values of scale {scale:g}"

    def test_modifying_twice_is_the_same_as_once_where_that_is_promised(self) -> None:
        """Set `idempotent = False` in the suite if it is not meant to be."""
        once = self.apply_modifier(self.make(), 100.0 * np.random.default_rng(0).normal(size=(5, 3)))
        if self.idempotent:
            np.testing.assert_allclose(self.apply_modifier(self.make(), once), once, rtol=1e-9)

    def test_it_modifies_something_and_every_live_setting_has_an_effect(self) -> None:
        """Let it, and each live setting in `settings`, change values around 100."""
        values = 100.0 * np.random.default_rng(0).normal(size=(5, 3))
        usual = self.apply_modifier(self.make(), values)
        assert np.array_equal(usual, values) != self.modifies, (
            f"values around 100 {'stay as they are' if self.modifies else 'change'}"
        )
        for name, other in _other_values(self.make()).items() if self.modifies else ():
            changed = self.apply_modifier(_replace_setting(self.make(), name, other), values)
            assert not np.array_equal(changed, usual), f"{name} is ignored. {USE} {VALUES}"

    def test_equal_parameters_give_equal_bits(self) -> None:
        """Depend on the parameter and on slots alone."""
        values, modifier = np.random.default_rng(0).normal(size=(5, 3)), self.make()
        assert len({self.apply_modifier(x, values).tobytes() for x in (modifier, modifier, self.make())}) == 1


def transform_gradients(transform: Transform, gradients: Values) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return each gradient before and after a transform, at the parameters of START; all in float64."""
    given = {address: np.asarray(value, np.float64) for address, value in gradients.items()}
    nodes = {address: symbol(value.shape, "float64", address) for address, value in given.items()}
    objective, slots = _objective_for(transform, "transforms.it", {address: START[address] for address in given})
    outcome = transform.apply(nodes, objective, "transforms.it")
    after = outcome.gradients if isinstance(outcome, Transformed) else outcome
    values = {nodes[address]: value for address, value in given.items()}
    results = _evaluate_nodes(transform, objective, {**values, **slots}, tuple(after.values()))
    return {address: (given[address], result) for address, result in zip(after, results, strict=True)}


def _objective_for(change: Modifier | Transform, owner: str, start: Values) -> tuple[SmallObjective, dict[Node, Any]]:
    """Return an objective for a change of an optimiser, and the values of its parameters and of the change's slots."""
    parameters = {address: symbol(value.shape, value.dtype.name, address) for address, value in start.items()}
    values, slots = {parameters[address]: value for address, value in start.items()}, {}
    for address, parameter in parameters.items():
        declared = {f"{owner}.{name}": slot for name, slot in change.slots(parameter.spec).items()}
        for name, slot in {**declared, COUNT: Slot(0.0, (), "int32")}.items():
            spec = slot.spec(parameter.spec)
            slots[address, name] = node = symbol(spec.shape, spec.dtype, name)
            values[node] = slot.initial(spec, start[address])
    iteration = symbol((), next(iter(parameters.values())).dtype, "iteration")
    return SmallObjective(small_network, parameters, {}, iteration, slots), values


def _evaluate_nodes(
    change: Modifier | Transform, objective: SmallObjective, values: Mapping[Node, Any], outputs: tuple[Node, ...]
) -> tuple[Any, ...]:
    """Return the values of nodes, given those of others; live settings of an optimiser are 0.1."""
    own = {name: setting.value for name, setting in live_settings(change).items()}
    settings = {x: np.array(own.get(name, 0.1), x.dtype) for (_, name), x in objective.settings.items()}
    given = {**values, **settings, objective.iteration: np.array(1, objective.iteration.dtype)}
    return interpret(Graph(tuple(given), outputs), numpy_namespace())(*given.values())


LENGTH = 40  # iterations of a run


class ScheduleSuite(DeterministicSuite):
    """Conformance tests of a schedule."""

    @abstractmethod
    def make(self) -> Schedule:
        """Return the schedule under test."""

    def _factors(self, schedule: Schedule, iterations: np.ndarray, epochs: np.ndarray) -> np.ndarray:
        whose = f"make() must return a Schedule (got {schedule!r}). Return an instance of your class."
        assert isinstance(schedule, Schedule), whose
        array = (schedule.with_end(LENGTH) if schedule.needs_end else schedule).factors(iterations, epochs)
        rule = f"factors() must return an array, one factor per iteration (got {array!r}). Compute with all iterations."
        assert isinstance(array, np.ndarray), rule
        return array

    def results(self) -> Mapping[str, Any]:
        """Return the factors of a run."""
        return {"factors": self._factors(self.make(), np.arange(LENGTH), np.arange(LENGTH) / 10)}

    def test_there_is_one_finite_factor_for_each_iteration(self) -> None:
        """Return float64, one factor per iteration."""
        factors = self._factors(self.make(), np.arange(40), np.arange(40) / 10)
        came = f"factors of 40 iterations are {factors.dtype} of shape {factors.shape}"
        assert factors.shape == (40,) and factors.dtype == np.float64, came  # noqa: PT018
        assert np.isfinite(factors).all(), f"not all of them are finite: {factors}"

    def test_a_long_burst_equals_many_short_bursts(self) -> None:
        """Compute each factor from its iteration and epoch alone."""
        schedule, iterations, epochs = self.make(), np.arange(40), np.arange(40) / 10
        whole = self._factors(schedule, iterations, epochs)
        single = [self._factors(schedule, iterations[[i]], epochs[[i]])[0] for i in reversed(range(40))]
        assert whole.tolist() == single[::-1]

    def test_factors_are_not_negative(self) -> None:
        """End at 0: a negative rate goes up the gradient."""
        for iterations in (np.arange(40), np.arange(1000, 1040), np.array([10**6, 10**9])):
            factors = self._factors(self.make(), iterations, iterations / 10)
            assert (factors >= 0.0).all(), f"a factor of iterations {iterations} is {factors.min()}"

    def test_a_schedule_that_needs_the_end_of_the_run_depends_on_it(self) -> None:
        """Return another schedule from with_end(), and leave this one as it is."""
        schedule, iterations = self.make(), np.arange(40)
        if schedule.needs_end:
            short, long = schedule.with_end(40), schedule.with_end(400)
            done = not (short.needs_end or long.needs_end)
            assert done, "with_end() must return a schedule that needs no end any more"
            first, second = (x.factors(iterations, iterations / 10) for x in (short, long))
            same = np.array_equal(first, second)
            assert not same, "factors are the same for runs of 40 and 400 iterations"

    def test_the_arguments_are_not_modified(self) -> None:
        """Pass read-only arrays."""
        iterations, epochs = np.arange(40), np.arange(40) / 10
        iterations.flags.writeable = epochs.flags.writeable = False
        self._factors(self.make(), iterations, epochs)

    def test_factors_depend_on_the_clock_alone(self) -> None:
        """Compare a schedule that was asked before, about other moments, with a new one."""
        used, iterations, epochs = self.make(), np.arange(40), np.arange(40) / 10
        before = pickle.dumps(used)
        self._factors(used, iterations + 1000, epochs + 100)[:] = 0.0  # the array belongs to the caller
        first = self._factors(used, iterations, epochs)
        first[:] = np.pi
        assert np.array_equal(self._factors(used, iterations, epochs), self._factors(self.make(), iterations, epochs))
        assert pickle.dumps(used) == before, "a schedule keeps nothing"

    def test_factors_of_late_iterations_are_finite(self) -> None:
        """Compute factors after 10^10 iterations, and after half of them in the first epoch."""
        for iterations, epochs in ((np.array([10**10]), np.array([1e8])), (np.array([10**10]), np.array([0.0]))):
            assert np.isfinite(self._factors(self.make(), iterations, epochs)).all()

    def test_a_single_epoch_may_have_any_number_of_iterations(self) -> None:
        """Compute factors with one iteration per epoch, and with all in one."""
        for epochs in (np.arange(40.0), np.zeros(40)):
            assert self._factors(self.make(), np.arange(40), epochs).shape == (40,)
