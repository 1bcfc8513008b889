"""Slots that begin as their parameter, and slots that all parameters share: Schedule-Free and Prodigy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import (
    Environment,
    GradientOptimiser,
    Objective,
    Optimiser,
    Slot,
    Update,
    catalogue,
    functions as f,
    live,
)
from sigma_kernel.errors import SigmaComponentError
from sigma_kernel.graph import Node, Spec
from sigma_operator_local import LocalOperator
from sigma_optimisers import GradientDescent, Momentum
from sigma_testing import GradientOptimiserSuite, OptimiserSuite, Trial
from sigma_testing.steering import decisive
from sigma_training import minimise

pytestmark = pytest.mark.rooms
FIRST, LAST = "network.layers.1-dense.weights", "network.layers.2-output.weights"
SLOTS = "optimiser.slots.1-dense.weights"


@define(eq=False, kw_only=True)
class ScheduleFree(GradientOptimiser):
    """Schedule-Free gradient descent; Defazio et al., The Road Less Scheduled, 2024."""

    momentum: float = live(0.9, low=0.0, below=1.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"fast": Slot(copies_parameter=True), "weights": Slot(copies_parameter=True)}

    def update(self, gradient: Node, parameter: Node, slots: Any, step: Node, hyper: Any) -> Any:
        fast = slots["fast"] - hyper["learning_rate"] * gradient
        weights = slots["weights"] + (fast - slots["weights"]) / step
        return fast + hyper["momentum"] * (weights - fast), {"fast": fast, "weights": weights}


@define(eq=False, kw_only=True)
class Prodigy(Optimiser):
    """Adam that estimates the distance to the solution; Mishchenko and Defazio, Prodigy, 2023, algorithm 4."""

    learning_rate: float = live(1.0, low=0.0)
    beta1: float = live(0.9, low=0.0, below=1.0)
    beta2: float = live(0.999, low=0.0, below=1.0)

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"start": Slot(copies_parameter=True), "mean": Slot(), "square": Slot(), "sum": Slot()}

    def shared_slots(self) -> Mapping[str, Slot]:
        return {"distance": Slot(1e-2), "dot": Slot()}

    def build(self, objective: Objective) -> Update:
        p, g, d, old = objective.parameters, objective.gradients(), objective.slot("", "distance"), objective.slot
        rate, beta1, beta2 = (objective.setting(next(iter(p)), n) for n in ("learning_rate", "beta1", "beta2"))
        root = f.sqrt(beta2)
        mean = {a: beta1 * old(a, "mean") + (1.0 - beta1) * d * g[a] for a in p}
        square = {a: beta2 * old(a, "square") + (1.0 - beta2) * f.square(d * g[a]) for a in p}
        along = sum((f.sum(g[a] * (old(a, "start") - p[a])) for a in p), start=f.constant(0.0, d.dtype))
        dot = root * old("", "dot") + (1.0 - root) * rate * f.square(d) * along
        total = {a: root * old(a, "sum") + (1.0 - root) * rate * f.square(d) * g[a] for a in p}
        norm = sum((f.sum(f.abs(x)) for x in total.values()), start=f.constant(0.0, d.dtype))
        distance = f.where(norm > 0.0, f.maximum(d, dot / f.where(norm > 0.0, norm, 1.0)), d)
        kept = {"mean": mean, "square": square, "sum": total, "start": {a: old(a, "start") for a in p}}
        return Update(
            {a: p[a] - rate * d * mean[a] / (f.sqrt(square[a]) + d * 1e-8) for a in p},
            {**{(a, n): x[a] for n, x in kept.items() for a in p}, ("", "distance"): distance, ("", "dot"): dot},
        )


class TestScheduleFree(GradientOptimiserSuite):
    def make(self) -> GradientOptimiser:
        return ScheduleFree(learning_rate=0.05)

    def expected(self, start: np.ndarray, gradients: np.ndarray) -> np.ndarray:
        """Return the points y as the reference implementation computes them, without x."""
        y, z, rate, beta, points = start.copy(), start.copy(), 0.05, 0.9, []
        for k, gradient in enumerate(gradients):
            share = 1 / (k + 1)
            y = y + share * (z - y) + rate * (beta * (1 - share) - 1) * gradient
            z = z - rate * gradient
            points.append(y)
        return np.array(points)


class TestProdigy(OptimiserSuite):
    def make(self) -> Optimiser:
        return Prodigy()

    test_every_slot_is_returned_and_updated = None  # type: ignore[assignment]  # its start never changes


def prodigy(start: np.ndarray, slope: Callable[[np.ndarray], np.ndarray], steps: int) -> tuple[np.ndarray, float]:
    """Return the point after some steps of the published algorithm, and the estimate of the distance."""
    x, m, v, s = start.copy(), *np.zeros((3, *start.shape))
    d, r, root = 1e-2, 0.0, np.sqrt(0.999)
    for _ in range(steps):
        g = slope(x)
        m, v = 0.9 * m + 0.1 * d * g, 0.999 * v + 0.001 * d * d * g * g
        r, s = root * r + (1 - root) * d * d * (g @ (start - x)), root * s + (1 - root) * d * d * g
        x, d = x - d * m / (np.sqrt(v) + d * 1e-8), max(d, r / np.abs(s).sum())
    return x, d


# -- a run -------------------------------------------------------------------------------------------------------------
def begun(optimiser: Any, folder: Path | None = None, **settings: Any) -> Environment:
    draw = np.random.default_rng(0)
    trusting = catalogue().trusting(__name__)
    sigma = Environment("copied", seed=0, precision="float64", folder=folder, catalogue=trusting)
    sigma.create_trainer(
        data=(draw.normal(size=(24, 3)), draw.normal(size=(24, 1))), batch_size=8, optimiser=optimiser,
        network="input(3) + dense(4, 'tanh') + output(1) + squared_difference()", backend="numpy", **settings,
    )  # fmt: skip
    return sigma


def frozen(kind: Any, match: str = "1-dense.*") -> Any:
    return kind(settings={"late": {"match": match, "frozen": True}})


KINDS = pytest.mark.parametrize("kind", [ScheduleFree, Prodigy])


def train(sigma: Environment, iterations: int) -> dict[str, np.ndarray]:
    trainer = sigma.trainer("trainer")
    trainer.fit(iterations=iterations, progress=False)
    return {name: trainer.session.host(name) for name in trainer.session.state.arrays}


def test_prodigy_takes_the_published_steps() -> None:
    scales, start = np.array([1.0, 4.0, 0.25, 9.0]), {"a": np.array([3.0, -2.0]), "b": np.array([5.0, 1.0])}

    def loss(p: Any) -> Any:
        return 0.5 * f.sum(np.array([1.0, 4.0]) * p["a"] * p["a"]) + 0.5 * f.sum(
            np.array([0.25, 9.0]) * p["b"] * p["b"]
        )

    found = minimise(loss, start, optimiser=Prodigy(), iterations=30, precision="float64", backend="numpy")
    wanted, distance = prodigy(np.concatenate([*start.values()]), lambda x: scales * x, 30)
    np.testing.assert_allclose(np.concatenate([found["a"], found["b"]]), wanted, rtol=1e-9)
    assert distance > 0.02  # the estimate has grown, in one slot for both


@KINDS
def test_a_slot_begins_as_the_initial_parameter(kind: Any) -> None:
    with begun(kind()) as sigma:
        sigma.prepare()
        arrays = train(sigma, 0)
        slot = {ScheduleFree: "fast", Prodigy: "start"}[kind]
        assert arrays[f"{SLOTS}.{slot}"].tolist() == arrays[FIRST].tolist()
        assert np.ptp(arrays[FIRST]) > 0.0


@KINDS
def test_a_released_parameter_goes_on_from_where_it_is(kind: Any) -> None:
    with begun(frozen(kind)) as sigma:
        sigma.prepare()
        before = train(sigma, 6)
        assert f"{SLOTS}.updates" not in before
        sigma.set("trainer.optimiser.1-dense.*.frozen", False)
        after = train(sigma, 1)
        moved = np.abs(after[FIRST] - before[FIRST]).max()
        assert 0.0 < moved < 0.5 * np.abs(before[FIRST]).max()


@KINDS
def test_a_parameter_that_is_frozen_by_a_command_keeps_its_slots(kind: Any) -> None:
    with begun(kind()) as sigma:
        sigma.prepare()
        train(sigma, 3)
        sigma.set("trainer.optimiser.1-dense.weights.frozen", True)
        before, after = train(sigma, 0), train(sigma, 3)
        own = [name for name in before if name == FIRST or name.startswith(f"{SLOTS}.")]
        assert len(own) > 2
        assert {name: after[name].tolist() for name in own} == {name: before[name].tolist() for name in own}


@KINDS
def test_training_goes_on_while_all_parameters_are_frozen(kind: Any) -> None:
    with begun(kind()) as sigma:
        sigma.prepare()
        before = train(sigma, 2)
        sigma.set("trainer.optimiser.frozen", True)
        after = train(sigma, 2)
        assert {n: x.tolist() for n, x in after.items() if n.startswith(("network.", "optimiser.slots"))} == {
            n: x.tolist() for n, x in before.items() if n.startswith(("network.", "optimiser.slots"))
        }


def test_a_slot_begins_again_when_its_parameter_is_set_and_undo_restores_both() -> None:
    with begun(ScheduleFree()) as sigma:
        sigma.prepare()
        before = train(sigma, 3)
        sigma.set("trainer.network.layers.1-dense.weights", 2.0)
        now = train(sigma, 0)
        assert {np.unique(now[name]).item() for name in (FIRST, f"{SLOTS}.fast", f"{SLOTS}.weights")} == {2.0}
        assert now[f"{SLOTS}.updates"] == before[f"{SLOTS}.updates"] == 3
        assert now[LAST].tolist() == before[LAST].tolist()
        sigma.undo()
        restored = train(sigma, 0)
        assert {name: x.tolist() for name, x in restored.items()} == {name: x.tolist() for name, x in before.items()}


def test_a_new_optimiser_copies_the_parameters_of_that_time() -> None:
    with begun("adam") as sigma:
        sigma.prepare()
        before = train(sigma, 3)
        sigma.swap("optimiser", {"python": f"{__name__}:ScheduleFree"})
        after = train(sigma, 0)
        assert after[f"{SLOTS}.fast"].tolist() == before[FIRST].tolist()


def test_the_average_is_offered_for_evaluation_as_optimiser() -> None:
    rows = np.random.default_rng(1).normal(size=(5, 3))
    with begun(ScheduleFree()) as sigma:
        sigma.prepare()
        arrays = train(sigma, 5)
        trainer = sigma.trainer("trainer")
        layers = [arrays[f"optimiser.slots.{name}.weights"] for name in (
            "1-dense.weights", "1-dense.biases", "2-output.weights", "2-output.biases"
        )]  # fmt: skip
        wanted = np.tanh(rows @ layers[0] + layers[1]) @ layers[2] + layers[3]
        np.testing.assert_allclose(trainer.predict(rows, weights="optimiser"), wanted, rtol=1e-12)
        assert not np.allclose(trainer.predict(rows), wanted)


# -- to the bit --------------------------------------------------------------------------------------------------------
@KINDS
def test_a_run_with_a_released_parameter_resumes_and_replays_to_the_bit(kind: Any, tmp_path: Path) -> None:
    saved = {"hooks": {"save": {"type": "checkpoint", "every": "9 epochs"}}}
    with begun(frozen(kind), tmp_path, **saved) as sigma:
        train(sigma, 5)
        sigma.set("trainer.optimiser.1-dense.*.frozen", False)
        train(sigma, 2)
        run = sigma.run_folder
        train(sigma, 4)
        wanted = decisive(sigma.trainer("trainer"))[0]
    assert run is not None
    with begun(frozen(kind), **saved) as again:
        again.resume(run)
        again.prepare()
        assert decisive(again.trainer("trainer"))[0] == wanted
    with begun(frozen(kind), **saved) as replayed:
        assert replayed.replay(run)[1] == {}
        assert decisive(replayed.trainer("trainer"))[0] == wanted


@KINDS
def test_one_shard_is_the_fused_step_and_workers_change_no_bits(kind: Any) -> None:
    def trained(operator: Any) -> Any:
        with begun(kind(), operator=operator) as sigma:
            train(sigma, 7)
            return decisive(sigma.trainer("trainer"))[0]

    assert trained(LocalOperator(shards=4)) == trained(LocalOperator(workers=3, shards=4))
    whole, cut = (train(begun(kind(), operator=operator), 7) for operator in (LocalOperator(), LocalOperator(shards=4)))
    assert whole.keys() == cut.keys()
    for name, value in whole.items():
        np.testing.assert_allclose(cut[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_several_optimisers_have_shared_slots_of_their_own() -> None:
    two = {
        "first": {"type": Prodigy(), "match": "1-dense.*"},
        "second": {"type": Prodigy(learning_rate=0.5), "match": "2-output.*"},
    }
    draw = np.random.default_rng(0)
    with Environment("two", seed=0) as sigma:
        sigma.create_trainer(
            data=(draw.normal(size=(8, 3)), draw.normal(size=(8, 1))), optimisers=two, backend="numpy",
            network="input(3) + dense(4) + output(1) + squared_difference()",
        )  # fmt: skip
        arrays = train(sigma, 12)
        distances = [float(arrays[f"optimisers.{name}.slots.distance"]) for name in two]
        assert distances[0] != distances[1]
        assert min(distances) > 0.01


# -- declarations ------------------------------------------------------------------------------------------------------
def test_wrong_declarations_are_refused() -> None:
    with pytest.raises(SigmaComponentError, match="copies_parameter has its shape. Leave out one of the two"):
        Slot(shape=(3,), copies_parameter=True)

    class CopiesOne(Momentum):
        def shared_slots(self) -> Mapping[str, Slot]:
            return {"start": Slot(copies_parameter=True)}

    class Dotted(Momentum):
        def shared_slots(self) -> Mapping[str, Slot]:
            return {"a.b": Slot()}

    class Forgets(GradientDescent):
        def shared_slots(self) -> Mapping[str, Slot]:
            return {"count": Slot()}

    for wrong, said in (
        (CopiesOne(), r"shared_slots\(\): 'start' cannot copy one parameter"),
        (Dotted(), r"shared_slots\(\): 'a.b' must be a name without dots"),
        (Forgets(), r"does not return the slot 'count', which shared_slots\(\) declares. Return it"),
    ):
        with begun(wrong) as sigma, pytest.raises(SigmaComponentError, match=said):
            train(sigma, 1)


class FromZero(ScheduleFree):
    """It begins at 0, wherever its parameter is."""

    def slots(self, parameter: Spec) -> Mapping[str, Slot]:
        return {"fast": Slot(), "weights": Slot()}


class AtItsFirstStep(FromZero):
    """It begins as the parameter at the first update, and does not notice one that is set."""

    def update(self, gradient: Node, parameter: Node, slots: Any, step: Node, hyper: Any) -> Any:
        first = {name: f.where(f.equal(step, 1.0), parameter, slot) for name, slot in slots.items()}
        return super().update(gradient, parameter, first, step, hyper)


@pytest.mark.parametrize(
    ("wrong", "caught"),
    [
        (FromZero, "test_a_parameter_without_a_gradient_stays_near_where_it_is_released"),
        (AtItsFirstStep, "test_a_parameter_without_a_gradient_stays_near_where_it_is_set"),
    ],
)
def test_the_suite_catches_slots_that_do_not_begin_as_the_parameter(wrong: Any, caught: str) -> None:
    class Suite(TestScheduleFree):
        def make(self) -> GradientOptimiser:
            return wrong(learning_rate=0.05)  # type: ignore[no-any-return]

    with pytest.raises(AssertionError, match="has moved by"):
        getattr(Suite(), caught)()
    getattr(TestScheduleFree(), caught)()


def test_a_trial_sets_a_parameter_as_a_command_does() -> None:
    trial = Trial(ScheduleFree(learning_rate=0.05))
    trial.run(2)
    trial.set_parameter("1-dense.weights", 3.0)
    assert {np.unique(trial.slots["1-dense.weights", name]).item() for name in ("fast", "weights")} == {3.0}
