"""Ranks and cross-entropies of scores whose probabilities float32 rounds to 0 or 1."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest

from sigma_hooks.scores import log_odds
from sigma_kernel import Environment, functions as f
from sigma_kernel.graph import Node, Spec, interpret, numpy_namespace, symbol, trace
from sigma_layers import BinaryCrossEntropy, Dense, FunctionCost, Hinge, Input, SoftmaxCrossEntropy, SquaredDifference

DRAW = np.random.default_rng(0)
ANSWERS = DRAW.integers(0, 2, 200)
LOGITS = (18 + 2 * ANSWERS + 2 * DRAW.normal(size=200)).astype(np.float32)
MANY = (DRAW.normal(size=(150, 5)) * 20).astype(np.float32)
LABELS = np.where(DRAW.random(150) < 0.7, MANY.argmax(1), DRAW.integers(0, 5, 150))


def area(scores: np.ndarray, own: np.ndarray) -> float:
    """Return the share of pairs in the right order (Mann and Whitney)."""
    apart = scores[own][:, None] - scores[~own]
    return float(np.mean((apart > 0) + (apart == 0) / 2))


def odds(logits: np.ndarray) -> np.ndarray:
    """Return the logarithms of the odds of each class against all others, in extended precision."""
    wide = logits.astype(np.longdouble)

    def against_others(c: int) -> np.ndarray:
        others = np.delete(wide, c, axis=1)
        most = others.max(1)
        found: np.ndarray = wide[:, c] - most - np.log(np.exp(others - most[:, None]).sum(1))
        return found

    return np.stack([against_others(c) for c in range(wide.shape[1])], axis=1)


def evaluate(
    network: Any, x: np.ndarray, targets: np.ndarray, backend: str = "numpy", **metrics: str
) -> dict[str, Any]:
    with Environment("saturated", seed=0) as sigma:
        trainer = sigma.create_trainer(network=network, data=(x, targets), backend=backend, batch_size=min(50, len(x)))
        found: dict[str, Any] = trainer.evaluate("training", metrics)
        return found


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_auc_is_that_of_the_logits(backend: str) -> None:
    found = evaluate(Input(1) + BinaryCrossEntropy(), LOGITS[:, None], ANSWERS, backend, auc="auc")["auc"]
    assert found == area(LOGITS, ANSWERS == 1) == pytest.approx(0.7573641056787124, abs=1e-15)  # as scikit-learn 1.7
    assert area(1 / (1 + np.exp(-LOGITS)), ANSWERS == 1) < 0.66  # of probabilities


def test_auc_of_two_classes_is_that_of_one_logit() -> None:
    pair = np.stack([np.zeros(200, np.float32), LOGITS], axis=1)
    assert evaluate(Input(2) + SoftmaxCrossEntropy(), pair, ANSWERS, auc="auc")["auc"] == area(LOGITS, ANSWERS == 1)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_auc_of_many_classes_is_that_of_the_exact_odds(backend: str) -> None:
    expected = [area(odds(MANY)[:, c], c == LABELS) for c in range(5)]
    found = evaluate(Input(5) + SoftmaxCrossEntropy(), MANY, LABELS, backend, auc="auc")["auc"]
    assert found == pytest.approx(np.mean(expected), abs=1e-12)


def test_saturated_scores_that_are_equal_are_ties() -> None:
    logits = np.repeat(np.array([40.0, 60.0], np.float32), 100)
    answers = np.tile([0, 1], 100)
    for cost, x in (
        (BinaryCrossEntropy(), logits[:, None]),
        (SoftmaxCrossEntropy(), np.stack([-logits, logits], axis=1)),
    ):
        assert evaluate(Input(x.shape[1]) + cost, x, answers, auc="auc")["auc"] == 0.5


def test_scores_that_are_no_probabilities_rank_as_they_are() -> None:
    found = evaluate(Input(1) + Hinge(), LOGITS[:, None], 2 * ANSWERS - 1, auc="auc")["auc"]
    assert found == area(LOGITS, ANSWERS == 1)


def test_a_network_that_ends_in_a_sigmoid_of_its_own_is_ranked_by_what_it_is_of() -> None:
    network = Input(1) + FunctionCost(lambda y, t: f.mean(f.square(y - t)))
    with Environment("own", seed=0) as sigma:
        trainer = sigma.create_trainer(
            network=Input(1) + Dense(1, activation="sigmoid", bias=False) + SquaredDifference(),
            data=(LOGITS[:, None], ANSWERS[:, None].astype("f4")), backend="numpy", batch_size=50,
        )  # fmt: skip
        trainer.prepare()
        sigma.set("trainer.network.layers.1-dense.weights", np.ones((1, 1)))
        assert trainer.evaluate("training", {"auc": "auc"})["auc"] == area(LOGITS, ANSWERS == 1)
    assert evaluate(network, LOGITS[:, None], ANSWERS[:, None].astype("f4"), auc="auc")["auc"] == area(
        LOGITS, ANSWERS == 1
    )


@pytest.mark.parametrize("targets", [np.array([1, 0]), np.eye(2, dtype=np.float32)[[1, 0]]])
def test_bits_of_classes_whose_probabilities_vanish_are_finite(targets: np.ndarray) -> None:
    x = np.array([[300.0, 0.0], [0.0, 500.0]], np.float32)  # float32 has no exp(-300)
    found = evaluate(Input(2) + SoftmaxCrossEntropy(), x, targets, bits="bits_per_character")
    assert found["bits"] == pytest.approx(400 / log(2))
    assert found["loss"] == pytest.approx(400)


@pytest.mark.parametrize("shape", [(4, 3), (4, 2), (2, 3, 6)])
def test_log_odds_are_those_of_extended_precision(shape: tuple[int, ...]) -> None:
    x = (DRAW.normal(size=shape) * 30).astype(np.float32)
    x[0, ..., 0], x[1, ..., 1] = -3e8, 3e4
    (found,) = interpret(trace(lambda z: log_odds(f.softmax(z)), Spec(shape)), numpy_namespace())(x)
    np.testing.assert_allclose(found, odds(x.reshape(-1, shape[-1])).reshape(shape), rtol=1e-5)


def test_other_predictions_are_their_own_scores() -> None:
    def same(*nodes: Node) -> bool:
        return all(log_odds(node) is node for node in nodes)

    x = symbol((4, 3))
    assert same(x, f.softmax(x, axis=0), f.softmax(symbol((4, 1))), f.exp(x))
