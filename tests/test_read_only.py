"""Components get views of the user's arrays that cannot be written."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from attrs import define

from sigma_kernel import CostLayer, Environment, Extractor, Metric, Operator, Preprocessor, functions as f
from sigma_kernel.clock import Moment
from sigma_kernel.errors import SigmaComponentError, SigmaTrainingError
from sigma_kernel.views import EnvironmentView
from sigma_layers import Input, Output, SquaredDifference
from sigma_testing import Do
from sigma_training.data.dataset import samples
from sigma_training.data.preprocessing import Preparation
from sigma_training.history import metrics


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

    def merge_all(self, parts):
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


def test_a_preprocessor_that_writes_to_what_a_checkpoint_holds_is_refused_by_name():
    preparation = Preparation("float32", {"clip": Clipping()}, {"clip": {"highest": np.ones(3)}})
    with pytest.raises(SigmaComponentError, match=r"(?s)preprocessor 'clip'.*read-only.*Correct its code"):
        preparation({"inputs": np.ones((2, 3))})


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
    fail(hooks)
    assert values.min() == 1.0


def fail(hooks):
    with pytest.raises(SigmaTrainingError, match=r"hook 'zero' \(.*\) failed: ValueError: assignment .* read-only"):
        create(hooks=hooks).fit(epochs=2)


def create(x=None, sigma=None, **settings):
    x = np.ones((8, 3)) if x is None else x
    return (sigma or Environment("e", seed=0)).create_trainer(
        data=(x, np.ones((len(x), 2))),
        network=Input(3) + Output(2) + SquaredDifference(),
        optimiser="adam",
        **settings,
    )


def test_a_hook_in_the_background_that_writes_to_what_another_one_has_published_is_refused_by_name():
    says = Do(does=lambda context: context.publish("seen", np.ones(3)), writes=["seen"], background=True)
    fail({"says": says, "zero": Do(does=lambda context: context.read("seen").fill(0), reads=["seen"], background=True)})


@define(eq=False)
class Doubling(Extractor):
    """An extractor that writes to the columns of a frame."""

    def extract(self, records):
        column = records["a"].to_numpy()
        column *= 2
        return {"inputs": column[:, None]}


@pytest.mark.parametrize(("library", "make"), [("polars", "DataFrame"), ("pyarrow", "table")])
def test_an_extractor_that_writes_to_the_frame_to_predict_from_is_refused_by_name(library, make):
    frame = getattr(pytest.importorskip(library), make)({"a": [1.0, 2.0]})
    with pytest.raises(SigmaComponentError, match=r"(?s)predict .*Doubling.*read-only.*Correct its code"):
        samples(frame, ["inputs"], {"frames": {"inputs": {}}}, lambda kind, chosen: Doubling())
    assert frame["a"].to_numpy().tolist() == [1.0, 2.0]


@define(eq=False, kw_only=True)
class Repeats(Do):
    """A hook that repeats the iteration after which it is due."""

    repeats = True


@pytest.mark.parametrize(
    "arrays",
    [
        lambda iteration: iteration.outcome["network.layers.1-output.weights"],
        lambda iteration: iteration.steps.arrays["network.layers.1-output.weights"],
        lambda iteration: iteration.batches.block["inputs"],
        lambda iteration: iteration.batches.rows,
    ],
)
def test_a_hook_that_writes_to_the_iteration_that_others_repeat_is_refused_by_name(arrays):
    def zero(context):
        arrays(context.iteration)[...] = 0

    fail({"zero": Repeats(does=zero)})


@define(eq=False, kw_only=True)
class Writes(Operator):
    """An operator that writes to its batches."""

    to: str

    def train(self, work):
        while work.boundary():
            work.advance(work.distance(), self._compute)
            work.settle()

    def _compute(self, steps, batches):
        (batches.rows if self.to == "rows" else batches.block[self.to])[...] = 0
        return steps.run_fused(batches)


@pytest.mark.parametrize("to", ["rows", "inputs"])
@pytest.mark.parametrize("rows", [8, 4096])
def test_an_operator_cannot_write_to_the_rows_of_the_user_or_their_order(to, rows):
    x = np.ones((rows, 3), "float32")
    with pytest.raises(ValueError, match="read-only"):
        create(x, operator=Writes(to=to)).fit(epochs=1)
    assert x.min() == 1.0


@pytest.mark.parametrize("look", [lambda view: view.get("trainer.seen"), lambda view: view.find("**.seen")[0][1]])
def test_a_monitor_cannot_write_to_what_a_hook_has_published(look):
    values = np.ones(3)
    with Environment("e", seed=0) as sigma:
        says = Do(does=lambda context: context.publish("seen", values), writes=["seen"])
        create(sigma=sigma, hooks={"says": says}).fit(epochs=1)
        with pytest.raises(ValueError, match="read-only"):
            look(EnvironmentView(sigma, threading.Event()))[...] = 0
    assert values.min() == 1.0


# -- curves ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("field", ["iterations", "epochs", "seconds", "values", "low", "high"])
def test_a_curve_cannot_be_written(field, monkeypatch):
    monkeypatch.setattr(metrics, "FULL", 8)
    history = metrics.History(most=16)
    for iteration in range(50):
        history.add("loss", float(iteration), Moment(iteration))
    (older, *_), one = [stretch.curve for stretch in history.stretches_since("loss", 0, 100)[1]], history.curve("loss")
    (measured,) = history.branched_curves("loss").lines["loss"].values()
    for curve in (older, one, measured):
        with pytest.raises(ValueError, match="read-only"):
            getattr(curve, field)[...] = 0
    assert history["loss"].tolist() == [*range(50)]
    history["loss"].sort()  # a copy
