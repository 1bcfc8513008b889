"""Given the same predictions, an evaluation has the same bits for any batches, shards and order of the rows."""

from __future__ import annotations

from math import fsum
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Totals
from sigma_kernel.graph import Node
from sigma_layers import (
    CTC,
    AbsoluteDifference,
    BinaryCrossEntropy,
    CosineDistance,
    Dense,
    Function,
    FunctionCost,
    Hinge,
    Huber,
    Input,
    KullbackLeibler,
    MultiClassHinge,
    Poisson,
    SoftmaxCrossEntropy,
    SquaredDifference,
    Triplet,
)
from sigma_operator_local import LocalOperator
from sigma_optimisers import GradientDescent

DRAW = np.random.default_rng(7)
ROWS = 97
X = DRAW.normal(size=(ROWS, 3)).astype(np.float32)
NUMBERS = (DRAW.normal(size=(ROWS, 3)) * 10.0 ** DRAW.integers(-4, 3, (ROWS, 3))).astype(np.float32)
LABELS = DRAW.integers(0, 3, ROWS)
SHARES = DRAW.dirichlet(np.ones(3), ROWS).astype(np.float32)
WEIGHTS = DRAW.uniform(0.1, 3.0, ROWS).astype(np.float32)
SPEECH = DRAW.normal(size=(ROWS, 5, 4)).astype(np.float32)
SIZES = (1, 2, 7, 32, 96, 97)


def weighted(output: Node, targets: Node) -> Totals:
    weights = f.square(targets[:, 0])
    return Totals(f.sum(weights * f.mean(f.abs(output - targets), axis=1)), f.sum(weights))


def two_means(output: Node, targets: Node) -> Node:
    return 0.7 * f.mean(f.square(output - targets)) + f.mean(f.abs(output))


def pair() -> Any:
    return Input(3) + Triplet(Input(3, section="near"), Input(3, section="far"))


COSTS: dict[str, tuple[Any, dict[str, np.ndarray]]] = {
    "squared": (SquaredDifference, {"targets": NUMBERS}),
    "squared, weighted rows": (SquaredDifference, {"targets": NUMBERS, "weights": WEIGHTS}),
    "half of a square": (lambda: SquaredDifference(weight=0.3), {"targets": NUMBERS}),
    "absolute": (AbsoluteDifference, {"targets": NUMBERS}),
    "huber": (Huber, {"targets": NUMBERS}),
    "poisson": (Poisson, {"targets": np.floor(SHARES * 9)}),
    "cosine": (CosineDistance, {"targets": NUMBERS}),
    "hinge": (Hinge, {"targets": np.sign(NUMBERS)}),
    "hinge of classes": (MultiClassHinge, {"targets": LABELS}),
    "softmax": (SoftmaxCrossEntropy, {"targets": LABELS}),
    "softmax of shares": (SoftmaxCrossEntropy, {"targets": SHARES}),
    "softmax, smoothed": (lambda: SoftmaxCrossEntropy(label_smoothing=0.1), {"targets": LABELS}),
    "softmax, ignored": (lambda: SoftmaxCrossEntropy(ignore_index=2), {"targets": LABELS}),
    "softmax, all weights": (
        lambda: SoftmaxCrossEntropy(class_weights=[1.0, 0.3, 2.7], ignore_index=1),
        {"targets": LABELS, "weights": WEIGHTS},
    ),
    "divergence": (KullbackLeibler, {"targets": SHARES}),
    "binary": (BinaryCrossEntropy, {"targets": SHARES}),
    "speech": (CTC, {"inputs": SPEECH, "targets": DRAW.integers(1, 4, (ROWS, 2))}),
    "triplets": (None, {"near": X + 0.3, "far": NUMBERS}),
    "own mean": (lambda: FunctionCost(two_means), {"targets": NUMBERS}),
    "own totals": (lambda: FunctionCost(weighted), {"targets": NUMBERS}),
}  # fmt: skip


def evaluate(
    network: Any, data: dict[str, np.ndarray], size: int, backend: str = "numpy", **metrics: Any
) -> dict[str, Any]:
    with Environment("exact", seed=1) as sigma:
        trainer = sigma.create_trainer(network=network, data=data, backend=backend, batch_size=size)
        found: dict[str, Any] = trainer.evaluate("training", metrics)
        return found


@pytest.mark.parametrize("cost", COSTS)
def test_a_loss_has_the_same_bits_for_any_batch_size_and_order(cost: str) -> None:
    make, data = COSTS[cost]
    network = pair if cost == "triplets" else lambda: Input(*data.get("inputs", X).shape[1:]) + make()
    data = {"inputs": X, **data}
    order = np.random.default_rng(0).permutation(ROWS)
    moved = {name: values[order] for name, values in data.items()}
    assert len({evaluate(network(), rows, size)["loss"] for rows in (data, moved) for size in SIZES}) == 1


@pytest.mark.parametrize("cost", ["softmax, all weights", "poisson"])
def test_a_loss_of_numba_moves_by_the_rounding_of_its_rows_alone(cost: str) -> None:
    make, data = COSTS[cost]
    data = {"inputs": X, **data}
    found = [evaluate(Input(3) + make(), data, size, "numba")["loss"] for size in (1, 32, 97)]
    np.testing.assert_allclose(found, evaluate(Input(3) + make(), data, 97)["loss"], rtol=2e-7)


def test_the_loss_is_the_exact_mean_of_the_rows() -> None:
    apart = np.abs(X[:, 0] - NUMBERS[:, 0]).astype(float)
    data = {"inputs": X[:, :1], "targets": NUMBERS[:, :1]}
    for backend in ("numpy", "numba"):
        found = evaluate(Input(1) + AbsoluteDifference(), data, 8, backend, mae="mean_absolute_error")
        assert found == {"loss": fsum(apart) / ROWS, "mae": fsum(apart) / ROWS}


def test_a_cost_that_is_no_mean_counts_each_batch_by_its_rows() -> None:
    def root(output: Node, targets: Node) -> Node:
        return f.sqrt(f.mean(f.square(output - targets)))

    parts = np.split(np.square(X - NUMBERS, dtype=float), [40, 80])
    expected = sum(len(part) * np.sqrt(part.mean()) for part in parts) / ROWS
    data = {"inputs": X, "targets": NUMBERS}
    assert evaluate(Input(3) + FunctionCost(root), data, 40)["loss"] == pytest.approx(expected, rel=1e-6)


def test_a_split_whose_labels_are_all_ignored_has_no_loss() -> None:
    data = {"inputs": X, "targets": np.full(ROWS, 2)}
    assert np.isnan(evaluate(Input(3) + SoftmaxCrossEntropy(ignore_index=2), data, 40)["loss"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_prediction_that_is_not_finite_reaches_the_loss_and_the_metrics(value: float) -> None:
    rows = X.copy()
    rows[50, 0] = 99.0
    network = Input(3) + Function(lambda x: f.where(x > 90.0, value, x)) + SquaredDifference()
    found = evaluate(network, {"inputs": rows, "targets": NUMBERS}, 8, mae="mean_absolute_error")
    np.testing.assert_array_equal([found["loss"], found["mae"]], value)


def test_costs_of_several_outputs_are_added_exactly() -> None:
    def network() -> Any:
        rows = Input(3)
        return [
            rows + SoftmaxCrossEntropy(weights="own", weight=0.7),
            rows + FunctionCost(weighted, targets="numbers", weight=2.0),
        ]

    data = {"inputs": X, "targets": LABELS, "own": WEIGHTS, "numbers": NUMBERS}
    found = [evaluate(network(), data, size) for size in SIZES]
    assert all(one == found[0] for one in found)
    assert found[0]["loss"] == sum(value for name, value in found[0].items() if name != "loss")


def test_a_large_number_of_equal_errors_has_their_mean() -> None:
    data = {"inputs": np.zeros((60_000, 1), "f4"), "targets": np.full((60_000, 1), 0.7, "f4")}
    metrics = {"mae": "mean_absolute_error", "rmse": "root_mean_square_error"}
    for size in (16, 60_000):
        found = evaluate(Input(1) + SquaredDifference(), data, size, "numba", **metrics)
        assert found["mae"] == float(np.float32(0.7))  # in float32, 60,000 of them have the mean 0.69991
        assert (found["loss"], found["rmse"] ** 2) == pytest.approx((0.49, 0.49), rel=1e-7)


def test_metrics_have_the_same_bits_over_random_batchings() -> None:
    names = ["accuracy", "auc", "confusion_matrix", "f1", "perplexity", "precision", "recall"]
    found = []
    for size in np.random.default_rng(1).integers(1, ROWS + 1, 12).tolist():
        order = np.random.default_rng(size).permutation(ROWS)
        data = {"inputs": X[order], "targets": LABELS[order]}
        found.append(evaluate(Input(3) + SoftmaxCrossEntropy(), data, size, **{name: name for name in names}))
    assert all(one == found[0] for one in found)


def test_a_metric_of_training_has_the_same_bits_for_any_number_of_shards() -> None:
    found = []
    for shards in (1, 2, 3, 7):
        with Environment("shards", seed=1) as sigma:
            trainer = sigma.create_trainer(
                network=Input(3) + Dense(3, bias=False) + SquaredDifference(), optimiser=GradientDescent(0.0),
                data={"inputs": X, "targets": NUMBERS}, backend="numpy", batch_size=32, iterator="sequential",
                operator=LocalOperator(shards=shards), metrics={"mae": "mean_absolute_error", "fit": "r_squared"},
            )  # fmt: skip
            trainer.prepare()
            sigma.set("trainer.network.layers.1-dense.weights", np.eye(3))
            history = trainer.fit(epochs=1)
            found.append([history["training.mae"].tolist(), history["training.fit"].tolist()])
    assert all(one == found[0] for one in found)
