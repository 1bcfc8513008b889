"""Sample weights: the loss is a weighted mean; metrics count every row once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import Arrays, Csv, Frame, Stream
from sigma_hooks import AccuracyMetric
from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import CostLayer, Totals
from sigma_kernel.errors import SigmaDataError, SigmaError, SigmaNetworkError
from sigma_kernel.graph import Node
from sigma_layers import BinaryCrossEntropy, FunctionCost, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_optimisers import GradientDescent

DRAW = np.random.default_rng(5)
X, Y = DRAW.normal(size=(30, 3)), DRAW.normal(size=(30, 2))
LABELS = DRAW.integers(0, 3, 30)
W = DRAW.uniform(size=30)
W[[3, 8]] = 0.0
CLASSES = np.array([1.0, 2.0, 3.0])


def trained(data: Any, cost: Any, units: int, epochs: int = 2, rate: float = 0.1, **settings: Any) -> Any:
    network = Input(3) + Output(units) + cost
    settings = {"batch_size": 30, **settings}
    made = Environment("weights", seed=2, precision="float64").create_trainer(
        network=network, data=data, optimiser=GradientDescent(rate), **settings
    )
    made.fit(epochs=epochs)
    return made


def logarithms(made: Any) -> np.ndarray:
    return np.asarray(np.log(made.predict(X)))


# -- closed forms ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("batch", [30, 7])
def test_every_cost_is_a_mean_weighted_by_sample(batch: int) -> None:
    """The weighted mean of the rows' losses, as ``sklearn.metrics.log_loss(..., sample_weight=w)`` defines it."""
    settings = {"backend": "numpy", "batch_size": batch}
    hot = np.eye(3)[LABELS]
    made = trained((X, Y, W), SquaredDifference(), 2, **settings)
    wanted = {made: np.average(np.mean((made.predict(X) - Y) ** 2, axis=1), weights=W)}
    made = trained((X, LABELS, W), SoftmaxCrossEntropy(), 3, **settings)
    wanted[made] = np.average(-logarithms(made)[range(30), LABELS], weights=W)
    made = trained((X, hot, W), SoftmaxCrossEntropy(), 3, **settings)
    wanted[made] = np.average(-(logarithms(made) * hot).sum(1), weights=W)
    made = trained((X, LABELS, W), SoftmaxCrossEntropy(class_weights=CLASSES.tolist()), 3, **settings)
    wanted[made] = np.average(-logarithms(made)[range(30), LABELS], weights=W * CLASSES[LABELS])
    made = trained((X, hot, W), SoftmaxCrossEntropy(class_weights=CLASSES.tolist()), 3, **settings)
    wanted[made] = np.average(-(logarithms(made) * hot * CLASSES).sum(1), weights=W)
    made = trained((X, LABELS > 1, W), BinaryCrossEntropy(), 1, **settings)
    probability = made.predict(X)[:, 0]
    wanted[made] = np.average(-np.log(np.where(LABELS > 1, probability, 1 - probability)), weights=W)
    for trainer, loss in wanted.items():
        assert trainer.evaluate("training")["loss"] == pytest.approx(loss, rel=1e-12)


def test_the_compiled_backend_computes_the_same_weighted_mean() -> None:
    cost = SoftmaxCrossEntropy(class_weights=CLASSES.tolist())
    made = trained((X, LABELS, W), cost, 3, backend="numba", batch_size=7)
    wanted = np.average(-logarithms(made)[range(30), LABELS], weights=W * CLASSES[LABELS])
    assert made.evaluate("training")["loss"] == pytest.approx(wanted, rel=1e-12)


def test_weighted_regression_finds_the_weighted_least_squares_solution() -> None:
    made = trained((X, Y, W), SquaredDifference(), 2, epochs=4000, rate=0.5)
    root, design = np.sqrt(W)[:, None], np.column_stack([X, np.ones(30)])
    wanted = np.linalg.lstsq(root * design, root * Y)[0]
    arrays = made.session.state.arrays
    found = np.vstack([arrays["network.layers.1-output.weights"], arrays["network.layers.1-output.biases"]])
    assert found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("weights", "rows"), [
    (np.where(np.arange(30) < 10, 0, 1), np.arange(10, 30)),  # 0 leaves a row out
    (np.where(np.arange(30) < 10, 2, 1), np.r_[np.arange(30), np.arange(10)]),  # 2 repeats it
    (np.full(30, 7.5), np.arange(30)),  # their scale does not matter
])  # fmt: skip
def test_weights_act_as_numbers_of_copies(weights: np.ndarray, rows: np.ndarray) -> None:
    made = trained((X, LABELS, weights), SoftmaxCrossEntropy(), 3, epochs=20)
    copied = trained((X[rows], LABELS[rows]), SoftmaxCrossEntropy(), 3, epochs=20, batch_size=len(rows))
    assert made.predict(X) == pytest.approx(copied.predict(X), rel=1e-10)


def test_shards_give_the_loss_of_the_whole_batch() -> None:
    losses = [
        trained((X, LABELS, W), SoftmaxCrossEntropy(), 3, operator={"type": "local", "shards": shards})
        .history["training.loss"].tolist()
        for shards in (1, 3)
    ]  # fmt: skip
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)


# -- where they come from ----------------------------------------------------------------------------------------------
def test_weights_come_from_tuples_sections_columns_and_samples() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(w=W, kind=LABELS)
    given = {
        "tuple": (X, LABELS, W),
        "column vector": (X, LABELS, W[:, None]),
        "sections": {"inputs": X, "targets": LABELS, "weights": W},
        "Arrays": Arrays(inputs=X, targets=LABELS, weights=W),
        "series": (table[["a", "b", "c"]], LABELS, table["w"]),
        "Frame": Frame(table, "kind", weights="w"),
        "Stream": Stream(zip(X, LABELS, W, strict=True)),
        "generator": ((X[i : i + 30], LABELS[i : i + 30], W[i : i + 30]) for i in range(0, 30, 30)),
    }
    found = {name: trained(data, SoftmaxCrossEntropy(), 3).predict(X).tobytes() for name, data in given.items()}
    assert len(set(found.values())) == 1


def test_a_column_of_a_file_holds_weights(tmp_path: Path) -> None:
    table = pd.DataFrame(X.astype("f4").astype(float), columns=["a", "b", "c"]).assign(w=W, kind=LABELS)
    table[["w", "a", "kind", "c", "b"]].to_csv(tmp_path / "t.csv", index=False)
    everything: dict[str, Any] = {"split": {"training": 1.0}, "weights": "w"}
    found = []
    for inputs in (("*",), ("a", "c", "b")):
        made = trained(Csv(tmp_path / "t.csv", "kind", inputs=inputs, **everything), SoftmaxCrossEntropy(), 3)
        same = trained((table[["a", "c", "b"]].to_numpy(), LABELS, W), SoftmaxCrossEntropy(), 3)
        found.append(made.predict(table).tobytes())
        assert made.predict(table) == pytest.approx(same.predict(table[["a", "c", "b"]].to_numpy()), rel=1e-12)
        assert made.evaluate("training")["loss"] == pytest.approx(same.evaluate("training")["loss"], rel=1e-12)
    assert found[0] == found[1]
    assert Csv(tmp_path / "t.csv", "kind", **everything).samples(tmp_path / "t.csv", (3,)).shape == (30, 3)
    (tmp_path / "gap.csv").write_text("a,w,kind\n1,2,0\n1,,1\n")
    with pytest.raises(SigmaDataError, match=r"gap\.csv:3: column 'w': a value is missing"):
        Csv(tmp_path / "gap.csv", "kind", **everything).all_rows()
    assert len(Csv(tmp_path / "gap.csv", "kind", missing="drop", **everything).all_rows()[0]) == 1
    with pytest.raises(SigmaDataError, match=r"gap\.csv:3: the target or the weight: a value is missing"):
        Csv(tmp_path / "gap.csv", "kind", missing=0.0, **everything).all_rows()


def test_a_cost_can_name_another_section() -> None:
    data = {"inputs": X, "targets": LABELS, "importance": W}
    named = trained(data, SoftmaxCrossEntropy(weights="importance"), 3)
    assert np.array_equal(named.predict(X), trained((X, LABELS, W), SoftmaxCrossEntropy(), 3).predict(X))
    with pytest.raises(SigmaDataError, match="the network reads section 'w'; the data has inputs, targets"):
        trained((X, LABELS), SoftmaxCrossEntropy(weights="w"), 3)


def test_a_section_that_an_input_reads_is_not_a_weight() -> None:
    network = Input(3, section="weights") + Output(3) + SoftmaxCrossEntropy()
    made = Environment().create_trainer(
        network=network, data={"weights": X, "targets": LABELS}, optimiser=GradientDescent(0.1)
    )
    made.fit(epochs=1)
    assert made.evaluate("training")["loss"] > 0


def test_a_section_can_be_an_input_and_a_weight() -> None:
    network = Input(1, section="age") + Output(3) + SoftmaxCrossEntropy(weights="age")
    made = Environment(precision="float64").create_trainer(
        network=network, data={"age": W[:, None], "targets": LABELS}, optimiser=GradientDescent(0.1)
    )
    made.fit(epochs=2)
    losses = -np.log(made.predict(W[:, None]))[range(30), LABELS]
    assert made.evaluate("training")["loss"] == pytest.approx(np.average(losses, weights=W), rel=1e-12)


def test_a_function_is_given_the_weights_as_its_third_argument() -> None:
    def cost(output: Node, targets: Node, weights: Node) -> Totals:
        return Totals(f.sum(f.mean(f.abs(output - targets), axis=1) * weights), f.sum(weights))

    made = trained((X, Y, W), FunctionCost(cost), 2)
    wanted = np.average(np.abs(made.predict(X) - Y).mean(1), weights=W)
    assert made.evaluate("training")["loss"] == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(
        SigmaNetworkError, match=r"receives 3 arguments, as the data has sample weights.*\(output, targets, weights\)"
    ):
        trained((X, Y, W), FunctionCost(lambda output, targets: f.mean(f.abs(output - targets))), 2)


class Plain(CostLayer):
    def forward(self, context: Any, output: Node, targets: Node) -> Node:
        return f.mean(f.abs(output - targets))


def test_a_cost_that_takes_no_weights_refuses_them() -> None:
    with pytest.raises(SigmaNetworkError, match="takes no sample weights, and the data has section 'weights'"):
        trained((X, Y, W), Plain(), 2)


# -- evaluation --------------------------------------------------------------------------------------------------------
def test_metrics_count_every_row_once() -> None:
    made = trained((X, LABELS, W), SoftmaxCrossEntropy(), 3)
    found = made.evaluate("training", {"accuracy": AccuracyMetric()})
    assert found["accuracy"] == pytest.approx(np.mean(made.predict(X).argmax(1) == LABELS))


def test_a_split_without_weights_is_evaluated_with_weights_of_1() -> None:
    made = trained({"training": (X, Y, W), "validation": (X, Y)}, SquaredDifference(), 2)
    assert made.evaluate()["loss"] == pytest.approx(np.mean((made.predict(X) - Y) ** 2), rel=1e-12)
    made = trained({"training": (X, Y), "test": (X, Y, W)}, SquaredDifference(), 2)
    with pytest.raises(SigmaDataError, match="section 'weights' is not in the training split"):
        made.evaluate("test")


@pytest.mark.parametrize(("weights", "message"), [
    (-W, r"section 'weights', row 0: must be at least 0 \(got -0\."),
    (W * 0, "section 'weights': all weights are 0"),
    (np.where(W > 0.5, np.nan, W), r"section 'weights', row \d+: nan is not finite"),
    (np.where(W > 0.5, np.inf, W), r"section 'weights', row \d+: inf is not finite"),
    (W[:5], r"equally many rows \(got .*'weights': 5"),
    (Y, r"section 'weights' has shape \(2,\)\. Give one weight per sample"),
    (["heavy"] * 30, "section 'weights' holds words, such as 'heavy'"),
    ([None] * 30, "section 'weights', row 0: a value is not finite"),
])  # fmt: skip
def test_weights_that_cannot_be_used_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=message):
        trained((X, Y, weights), SquaredDifference(), 2)


@pytest.mark.parametrize("name", ["sample_weight", "sample_weights", "weight", "Weights", "sampleWeight"])
def test_sample_weights_by_another_name_are_refused_instead_of_ignored(name: str) -> None:
    with pytest.raises(SigmaDataError, match=f"section '{name}' is read by nothing. Did you mean 'weights'"):
        trained({"inputs": X, "targets": LABELS, name: W}, SoftmaxCrossEntropy(), 3)
    named = trained({"inputs": X, "targets": LABELS, name: W}, SoftmaxCrossEntropy(weights=name), 3)
    assert np.array_equal(named.predict(X), trained((X, LABELS, W), SoftmaxCrossEntropy(), 3).predict(X))


def test_sections_of_another_network_are_no_mistake() -> None:
    data = {"inputs": X, "targets": LABELS, "body_weight": W, "heights": W}
    assert np.array_equal(
        trained(data, SoftmaxCrossEntropy(), 3).predict(X), trained((X, LABELS), SoftmaxCrossEntropy(), 3).predict(X)
    )
