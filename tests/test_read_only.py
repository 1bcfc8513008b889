"""Components get views of the user's arrays that cannot be written."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import define

from sigma_kernel import CostLayer, Environment, Preprocessor, functions as f
from sigma_kernel.errors import SigmaComponentError
from sigma_layers import Input, Output, SquaredDifference


@define(eq=False, kw_only=True)
class Zeroing(CostLayer):
    """A cost whose check writes to the targets."""

    def forward(self, context, output, targets):
        return f.mean(f.square(output - targets))

    def check(self, targets, output):
        targets[...] = 0


@define(eq=False, kw_only=True)
class Halving(Preprocessor):
    """A preprocessor that writes to the samples, in one of its methods."""

    section: str = "inputs"
    fits: bool = False

    def fit(self, blocks):
        for block in blocks if self.fits else ():
            block *= 0.5
        return {}

    def apply(self, values, fitted):
        values *= 0.5
        return values


def refuse(cost, message, **settings):
    x, y = np.ones((8, 3), "float32"), np.ones((8, 2), "float32")
    network = Input(3) + Output(2) + cost
    trainer = Environment("e", seed=0).create_trainer(data={"inputs": x, "targets": y}, network=network, **settings)
    with pytest.raises(SigmaComponentError, match=message):
        trainer.fit(epochs=1)
    assert (x.min(), y.min()) == (1.0, 1.0)


def test_a_cost_whose_check_writes_to_the_targets_is_refused_by_name():
    refuse(Zeroing(), r"(?s)layer .*read-only.*Correct its code", optimiser="adam")


@pytest.mark.parametrize("fits", [False, True])
def test_a_preprocessor_that_writes_to_the_samples_is_refused_by_name(fits):
    how = {"optimiser": "adam", "preprocessors": {"halve": Halving(fits=fits)}}
    refuse(SquaredDifference(), r"(?s)preprocessor 'halve'.*read-only.*Correct its code", **how)
