"""Owned layers in a loop, on both backends and in shards: parameters, state, and random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Architecture, Context, Layer, Outputs, Parameter
from sigma_kernel.graph import Node, Spec
from sigma_layers import Dense, Dropout, Input, Output, SquaredDifference

TIME, FEATURES, UNITS = 6, 2, 4
RANDOM = np.random.default_rng(0)
DATA = {
    "inputs": RANDOM.normal(size=(12, TIME, FEATURES)).astype(np.float32),
    "targets": RANDOM.normal(size=(12, 1)).astype(np.float32),
}


@define(eq=False)
class Running(Layer):
    """Subtract a running mean, which training updates."""

    def state(self, x: Spec) -> dict[str, Parameter]:
        return {"mean": Parameter(x.shape)}

    def forward(self, context: Context, x: Node) -> Node | Outputs:
        mean = context.state["mean"]
        return Outputs(x - mean, {"mean": mean * 0.9 + f.mean(x, axis=0) * 0.1} if context.training else {})


@define(eq=False)
class Walk(Layer):
    """Walk over a sequence with a cell."""

    cell: Architecture = field()

    def forward(self, context: Context, x: Node) -> Node:
        def step(h: Node, now: Node) -> tuple[list[Node], list[Node]]:
            return [context.run("cell", self.cell, f.concat(now, h))], []

        (last,), _ = context.scan(step, [f.zeros((x.shape[0], UNITS), x.dtype)], [f.swap_axes(x, 0, 1)])
        return last


def losses(cell, **settings):
    """Return the losses of some iterations of training."""
    trainer = Environment("loops", seed=3).create_trainer(data=DATA, batch_size=6, **settings)
    trainer.network = Input(TIME, FEATURES) + Walk(cell) + Output(1) + SquaredDifference()
    trainer.optimiser = {"type": "gradient_descent", "learning_rate": 0.1}
    trainer.fit(epochs=3)
    return trainer.history["training.loss"]


@pytest.mark.rooms
def test_both_backends_draw_the_same_numbers_and_carry_the_same_state():
    cell = Dense(UNITS, activation="tanh") + Dropout(0.3) + Running()
    np.testing.assert_allclose(losses(cell, backend="numba"), losses(cell, backend="numpy"), rtol=1e-5)


@pytest.mark.rooms
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_shards_draw_the_numbers_of_the_whole_batch(backend):
    cell = Dense(UNITS, activation="tanh") + Dropout(0.3)
    whole, cut = (losses(cell, backend=backend, operator={"type": "local", "shards": n}) for n in (1, 2))
    np.testing.assert_allclose(cut, whole, rtol=1e-5)
    assert abs(whole - losses(Dense(UNITS, activation="tanh"), backend=backend)).max() > 1e-3
