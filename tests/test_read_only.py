"""Components get views of the user's arrays that cannot be written."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import define

from sigma_kernel import CostLayer, Environment, Metric, Preprocessor, functions as f
from sigma_kernel.errors import SigmaComponentError, SigmaTrainingError
from sigma_kernel.testing.doing import Do
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


@define(eq=False, kw_only=True)
class Clipping(Preprocessor):
    """A preprocessor that writes to what it has learned."""

    section: str = "inputs"

    def fit(self, blocks):
        return {"highest": np.ones(3)}

    def apply(self, values, fitted):
        fitted["highest"] += values.max(0)
        return values / fitted["highest"]


@define(eq=False, kw_only=True)
class Median(Metric):
    """A metric that writes to its totals, in one of its methods."""

    keeps_rows = True
    merges: bool = False

    def totals(self, prediction, targets):
        return f.mean(f.abs(prediction - targets), axis=1)

    def merged(self, parts):
        for part in parts if self.merges else ():
            part.sort()
        return np.concatenate(parts)

    def value(self, totals, rows):
        totals.sort()
        return float(totals[rows // 2])


def test_a_cost_whose_check_writes_to_the_targets_is_refused_by_name():
    refuse(Zeroing(), r"(?s)layer .*read-only.*Correct its code", optimiser="adam")


@pytest.mark.parametrize("fits", [False, True])
def test_a_preprocessor_that_writes_to_the_samples_is_refused_by_name(fits):
    how = {"optimiser": "adam", "preprocessors": {"halve": Halving(fits=fits)}}
    refuse(SquaredDifference(), r"(?s)preprocessor 'halve'.*read-only.*Correct its code", **how)


def test_a_preprocessor_that_writes_to_what_it_has_learned_is_refused_by_name():
    how = {"optimiser": "adam", "preprocessors": {"clip": Clipping()}}
    refuse(SquaredDifference(), r"(?s)preprocessor 'clip'.*read-only.*Correct its code", **how)


@pytest.mark.parametrize("merges", [False, True])
def test_a_metric_that_writes_to_its_totals_is_refused_by_name(merges):
    trainer = Environment("e", seed=0).create_trainer(
        data={"inputs": np.ones((8, 3)), "targets": np.ones((8, 2))}, network=Input(3) + Output(2) + SquaredDifference()
    )
    with pytest.raises(SigmaComponentError, match=r"(?s)metric 'median'.*read-only.*Correct its code"):
        trainer.evaluate("training", {"median": Median(merges=merges)})


@pytest.mark.parametrize("address", ["seen", "see*", "gradients.1-output.weights"])
def test_a_hook_that_writes_to_what_it_reads_is_refused_by_name(address):
    def zero(context):
        found = context.read(address)
        for one in found.values() if isinstance(found, dict) else [found]:
            one[...] = 0

    values = np.ones(3)
    says = Do(does=lambda context: context.publish("seen", values), writes=["seen"])
    hooks = {"says": says, "zero": Do(does=zero, reads=[address], priority=-1)}
    trainer = Environment("e", seed=0).create_trainer(
        data=(np.ones((8, 3)), np.ones((8, 2))),
        network=Input(3) + Output(2) + SquaredDifference(),
        optimiser="adam",
        hooks=hooks,
    )
    with pytest.raises(SigmaTrainingError, match=r"hook 'zero' \(.*\) failed: ValueError: assignment .* read-only"):
        trainer.fit(epochs=1)
    assert values.min() == 1.0
