"""Freeze and release: which parameters they mean, and what that does to training."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, SigmaAddressError

pytestmark = pytest.mark.rooms


def test_frozen_parameters_keep_their_bits_and_others_are_trained() -> None:
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    with Environment("frozen") as sigma:
        trainer = sigma.create_trainer(
            backend="numpy",
            data=(x, x.sum(1, keepdims=True)),
            network="input(3) + dense(4) + output(1) + squared_difference()",
            optimiser={"type": "adam"},
        )
        sigma.prepare()
        sigma.send("freeze", pattern="**.1-dense.*")
        before = sigma.find("trainer.network.layers.*.weights")
        trainer.fit(epochs=2)
        after = sigma.find("trainer.network.layers.*.weights")
        same = {name for name in before if np.array_equal(before[name], after[name])}
        assert same == {name for name in before if ".1-dense." in name}
        assert sigma.get("trainer.optimiser.1-dense.weights.frozen")
        sigma.send("release", pattern="trainer.network.layers.1-dense.weights")
        assert not sigma.get("trainer.optimiser.1-dense.weights.frozen")
        assert sigma.get("trainer.optimiser.1-dense.biases.frozen")
        with pytest.raises(SigmaAddressError, match=r"freeze: iteration matches no parameter that is trained\."):
            sigma.send("freeze", pattern="trainer.iteration")
