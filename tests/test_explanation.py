"""What ``sigma explain`` says is what will be done."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Arrays
from sigma_hooks import Accuracy, EarlyStop, Stop
from sigma_initialisers import Constant, Gaussian
from sigma_kernel import Environment, when
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.training.explanation import Explanation, explain
from sigma_layers import Dense, Input, Output, SoftmaxCrossEntropy
from sigma_optimisers import Adam


@pytest.fixture
def explanation() -> Explanation:
    draw = np.random.default_rng(0)
    data = Arrays(inputs=draw.normal(size=(50, 4)).astype(np.float32), targets=draw.integers(0, 3, 50))
    with Environment() as sigma:
        trainer = sigma.create_trainer(batch_size=20, data={"training": data, "validation": data})
        trainer.network = Input(4) + Dense(8, activation="relu") + Output(3) + SoftmaxCrossEntropy()
        trainer.optimiser = Adam(settings={"slow": {"match": "2-output.*", "learning_rate": 1e-4, "frozen": False}})
        trainer.initialisers = {
            "all": ("**", Gaussian(0.1)),
            "biases": ("**.biases", Constant(0.5)),
            "one": ("1-dense.biases", Constant(0.0)),
        }
        trainer.hooks = {"a_stop": Stop(when=when("epoch").reaches(4)), "patience": EarlyStop(), "score": Accuracy()}
        return explain(trainer)


def test_layers_come_with_shapes_and_counts(explanation: Explanation) -> None:
    told = {layer["name"]: (layer["from"], layer["shape"], layer["parameters"]) for layer in explanation.layers}
    assert told["1-dense"] == (["0-input"], [8], 40)
    assert told["2-output"] == (["1-dense"], [3], 27)


def test_every_parameter_says_which_rules_hit_it(explanation: Explanation) -> None:
    told = {parameter["address"]: parameter for parameter in explanation.parameters}
    assert {address: p["initialiser"] for address, p in told.items()} == {
        "1-dense.weights": "all", "1-dense.biases": "one", "2-output.weights": "all", "2-output.biases": "biases",
    }  # fmt: skip
    assert told["2-output.weights"]["settings"]["learning_rate"] == {"value": 1e-4, "rule": "slow"}
    assert told["1-dense.weights"]["settings"]["learning_rate"] == {"value": 1e-3, "rule": None}


def test_hooks_are_in_the_order_in_which_they_run_and_say_why(explanation: Explanation) -> None:
    assert [hook["name"] for hook in explanation.hooks] == ["score", "patience", "a_stop"]
    assert explanation.reasons == ["score before patience: patience reads validation.loss, which score writes"]


def test_memory_and_bursts_are_counted(explanation: Explanation) -> None:
    weights = 40 + 27
    assert explanation.memory["state"] == 4 * 3 * weights + 8 + 4 + 4  # Adam's moments; key, iteration, step
    assert explanation.memory["data"] == 50 * (4 * 4 + 4)
    assert explanation.memory["working"] > 0
    assert explanation.bursts == {"iterations_per_epoch": 3, "iterations_to_first_due": 3, "goal": 12}


def test_the_document_is_plain(explanation: Explanation) -> None:
    import json

    assert json.loads(json.dumps(explanation.to_dict())) == explanation.to_dict()


@pytest.mark.parametrize("where", ["initialisers.x", "optimiser.settings.x"])
def test_a_rule_that_matches_nothing_is_refused_with_what_there_is(where: str) -> None:
    with Environment() as sigma:
        trainer = sigma.create_trainer(batch_size=2, data=Arrays(inputs=np.ones((4, 2)), targets=np.zeros(4, int)))
        trainer.network = Input(2) + Output(2) + SoftmaxCrossEntropy()
        trainer.optimiser = Adam(settings={"x": {"match": "1-*"}} if "settings" in where else {})
        trainer.initialisers = {} if "settings" in where else {"x": ("1-*", Constant(1.0))}
        with pytest.raises(
            SigmaConfigError, match=f"trainer.{where}: '1-\\*' matches no parameter. There are 1-output.weights"
        ):
            trainer.fit(epochs=1)
