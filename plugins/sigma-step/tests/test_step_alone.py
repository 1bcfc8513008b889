"""A step is built, compiled and run without a trainer, data sets or hooks."""

from __future__ import annotations

import gc
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.clock import Moment
from sigma_kernel.contracts import Batches, GradientOptimiser, Optimisation, Parameter
from sigma_kernel.graph.node import Node, Spec
from sigma_kernel.network.network import Forward
from sigma_kernel.network.tracing import Shapes, Trace
from sigma_step import Model
from sigma_step.graphs import training_step
from sigma_step.initial import Initial
from sigma_step.measuring import read_measurements
from sigma_step.rules import assign_optimisers, live_values
from sigma_step.steps import Programs, Steps
from sigma_testing.null import NullBackend

DRAW = np.random.default_rng(3)
X, Y = DRAW.normal(size=(12, 2)), DRAW.normal(size=(12,))
RATE = 0.1


@define(eq=False, kw_only=True)
class Descent(GradientOptimiser):
    def update(
        self, gradient: Node, parameter: Node, slots: Mapping[str, Node], step: Node, hyper: Mapping[str, Node]
    ) -> tuple[Node, Mapping[str, Node]]:
        return parameter - hyper["learning_rate"] * gradient, {}


class Line:
    """The mean square of the distance to a line, in place of a network."""

    layers = costs = targeted_costs = ()

    def sections(self, costs: bool = True, there: Collection[str] = ()) -> list[str]:
        return ["x", "y"]

    def forward(self, trace: Trace, sections: Mapping[str, Node]) -> Forward:
        slopes = (trace.given or {})["slopes"]
        loss = f.mean(f.square(sections["x"] @ slopes - sections["y"]))
        return Forward(values={}, predictions={}, costs={"loss": loss}, state={})


def resolve(kind: Any, chosen: Any, where: str = "") -> Any:
    return chosen


@pytest.fixture
def model() -> Model:
    sections = {"x": Spec((2,), "float64"), "y": Spec((), "float64")}
    shapes = Shapes({"slopes": Parameter((2,), 0.0)})
    model = Model(Line(), shapes, sections, "float64", resolve)  # type: ignore[arg-type]
    return assign_optimisers("line", model, {"optimiser": Optimisation(Descent(learning_rate=RATE))})


def begin(model: Model) -> Steps:
    backend = NullBackend()
    arrays = {name: backend.to_device(x) for name, x in Initial(model, {}, seed=1).arrays().items()}
    return Steps(Programs(model, backend), arrays, live_values(model), Moment())


def test_a_burst_takes_the_steps_of_gradient_descent(model: Model) -> None:
    steps, rows = begin(model), np.arange(12, dtype=np.int32).reshape(3, 4)
    slopes, losses = np.zeros(2), []
    for batch in rows:
        distances = X[batch] @ slopes - Y[batch]
        losses.append((distances**2).mean())
        slopes = slopes - RATE * 2 * X[batch].T @ distances / 4
    burst = steps.run_fused(Batches({"x": X.copy(), "y": Y.copy()}, rows))
    measured, _ = read_measurements(burst.ring, {}, 4)["loss"]
    np.testing.assert_allclose(measured, losses, rtol=1e-12)
    np.testing.assert_allclose(burst.state["network.layers.slopes"], slopes, rtol=1e-12)


def test_shards_of_a_batch_give_the_same_update_as_the_batch(model: Model) -> None:
    whole = begin(model).run_fused(Batches({"x": X.copy(), "y": Y.copy()}, np.arange(12, dtype=np.int32)[None])).state
    steps = begin(model)
    parts = [
        steps.share(
            steps.arrays, {"x": X.copy(), "y": Y.copy()}, np.arange(start, start + 6, dtype=np.int32), start, 12, 0, {}
        )
        for start in (0, 6)
    ]
    merged = {dtype: vector + parts[1].gradients[dtype] for dtype, vector in parts[0].gradients.items()}
    new = steps.apply_update(steps.arrays, merged, {}, 0)
    np.testing.assert_allclose(new["network.layers.slopes"], whole["network.layers.slopes"], rtol=1e-12)


@pytest.mark.parametrize("error", [None, ValueError("no such code")])
@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_while_a_program_is_compiled(model: Model, enabled: bool, error: Exception | None) -> None:
    found = []

    class Watched(NullBackend):
        def compile(self, step: Any, in_place: bool = True) -> Any:
            found.append(gc.isenabled())
            if error is not None:
                raise error
            return super().compile(step, in_place)

    programs = Programs(model, Watched())
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(Exception, match="no such code") if error else nullcontext():
            programs.get(training_step, 4)
        assert (found, gc.isenabled()) == ([False], enabled)
    finally:
        gc.enable()
