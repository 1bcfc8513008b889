"""Three weighted costs of one network: each has a curve of its own, from text and from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_layers import AbsoluteDifference, Dense, Input, MultiClassHinge, Output, SoftmaxCrossEntropy

pytestmark = pytest.mark.rooms

TEXT = """
trunk = input(4) + dense(8, activation="tanh", name="trunk")
trunk + output(3, name="class") + softmax_cross_entropy(name="ce", weight=0.5, label_smoothing=0.1)
trunk + output(3, name="margin") + multi_class_hinge(name="hinge", weight=0.25)
trunk + output(4, name="back") + absolute_difference(targets="inputs", name="l1", weight=2.0)
"""
COSTS = ("ce", "hinge", "l1")


def ends():
    trunk = Input(4) + Dense(8, activation="tanh", name="trunk")
    return [
        trunk + Output(3, name="class") + SoftmaxCrossEntropy(name="ce", weight=0.5, label_smoothing=0.1),
        trunk + Output(3, name="margin") + MultiClassHinge(name="hinge", weight=0.25),
        trunk + Output(4, name="back") + AbsoluteDifference(targets="inputs", name="l1", weight=2.0),
    ]


def trained(network, folder: Path | None = None):
    draw = np.random.default_rng(0)
    x, labels = draw.normal(size=(30, 4)), draw.integers(0, 3, 30).astype(np.int32)
    with Environment("three", seed=2, precision="float64", folder=folder) as sigma:
        trainer = sigma.create_trainer("trainer", data=(x, labels), batch_size=15)
        trainer.network, trainer.optimiser = network, {"type": "adam", "learning_rate": 0.01}
        trainer.hooks = {"score": {"type": "evaluate", "on": "training"}}
        history = trainer.fit(epochs=3)
        return history, trainer.evaluate("training"), trainer.predict(x), x, labels


def test_text_and_python_publish_the_same_three_costs():
    text, python = trained(TEXT)[0], trained(ends())[0]
    for name in ("loss", *(f"cost.{cost}" for cost in COSTS)):
        np.testing.assert_array_equal(text[f"training.{name}"], python[f"training.{name}"])
    total = sum(text[f"training.cost.{cost}"] for cost in COSTS)
    np.testing.assert_allclose(total, text["training.loss"], rtol=1e-12)


def test_each_is_its_formula_times_its_weight():
    _, found, said, x, labels = trained(TEXT)
    logs, margins, back = np.log(said["class"]), np.log(said["margin"]), said["back"]
    rows = np.arange(30)
    smooth = -(0.9 * logs[rows, labels] + 0.1 * logs.mean(1)).mean()
    ahead = np.maximum(0, 1 - margins[rows, labels][:, None] + margins)  # logarithms of a softmax differ as scores do
    ahead[rows, labels] = 0
    assert found["cost.ce"] == pytest.approx(0.5 * smooth, rel=1e-11)
    assert found["cost.hinge"] == pytest.approx(0.25 * (ahead.sum(1) / 3).mean(), rel=1e-11)
    assert found["cost.l1"] == pytest.approx(2.0 * abs(back - x).mean(), rel=1e-11)
    assert found["loss"] == pytest.approx(sum(found[f"cost.{cost}"] for cost in COSTS), rel=1e-12)


def test_a_run_folder_draws_a_curve_of_each(tmp_path):
    trained(TEXT, tmp_path)
    (drawn,) = tmp_path.glob("*/curves.svg")
    for cost in COSTS:
        assert f">{cost}<" in drawn.read_text(encoding="utf-8")
