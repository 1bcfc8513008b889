"""Owned layers in a loop: ``Context.scan``, with parameters, settings, state and random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import functions as f
from sigma_kernel.contracts import Architecture, Context, Layer, Outputs, Parameter, live
from sigma_kernel.errors import SigmaGraphError, SigmaNetworkError
from sigma_kernel.graph import Graph, Node, Spec, gradient, interpret, numpy_namespace
from sigma_kernel.network.network import Network
from sigma_testing import LayerSuite, trace_layer

BATCH, STEPS, UNITS = 2, 5, 3
RANDOM = np.random.default_rng(0)
X, W, MEAN = (RANDOM.normal(size=s) for s in ((BATCH, STEPS, UNITS), (UNITS, UNITS), (UNITS,)))


@define(eq=False)
class Sums(Layer):
    def parameters(self, x: Spec) -> dict[str, Parameter]:
        return {"weights": Parameter((x.shape[-1], UNITS), 0.5)}

    def forward(self, context: Context, x: Node) -> Node:
        return x @ context.parameters["weights"]


@define(eq=False)
class Running(Layer):
    """Subtract a running mean, and update it in training."""

    pace: float = live(0.25, low=0.0)

    def state(self, x: Spec) -> dict[str, Parameter]:
        return {"mean": Parameter(x.shape)}

    def forward(self, context: Context, x: Node) -> Node | Outputs:
        mean, pace = context.state["mean"], context.live["pace"]
        new = {"mean": mean + (f.mean(x, axis=0) - mean) * pace} if context.training else {}
        return Outputs(x - mean, new)


@define(eq=False)
class Noise(Layer):
    def forward(self, context: Context, x: Node) -> Node:
        return x + context.key.uniform(x.shape, dtype=x.dtype) if context.key else x


@define(eq=False)
class Input(Layer):
    section: str = "inputs"
    role = "input"

    def forward(self, context: Context, x: Node) -> Node:
        return x


@define(eq=False)
class Loop(Layer):
    """Run a cell over time: ``h' = tanh(cell(h) + x)``; returns all h."""

    cell: Architecture
    reverse: bool = False

    def forward(self, context: Context, x: Node) -> Node:
        def step(h: Node, now: Node) -> tuple[list[Node], list[Node]]:
            h = f.tanh(context.run("cell", self.cell, h) + now)
            return [h], [h]

        start = f.zeros((x.shape[0], *x.shape[2:]), x.dtype)
        _, (every,) = context.scan(step, [start], [f.swap_axes(x, 0, 1)], self.reverse)
        return f.swap_axes(every, 0, 1)


class TestALoopOfOwnedLayers(LayerSuite):
    inputs = (Spec((4, UNITS)),)
    test_its_text_form_round_trips = None  # no plugin offers the cell

    def make(self) -> Layer:
        return Loop(Sums())


class TestALoopOfLayersWithState(TestALoopOfOwnedLayers):
    def make(self) -> Layer:
        return Loop(Sums() + Running())


def values(layer: Layer, training: bool = True, **given: Any) -> dict[str, np.ndarray]:
    """Return the output of a layer on X, as ``""``, and its new state, with values by the end of their address."""
    it = trace_layer(layer, [Spec(X.shape, "float64")], training=training)
    words = {"key": np.array([1, 2], np.uint32), **dict.fromkeys(("iteration", "row", "scan"), np.uint32(0))}
    known = {**words, "input 0": X, "weights": W, "mean": MEAN, "pace": np.array(0.25), **given}
    found = it.run([known[name.rpartition(".")[2]] for name in it.names])
    return dict(zip(("", *(name.removeprefix("0-it.") for name in it.changes)), found, strict=True))


def unrolled(steps: int, training: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return all outputs of the loop of Sums and Running in plain NumPy, and the mean at its end."""
    h, mean, rows = np.zeros((BATCH, UNITS)), MEAN, []
    for t in range(steps):
        sums = h @ W
        h = np.tanh(sums - mean + X[:, t])
        mean = mean + (sums.mean(0) - mean) * 0.25 if training else mean
        rows.append(h)
    return np.stack(rows, 1), mean


def test_parameters_and_settings_of_owned_layers_are_those_of_one_copy():
    it = trace_layer(Loop(Sums() + Running()), [Spec(X.shape, "float64")], training=True)
    assert list(it.shapes.parameters) == ["0-it.cell.0-sums.weights"]
    assert list(it.shapes.state) == ["0-it.cell.1-running.mean"]
    assert list(it.shapes.live) == ["0-it.cell.1-running.pace"]


@pytest.mark.parametrize("training", [True, False])
def test_state_goes_from_step_to_step_and_the_last_one_is_kept(training):
    found = values(Loop(Sums() + Running()), training)
    rows, mean = unrolled(STEPS, training)
    np.testing.assert_allclose(found[""], rows, rtol=1e-12)
    if training:
        np.testing.assert_allclose(found["cell.1-running.mean"], mean, rtol=1e-12)
    else:
        assert list(found) == [""]


def test_a_layer_that_runs_before_and_in_a_loop_continues_from_its_own_state():
    @define(eq=False)
    class Both(Loop):
        def forward(self, context: Context, x: Node) -> Node:
            first = context.run("cell", self.cell, x[:, 0])
            return super().forward(context, x) + f.expand(first, 1) * 0.0

    found = values(Both(Running()))
    mean = MEAN + (X[:, 0].mean(0) - MEAN) * 0.25
    h = np.zeros((BATCH, UNITS))
    for t in range(STEPS):
        h, mean = np.tanh(h - mean + X[:, t]), mean + (h.mean(0) - mean) * 0.25
        np.testing.assert_allclose(found[""][:, t], h, rtol=1e-12)
    np.testing.assert_allclose(found["cell.mean"], mean, rtol=1e-12)


def test_gradients_go_through_the_whole_loop():
    it = trace_layer(Loop(Sums()), [Spec(X.shape, "float64")], training=True)
    slopes = Graph(it.graph.inputs, gradient(f.sum(it.output[:, -1]), it.graph.inputs))
    by_x, by_w = interpret(slopes, numpy_namespace())(X, W)
    flow, total, rows = np.ones((BATCH, UNITS)), np.zeros_like(W), values(Loop(Sums()))[""]
    for t in reversed(range(STEPS)):
        flow = flow * (1 - rows[:, t] ** 2)
        np.testing.assert_allclose(by_x[:, t], flow, rtol=1e-12)
        total += rows[:, t - 1].T @ flow if t else 0.0
        flow = flow @ W.T
    np.testing.assert_allclose(by_w, total, rtol=1e-12)


# -- random numbers ----------------------------------------------------------------------------------------------------
def noise(cell: Architecture, **given: Any) -> np.ndarray:
    """Return the numbers that a cell adds in each step: ``arctanh`` undoes the loop's ``tanh``."""
    rows = values(Loop(cell), **given)[""]
    before = np.concatenate([np.zeros((BATCH, 1, UNITS)), rows[:, :-1]], axis=1)
    return np.arctanh(rows) - before - given.get("x", X)


def test_every_step_draws_other_numbers():
    drawn = noise(Noise()).reshape(-1).round(9)
    assert len(set(drawn)) == len(drawn)
    assert drawn.min() >= 0.0


def test_a_step_draws_the_same_numbers_whatever_its_direction_and_the_number_of_steps():
    forward = noise(Noise())
    rows = values(Loop(Noise(), reverse=True))[""]
    after = np.concatenate([rows[:, 1:], np.zeros((BATCH, 1, UNITS))], axis=1)
    np.testing.assert_allclose(np.arctanh(rows) - after - X, forward, rtol=1e-7)


def test_numbers_of_a_layer_without_state_do_not_depend_on_others_with_state():
    it = [
        trace_layer(Loop(cell), [Spec(X.shape, "float64")], training=True)
        for cell in (Noise() + Sums(), Noise() + Running())
    ]
    assert [list(one.shapes.streams.numbers) for one in it] == [["0-it.cell.0-noise"]] * 2


def test_rows_of_a_shard_draw_the_numbers_that_they_draw_in_the_batch():
    @define(eq=False)
    class Only(Layer):
        def forward(self, context: Context, x: Node) -> Node:
            _, (drawn,) = context.scan(lambda: ([], [context.key.uniform(x.shape[:1])]), [], [], length=4)
            return f.swap_axes(drawn, 0, 1)

    def drawn(rows: int, first: int) -> np.ndarray:
        it = trace_layer(Only(), [Spec((rows, 1))], training=True)
        known = {"key": np.array([1, 2], np.uint32), "iteration": np.uint32(3), "row": np.uint32(first)}
        return it.run([known.get(name, np.zeros((rows, 1), np.float32)) for name in it.names])[0]

    whole = drawn(6, 0)
    assert whole.shape == (6, 4)
    assert len(np.unique(whole)) == whole.size
    np.testing.assert_array_equal(drawn(2, 4), whole[4:])


def test_loops_in_loops_draw_other_numbers_in_every_step_of_both():
    @define(eq=False)
    class Nested(Layer):
        def forward(self, context: Context, x: Node) -> Node:
            def outer() -> tuple[list[Node], list[Node]]:
                _, (drawn,) = context.scan(lambda: ([], [context.key.uniform((BATCH,))]), [], [], length=3)
                return [], [drawn]

            _, (drawn,) = context.scan(outer, [], [], length=4)
            return f.permute(drawn, (2, 0, 1))

    drawn = values(Nested())[""]
    assert drawn.shape == (BATCH, 4, 3)
    assert len(np.unique(drawn)) == drawn.size


def test_numbers_drawn_before_a_loop_are_the_same_in_every_step():
    @define(eq=False)
    class Variational(Layer):
        def forward(self, context: Context, x: Node) -> Node:
            once = context.key.uniform((BATCH,), dtype="float64")
            return f.swap_axes(context.scan(lambda: ([], [once]), [], [], length=4)[1][0], 0, 1)

    drawn = values(Variational())[""]
    np.testing.assert_array_equal(drawn, np.repeat(drawn[:, :1], 4, axis=1))


# -- errors ------------------------------------------------------------------------------------------------------------
@define(eq=False)
class Leaking(Layer):
    """Use a node of the body outside of it."""

    way: str
    cell: Architecture

    def forward(self, context: Context, x: Node) -> Node:
        inside = []

        def step(h: Node) -> tuple[list[Node], list[Node]]:
            inside.append(context.run("cell", self.cell, h) + h)
            return [h], []

        loop = context.scan if self.way == "context" else f.scan
        ends, _ = loop(step, [x], [], length=2)
        return inside[-1] if self.way == "context" else ends[0]


@pytest.mark.parametrize(
    ("layer", "where"),
    [(Leaking("context", Sums()), "1-leaking"), (Leaking("functions", Running()), "1-leaking.cell.mean")],
)
def test_a_node_of_the_body_cannot_be_used_outside_of_it(layer, where):
    network = Network.build(Input() + layer)
    with pytest.raises(SigmaNetworkError, match=f"^{where}: uses a node of the body of a scan outside.*context.scan"):
        network.declare({"inputs": Spec((UNITS,))}, "float32", lambda kind, chosen: chosen)


def test_a_body_that_returns_something_else_is_refused():
    @define(eq=False)
    class Wrong(Layer):
        def forward(self, context: Context, x: Node) -> Node:
            return context.scan(lambda h: h, [x], [], length=2)[0][0]

    with pytest.raises(
        (SigmaGraphError, SigmaNetworkError), match=r"body must return \(\[1 new carries\], \[outputs\]\)"
    ):
        values(Wrong())


def test_a_loop_needs_to_know_how_many_steps_it_has():
    @define(eq=False)
    class Endless(Layer):
        def forward(self, context: Context, x: Node) -> Node:
            return context.scan(lambda h: ([h], []), [x], [])[0][0]

    with pytest.raises(SigmaNetworkError, match="the number of steps is unknown. Pass a sequence, or a length"):
        values(Endless())
