"""Costs that predict with their own parameters: what predicts, measures, names classes and exports follows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from sigma_kernel import Context, CostLayer, Environment, Parameter, functions as f, live
from sigma_kernel.errors import SigmaComponentError
from sigma_kernel.graph import Node, Spec
from sigma_kernel.settings import ge
from sigma_layers import Dense, Input
from sigma_operator_local import LocalOperator
from sigma_run import load
from sigma_testing import CostSuite

pytestmark = pytest.mark.rooms
ROWS = np.random.default_rng(0).normal(size=(90, 3))
NUMBERS = ROWS.argmax(axis=1)
WORDS = np.array(["ash", "birch", "cedar"])[NUMBERS]


def unit(x: Node, axis: int) -> Node:
    return x / f.sqrt(f.sum(f.square(x), axis=axis, keepdims=True) + 1e-12)


@define(eq=False, kw_only=True)
class Directions(CostLayer):
    """Softmax cross-entropy of cosines to the direction of each class; ArcFace, Deng et al., 2019, without a margin."""

    classes: int = field(default=3, validator=ge(2))
    scale: float = live(16.0, above=0.0)

    chooses = True

    def parameters(self, *inputs: Spec) -> Mapping[str, Parameter]:
        return {"directions": Parameter((inputs[0].shape[-1], self.classes), initialiser="glorot_uniform")}

    def logits(self, context: Context, output: Node) -> Node:
        return context.live["scale"] * (unit(output, -1) @ unit(context.parameters["directions"], 0))

    def forward(self, context: Context, output: Node, targets: Node) -> Node:
        return f.mean(f.softmax_cross_entropy(self.logits(context, output), targets))

    def predict(self, context: Context, output: Node) -> Node:
        return f.softmax(self.logits(context, output))


class TestDirections(CostSuite):
    inputs = (Spec((5,)), Spec((), "int64"))

    def make(self) -> CostLayer:
        return Directions()


def trained(targets: np.ndarray = NUMBERS, network: Any = None, **settings: Any) -> Any:
    sigma = Environment("directions", seed=0, precision="float64")
    trainer = sigma.create_trainer(
        data=(ROWS, targets), network=network or Input(3) + Dense(6) + Directions(), optimiser="adam", batch_size=30,
        **{"backend": "numpy", **settings},
    )  # fmt: skip
    trainer.fit(epochs=60, progress=False)
    return trainer


def predicted(trainer: Any, rows: np.ndarray = ROWS) -> np.ndarray:
    """Return the probabilities of the formula, computed in NumPy."""
    weights, biases, directions = (
        trainer.session.host(f"network.layers.{name}")
        for name in ("1-dense.weights", "1-dense.biases", "2-directions.directions")
    )
    inner = rows @ weights + biases
    cosines = inner @ directions / np.linalg.norm(inner, axis=1)[:, None] / np.linalg.norm(directions, axis=0)
    shares = np.exp(16.0 * cosines)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("targets", [NUMBERS, WORDS], ids=["numbers", "words"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_it_predicts_and_measures_by_its_parameters(targets: np.ndarray, backend: str) -> None:
    trainer = trained(targets, backend=backend)
    wanted = predicted(trainer)
    np.testing.assert_allclose(trainer.predict(ROWS), wanted, rtol=1e-7)
    right = float((wanted.argmax(axis=1) == NUMBERS).mean())
    assert trainer.evaluate("training", {"accuracy": "accuracy"})["accuracy"] == pytest.approx(right)
    assert right > 0.9
    loss = -np.log(wanted[np.arange(len(ROWS)), NUMBERS]).mean()
    assert trainer.evaluate("training")["loss"] == pytest.approx(loss)


def test_words_are_the_names_of_its_classes_in_a_stored_run(tmp_path: Path) -> None:
    sigma = Environment("stored", seed=0, folder=tmp_path)
    trainer = sigma.create_trainer(data=(ROWS, WORDS), optimiser="adam", batch_size=30, backend="numpy")
    trainer.network = Input(3) + Dense(6) + Directions()
    trainer.hooks = {
        "confusion": {"type": "confusion_matrix", "on": "training"},
        "accuracy": {"type": "accuracy", "on": "training"},
    }
    trainer.fit(epochs=30, progress=False)
    table = np.asarray(sigma.get("trainer.training.confusion_matrix"))
    assert table.shape == (3, 3)
    assert table.sum() == len(ROWS)
    assert sigma.get("trainer.training.accuracy") == pytest.approx(np.trace(table) / len(ROWS))
    assert trainer.session.setup.evaluator.classes == ("ash", "birch", "cedar")


def test_a_metric_in_training_and_shards_reads_the_prediction() -> None:
    accuracy = {"metrics": {"right": "accuracy"}}
    whole, cut = (trained(operator=LocalOperator(shards=n), **accuracy) for n in (1, 3))
    for trainer in (whole, cut):
        assert 0.9 < trainer.history["training.right"][-1] <= 1.0
    np.testing.assert_allclose(cut.predict(ROWS), whole.predict(ROWS), rtol=1e-6)


def test_a_setting_of_the_cost_acts_on_its_predictions_at_once() -> None:
    trainer = trained()
    sharp = trainer.predict(ROWS)
    trainer.host.set("trainer.network.layers.2-directions.scale", 1.0)
    assert trainer.predict(ROWS).max() < sharp.max()


def test_shared_parameters_predict_too() -> None:
    class Lends(Dense):
        """A layer whose weights are the directions."""

    network = Input(3) + Lends(3, bias=False, name="lends") + Directions(share={"directions": "lends.weights"})
    trainer = trained(network=network)
    weights = trainer.session.host("network.layers.lends.weights")
    inner = ROWS @ weights
    cosines = inner @ weights / np.linalg.norm(inner, axis=1)[:, None] / np.linalg.norm(weights, axis=0)
    shares = np.exp(16.0 * cosines)
    np.testing.assert_allclose(trainer.predict(ROWS), shares / shares.sum(axis=1, keepdims=True), rtol=1e-7)


@pytest.mark.parametrize("cost", ["adaptive_softmax(3, [1], 2.0)", "adaptive_softmax(3, [1, 2], 2.0, bias=true)"])
def test_a_network_that_is_loaded_predicts_too(cost: str, tmp_path: Path) -> None:
    sigma = Environment("stored", seed=0, folder=tmp_path)
    trainer = sigma.create_trainer(data=(ROWS, WORDS), optimiser="adam", batch_size=30, backend="numpy")
    trainer.network = f"input(3) + dense(6) + {cost}"
    trainer.fit(epochs=1, progress=False)
    wanted = trainer.predict(ROWS)
    assert wanted.shape == (90, 3)
    np.testing.assert_array_equal(load(sigma.run_folder).predict(ROWS), wanted)
    np.testing.assert_array_equal(load(trainer.save(tmp_path / "saved")).predict(ROWS), wanted)


def test_a_prediction_that_is_no_node_is_refused() -> None:
    class Wrong(Directions):
        def predict(self, context: Context, output: Node) -> Any:
            return None

    with pytest.raises(SigmaComponentError, match="its prediction must be a node"):
        trained(network=Input(3) + Dense(6) + Wrong())
