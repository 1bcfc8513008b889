"""The step: its parts make up the whole, and observed values are correct and do not affect training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve, field

from sigma_kernel import functions as f
from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import (
    Batches,
    Burst,
    GradientOptimiser,
    Hook,
    HookContext,
    Metric,
    Modifier,
    Objective,
    Optimiser,
    Slot,
    Step,
    Update,
)
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaComponentError, SigmaNetworkError, SigmaStateError
from sigma_kernel.graph.node import Node, Spec
from sigma_step.graphs import evaluation_step, prediction_step, training_step, update_step
from sigma_step.model import GRADIENTS, LAYERS
from sigma_step.steps import Steps
from sigma_testing.steering import state_bytes
from sigma_training.session.session import Session

Deep = Callable[..., Environment]
WEIGHTS = ("1-dense.weights", "1-dense.bias", "4-dense.weights", "4-dense.bias")


def _session(environment: Environment) -> Session:
    return environment.trainer("trainer").session


def _hosts(session: Session) -> dict[str, np.ndarray]:
    return {name: session.host(name) for name in session.state.arrays}


def _advance(session: Session, *compute: Any) -> None:
    """Compute one iteration."""
    session.loop.advance(1, *compute)
    session.loop.settle()


# -- parts and whole ---------------------------------------------------------------------------------------------------
def test_separate_gradients_and_update_equal_the_whole_step(deep: Deep) -> None:
    whole, apart = _session(deep(precision="float64")), _session(deep(precision="float64"))
    for _ in range(7):
        _advance(whole)
        _in_parts(apart)
    one, other = _hosts(whole), _hosts(apart)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_allclose(other[name], value, rtol=1e-12, atol=1e-15, err_msg=name)
    assert np.any(one["optimiser.slots.1-dense.weights.velocity"])
    assert np.any(one["network.layers.2-track.mean"])


def _in_parts(session: Session) -> None:
    def parts(steps: Steps, batches: Batches) -> Burst:
        found = steps.share(steps.arrays, batches.block, batches.rows[0], 0, len(batches.rows[0]), 0, {})
        arrays = steps.apply_update(steps.arrays, found.gradients, found.state, 0)
        return Burst(arrays, {"loss": found.records["loss"][None]}, 1)

    _advance(session, parts)


def test_unused_values_are_not_inputs_of_a_step(deep: Deep) -> None:
    model = _session(deep()).setup.model
    assert set(evaluation_step(model, 5).state) == {LAYERS + address for address in WEIGHTS}
    assert evaluation_step(model, 5).steer == ("5-squared_difference.weight".join((LAYERS, "")),)
    prediction = prediction_step(model, 5)
    assert (prediction.data, prediction.steer, prediction.writes) == (("inputs",), (), ())


def test_a_training_step_writes_every_state_entry_except_the_key_and_counts_that_nothing_reads(deep: Deep) -> None:
    for optimiser, read in (("momentum", False), ("adam", True)):
        session = _session(deep(optimiser=optimiser))
        step, names = training_step(session.setup.model, 5), set(session.state.arrays) - {"random.key"}
        counts = {f"optimiser.slots.{address}.updates" for address in WEIGHTS}
        assert set(step.writes) == (names if read else names - counts)
        assert counts < names
    assert step.ring == ("loss",)


def test_the_step_for_another_batch_size_differs_only_in_the_batch(deep: Deep) -> None:
    model = _session(deep()).setup.model
    assert (training_step(model, 5).state, training_step(model, 3).state) == (training_step(model, 3).state,) * 2
    assert {node.shape[0] for node in _inputs(training_step(model, 3))} == {3}


def _inputs(step: Step) -> Sequence[Node]:
    start = len(step.state)
    return step.graph.inputs[start : start + len(step.data)]


# -- what a step computes, by hand -------------------------------------------------------------------------------------
def _forward(values: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    for layer in ("1-dense", "4-dense"):
        weights, bias = (values[f"{LAYERS}{layer}.{name}"] for name in ("weights", "bias"))
        x = np.tanh(x @ weights + bias)
    return x


def test_evaluation_is_the_mean_over_all_rows_without_dropout(deep: Deep, metric: Metric) -> None:
    with deep(precision="float64") as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        found = trainer.evaluate("validation", {"distance": metric})
        block, values = trainer.data["validation"].block(0), _hosts(trainer.session)
    wrong = _forward(values, block["inputs"].astype(float)) - block["targets"]
    assert found["loss"] == pytest.approx(np.mean(wrong**2), rel=1e-12)
    assert found["distance"] == pytest.approx(np.mean(np.abs(wrong)), rel=1e-12)


def test_evaluation_does_not_change_the_state(deep: Deep) -> None:
    with deep() as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        before = state_bytes(trainer)
        trainer.evaluate()
        assert state_bytes(trainer) == before


def test_predictions_have_one_row_per_sample_for_any_batch_size(deep: Deep) -> None:
    with deep(precision="float64") as sigma:
        trainer = sigma.trainer("trainer")
        x = np.random.default_rng(1).normal(size=(13, 3))
        values = _hosts(trainer.session)
        np.testing.assert_allclose(trainer.predict(x), _forward(values, x), rtol=1e-12)
        np.testing.assert_allclose(trainer.predict(x[:1]), trainer.predict(x)[:1], rtol=1e-12)
        np.testing.assert_allclose(trainer.predict([[1, 2, 3]]), _forward(values, np.array([[1.0, 2.0, 3.0]])))


def test_the_metrics_of_training_are_recorded_at_every_iteration(deep: Deep, metric: Metric) -> None:
    with deep(metrics={"distance": metric}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.network = trainer.network.layers[0] + trainer.network.layers[1] + trainer.network.layers[-1]
        trainer.data = {"training": trainer.data["training"]}
        history = trainer.fit(epochs=1)
        assert history["training.distance"].shape == history["training.loss"].shape == (5,)
        assert sigma.get("trainer.training.distance") == history["training.distance"][-1]


def test_a_smaller_last_batch_counts_its_own_rows(deep: Deep) -> None:
    with deep(precision="float64") as sigma:
        session = _session(sigma)
        session.commands.set(f"{LAYERS}3-dropout.rate", 0.0)
        while session.state.cursor.row < 20:
            _advance(session)
        rows, values = session.loop.batches(1).rows[0], _hosts(session)
        _advance(session)
        block = sigma.trainer("trainer").data["training"].block(0)
        wrong = _forward(values, block["inputs"][rows].astype(float)) - block["targets"][rows]
        assert len(rows) == 3
        assert session.state.published["training.loss"] == pytest.approx(np.mean(wrong**2), rel=1e-12)


def test_dropout_draws_new_elements_at_every_iteration_of_training_only(deep: Deep, momentum: Any) -> None:
    with deep(batch_size=23, optimiser=momentum(learning_rate=0.0)) as sigma:
        trainer = sigma.trainer("trainer")
        assert len(set(trainer.fit(iterations=5)["training.loss"])) == 5
        assert trainer.evaluate() == trainer.evaluate()
        sigma.set("trainer.network.layers.3-dropout.rate", 0.0)
        assert np.ptp(trainer.fit(iterations=5)["training.loss"][5:]) < 1e-6


# -- observing ---------------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Watch(Hook):
    """Record the observed values."""

    every: TimeStep = every(3, "iteration")
    what: str = "gradients.**"
    seen: list[tuple[int, dict[str, np.ndarray]]] = field(factory=list)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.what,)

    def fire(self, context: HookContext) -> None:
        self.seen.append((context.moment.iteration, context.read(self.what)))


def _before(deep: Deep, iteration: int) -> Session:
    """Return a session immediately before an iteration."""
    session = _session(deep(precision="float64"))
    while session.moment.iteration < iteration - 1:
        _advance(session)
    return session


def test_observed_gradients_agree_with_finite_differences(deep: Deep) -> None:
    hook = Watch()
    with deep(precision="float64", hooks={"watch": hook}) as sigma:
        sigma.trainer("trainer").fit(iterations=6)
    iteration, seen = hook.seen[1]
    assert (iteration, set(seen)) == (6, {GRADIENTS + address for address in WEIGHTS})
    session = _before(deep, iteration)
    for address in WEIGHTS:
        wanted = _slopes(session, LAYERS + address)
        np.testing.assert_allclose(seen[GRADIENTS + address], wanted, rtol=1e-6, atol=1e-8, err_msg=address)


def _slopes(session: Session, name: str, step: float = 1e-5) -> np.ndarray:
    """Return the loss's derivative by each element by central differences, with the same dropout."""
    batches, start = session.loop.batches(1), session.snapshot().arrays
    traced, program = session.setup.programs.get(training_step, batches.rows.shape[1])

    def loss(change: np.ndarray) -> float:
        state = {n: np.array(v + change if n == name else v) for n, v in start.items()}
        steer = session.present.steps().steer(traced)
        return float(program.run(state, batches.block, batches.rows, steer, 1).ring["loss"][0])

    slopes = np.zeros_like(start[name])
    for place in np.ndindex(slopes.shape):
        change = np.zeros_like(slopes)
        change[place] = step
        slopes[place] = (loss(change) - loss(-change)) / (2 * step)
    return slopes


def test_observed_updates_equal_the_changes_of_the_iteration(deep: Deep) -> None:
    hook = Watch(what="updates.**")
    with deep(precision="float64", hooks={"watch": hook}) as sigma:
        sigma.trainer("trainer").fit(iterations=6)
    session = _before(deep, 6)
    old = _hosts(session)
    _advance(session)
    new = _hosts(session)
    for address in WEIGHTS:
        change = new[LAYERS + address] - old[LAYERS + address]
        np.testing.assert_allclose(hook.seen[1][1][f"updates.{address}"], change, rtol=1e-9, atol=1e-15)


def test_observed_activations_are_those_of_the_same_batch(deep: Deep) -> None:
    hook = Watch(what="activations.1-dense")
    with deep(precision="float64", hooks={"watch": hook}) as sigma:
        sigma.trainer("trainer").fit(iterations=3)
    session = _before(deep, 3)
    rows, values = session.loop.batches(1).rows[0], _hosts(session)
    x = session.setup.feed.dataset.block(0)["inputs"][rows].astype(float)
    wanted = np.tanh(x @ values[f"{LAYERS}1-dense.weights"] + values[f"{LAYERS}1-dense.bias"])
    np.testing.assert_allclose(hook.seen[0][1], wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "due",
    [
        every(1, "iteration"), every(2, "iteration"), every(1, "epoch"), every(7, "sample"), every(1e-9, "second"),
        TimeStep("stop"),
    ],
    ids=str,
)  # fmt: skip
def test_observing_values_never_changes_the_bits_of_a_run(deep: Deep, due: TimeStep) -> None:
    found, hook = [], Watch(every=due)
    for hooks in ({}, {"a": hook, "b": Watch(every=due, what="updates.**"), "c": Watch(what="activations.4-dense")}):
        with deep(hooks=hooks) as sigma:
            sigma.trainer("trainer").fit(epochs=2)
            found.append((state_bytes(sigma.trainer("trainer")), sigma.trainer("trainer").history["training.loss"]))
    assert found[0][0] == found[1][0]
    assert found[0][1].tobytes() == found[1][1].tobytes()
    assert hook.seen


@pytest.mark.parametrize("due", [every(2, "iteration"), every(12, "sample"), every(1e-9, "second")], ids=str)
def test_hooks_of_every_time_scale_see_the_iteration_that_just_ended(deep: Deep, due: TimeStep) -> None:
    all_of_them, some = Watch(every=every(1, "iteration")), Watch(every=due)
    with deep(hooks={"all": all_of_them}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
    with deep(hooks={"some": some}) as sigma:
        sigma.trainer("trainer").fit(epochs=2)
    wanted = dict(all_of_them.seen)
    assert some.seen
    for iteration, seen in some.seen:
        assert seen.keys() == wanted[iteration].keys() != set()
        assert all(value.tobytes() == wanted[iteration][name].tobytes() for name, value in seen.items())


def test_observed_values_of_an_earlier_iteration_are_not_shown_later(deep: Deep) -> None:
    hook, late = Watch(every=every(2, "iteration")), Watch(every=TimeStep("stop"), what="gradients.4-dense.bias")
    with deep(hooks={"watch": hook, "late": late}) as sigma:
        sigma.trainer("trainer").fit(iterations=3)
    assert late.seen == [(3, None)]


def test_frozen_parameters_have_no_observable_gradients(deep: Deep, momentum: Any) -> None:
    hook = Watch(every=every(1, "iteration"))
    with deep(hooks={"watch": hook}, optimiser=momentum(settings={"x": {"match": "1-*.**", "frozen": True}})) as sigma:
        sigma.trainer("trainer").fit(iterations=1)
    assert set(hook.seen[0][1]) == {"gradients.4-dense.weights", "gradients.4-dense.bias"}


# -- optimisers --------------------------------------------------------------------------------------------------------
@define(eq=False, kw_only=True)
class Twice(Optimiser):
    """Evaluates the gradients at another point, as line searches do."""

    def build(self, objective: Objective) -> Update:
        ahead = {a: p - 0.1 * g for (a, p), g in zip(
            objective.parameters.items(), objective.gradients().values(), strict=True
        )}  # fmt: skip
        slopes = objective.gradients(ahead)
        return Update({a: p - 0.1 * slopes[a] for a, p in objective.parameters.items()})


def test_an_optimiser_may_evaluate_gradients_at_other_parameters(deep: Deep) -> None:
    with deep(optimiser=Twice(), precision="float64") as sigma:
        session = _session(sigma)
        start, slopes = _hosts(session), _seen(session, GRADIENTS)
        for address in WEIGHTS:
            ahead = start[LAYERS + address] - 0.1 * slopes[GRADIENTS + address]
            session.state.arrays[LAYERS + address] = ahead
        slopes = _seen(session, GRADIENTS)
        copies = {name: value.copy() for name, value in start.items()}
        session.set_state(evolve(session.state, arrays=copies))
        _advance(session)
        for address in WEIGHTS:
            wanted = start[LAYERS + address] - 0.1 * slopes[GRADIENTS + address]
            np.testing.assert_allclose(session.host(LAYERS + address), wanted, rtol=1e-9)


def _seen(session: Session, head: str) -> dict[str, np.ndarray]:
    """Observe the next iteration."""
    return session.setup.evaluator.observe(session.present.steps(), session.loop.batches(1), [f"{head}**"])


def test_an_optimiser_that_evaluates_gradients_cannot_use_shards(deep: Deep) -> None:
    with pytest.raises(SigmaStateError, match="it asks for the loss again.*Use shards = 1."):
        update_step(_session(deep(optimiser=Twice())).setup.model)


@define(eq=False, kw_only=True)
class Wrong(Optimiser):
    """Builds updates that do not match the parameters."""

    gives: Callable[[Any], Any]

    def build(self, objective: Objective) -> Update:
        return self.gives(objective)


@pytest.mark.parametrize(
    ("gives", "got"),
    [
        (lambda objective: None, "NoneType"),
        (lambda objective: dict(objective.parameters), "dict"),
        (lambda objective: Update({"1-dense.weights": 0.5}), "float for '1-dense.weights'"),
        (lambda objective: Update({"1-dense.wights": objective.loss()}), "Node for '1-dense.wights'"),
        (
            lambda objective: Update({}, {("1-dense.weights", "speed"): objective.loss()}),
            "Node for ('1-dense.weights', 'speed')",
        ),
    ],
)
def test_an_optimiser_that_builds_no_update_is_named_with_its_mistake(deep: Deep, gives: Any, got: str) -> None:
    with pytest.raises(SigmaComponentError) as error:
        training_step(_session(deep(optimiser=Wrong(gives=gives))).setup.model, 5)
    assert str(error.value) == (
        f"optimiser ({__name__}.Wrong): build() must return an Update: a node for each parameter by its "
        f"address, and for each slot by address and name (got {got})."
    )


@define(eq=False, kw_only=True)
class Forgetful(Wrong):
    """Declares two slots for each parameter."""

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"first": Slot(), "second": Slot()}


@pytest.mark.parametrize("forgotten", [("1-dense.weights", "second"), ("1-dense.bias", "first")])
def test_an_optimiser_that_returns_no_value_of_a_slot_is_named_with_slot_and_address(
    deep: Deep, forgotten: Any
) -> None:
    def gives(objective: Any) -> Update:
        kept = {(a, slot): objective.slot(a, slot) for a in objective.parameters for slot in ("first", "second")}
        kept.pop(forgotten, None)
        return Update({a: node * 0.5 for a, node in objective.parameters.items()}, kept)

    session = _session(deep(optimiser=Forgetful(gives=gives)))
    assert forgotten in session.setup.model.slots()
    with pytest.raises(SigmaComponentError) as error:
        training_step(session.setup.model, 5)
    address, slot = forgotten
    assert str(error.value) == (
        f"optimiser ({__name__}.Forgetful): build() does not return the slot {slot!r} of {address!r}, "
        "which slots() declares. Return it, if only as it was."
    )


@define(eq=False)
class Halve(Modifier):
    def modify(self, parameter: Node, settings: Mapping[str, Node]) -> Node:
        return parameter * 0.5


def test_modifiers_change_the_matching_parameters(deep: Deep, momentum: Any) -> None:
    plain = momentum(learning_rate=0.0)
    halving = momentum(learning_rate=0.0, modifiers={"halve": Halve(match="*<dense>.weights")})
    found = []
    for optimiser in (plain, halving):
        with deep(optimiser=optimiser) as sigma:
            sigma.trainer("trainer").fit(iterations=1)
            found.append(_hosts(_session(sigma)))
    for address in WEIGHTS:
        factor = 0.5 if "weights" in address else 1.0
        np.testing.assert_array_equal(found[1][LAYERS + address], factor * found[0][LAYERS + address])


def test_training_without_an_optimiser_says_what_is_missing(deep: Deep) -> None:
    with deep() as sigma:
        sigma.trainer("trainer").optimiser = None
        with pytest.raises(SigmaStateError, match="there is no optimiser. Set one, such as 'adam', before training."):
            sigma.trainer("trainer").fit(epochs=1)
        assert sigma.trainer("trainer").evaluate()["loss"] > 0


def test_training_without_a_cost_says_what_is_missing(deep: Deep, layers: SimpleNamespace) -> None:
    with deep() as sigma:
        sigma.trainer("trainer").network = layers.Input() + layers.Dense(1)
        with pytest.raises(SigmaNetworkError, match="there is no cost to minimise"):
            sigma.trainer("trainer").fit(epochs=1)
        assert sigma.trainer("trainer").predict(np.ones((2, 3))).shape == (2, 1)


def test_an_optimiser_may_write_a_slot_that_it_never_reads(deep: Deep, momentum: type[GradientOptimiser]) -> None:
    class Last(momentum):  # type: ignore[misc,valid-type]
        def build(self, objective: Objective) -> Update:
            gradients = objective.gradients()
            new = {a: p - 0.1 * gradients[a] for a, p in objective.parameters.items()}
            return Update(new, {(a, "velocity"): gradients[a] for a in gradients})

    with deep(optimiser=Last()) as sigma:
        sigma.trainer("trainer").fit(epochs=1)
        assert np.any(_session(sigma).host("optimiser.slots.4-dense.bias.velocity"))


def test_an_optimiser_that_reshapes_its_state_is_refused_by_name(deep: Deep, momentum: Any) -> None:
    class Wrong(momentum):  # type: ignore[misc]
        def update(self, gradient: Node, *_: Any) -> Any:
            return gradient, {"velocity": f.sum(gradient)}

    message = (
        r"^optimiser \(\S+Wrong\): .*'velocity'\) is float32\[3, 4\], and must keep .* \(got float32 of shape \(\)\)"
    )
    with deep(optimiser=Wrong()) as sigma, pytest.raises(SigmaComponentError, match=message):
        sigma.trainer("trainer").fit(epochs=1)
