"""Layer state that every epoch begins anew."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from attrs import define

from sigma_kernel.contracts import Context, Layer, Outputs, Parameter
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_testing.steering import Sweep, small_environment, state_bytes

FIRST, COUNT = 100.0, "network.layers.count"


@define(eq=False)
class Count(Layer):
    """Count batches: those of the epoch, from 100 on, and all."""

    def state(self, x: Spec) -> Mapping[str, Parameter]:
        return {"epoch": Parameter((), FIRST, each_epoch=True), "run": Parameter(())}

    def forward(self, context: Context, x: Node) -> Node | Outputs:
        return Outputs(x, {n: node + 1.0 for n, node in context.state.items()} if context.training else {})


@pytest.fixture
def counting(layers):
    def make(operator=None):
        environment = small_environment(operator or Sweep(), rows=23)
        trainer = environment.trainer("trainer")
        trainer.network = layers.Input() + Count(name="count") + layers.Dense(1) + layers.SquaredDifference()
        return environment

    return make


def counts(trainer):
    arrays = trainer.session.state.arrays
    return [float(arrays[f"{COUNT}.{name}"]) for name in ("epoch", "run")]


def test_it_has_its_first_value_at_the_beginning_of_every_epoch(counting):
    with counting() as sigma:
        trainer = sigma.trainer("trainer")
        trainer.fit(epochs=1)
        per_epoch = trainer.session.setup.feed.iterations_per_epoch
        assert counts(trainer) == [FIRST + per_epoch, per_epoch]
        trainer.fit(iterations=2)
        assert counts(trainer) == [FIRST + 2, per_epoch + 2]
        trainer.fit(iterations=1)
        assert counts(trainer) == [FIRST + 3, per_epoch + 3]
        trainer.fit(epochs=2)
        assert counts(trainer)[1] == 3 * per_epoch


def test_training_in_parts_gives_the_same_bits(counting):
    found = []
    for parts in ([2], [1, 1]):
        with counting() as sigma:
            for epochs in parts:
                sigma.trainer("trainer").fit(epochs=epochs)
            found.append(state_bytes(sigma.trainer("trainer")))
    assert found[0] == found[1]


def test_its_first_value_is_a_number():
    with pytest.raises(SigmaNetworkError, match="Parameter.each_epoch: needs a number.*'gaussian'"):
        Parameter((2,), "gaussian", each_epoch=True)
    assert np.isfinite(Parameter((2,), 1.5, each_epoch=True).initialiser)
