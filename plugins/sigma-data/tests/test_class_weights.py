"""Weights of training rows by their classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sigma_data import Arrays, Frame, Iris, Shares
from sigma_data.class_weights import ClassWeighted
from sigma_data.pictures.rows import Pictures
from sigma_kernel import Environment, SigmaConfigError, SigmaDataError


def frame(rows=60):
    draws = np.random.default_rng(1)
    kinds = np.where(np.arange(rows) % 10 == 0, "rare", np.where(np.arange(rows) % 3 == 0, "some", "usual"))
    return pd.DataFrame({"x": draws.normal(size=rows), "y": draws.normal(size=rows), "kind": kinds})


def trained(data, **settings):
    made = Environment("weights", seed=2, precision="float64").create_trainer(
        network="input(2) + output(3) + softmax_cross_entropy()", data=data,
        optimiser={"type": "gradient_descent", "learning_rate": 0.5}, batch_size=16, **settings,
    )  # fmt: skip
    made.fit(epochs=3)
    return made


def test_balanced_weights_are_n_over_k_n_c_of_the_rows_of_training():
    data = Frame(frame(), target="kind", split={"training": 0.5, "validation": 0.5}, class_weights="balanced")
    block = data["training"].block(0)
    counts = np.bincount(block["targets"])
    assert len({*counts.tolist()}) == 3
    assert np.array_equal(block["weights"], np.float32(30 / (3 * counts))[block["targets"]])
    assert {*data["validation"].block(0)["weights"].tolist()} == {1.0}
    totals = [block["weights"][block["targets"] == name].sum() for name in range(3)]
    assert totals == pytest.approx([10, 10, 10])


def test_the_loss_of_training_is_weighted_and_metrics_and_other_losses_are_not():
    rows = frame()
    parts = {"training": 0.7, "validation": 0.3}
    made = trained(Frame(rows, target="kind", split=parts, class_weights="balanced"))
    plain = Frame(rows, target="kind", split=parts)
    for name in parts:
        block = plain[name].encode("targets", 3).block(0)
        shares, targets = made.predict(block["inputs"]), block["targets"]
        losses, counts = -np.log(shares[np.arange(len(targets)), targets]), np.bincount(targets)
        weights = 1 / counts[targets] if name == "training" else np.ones(len(targets))
        values = made.evaluate(name, {"accuracy": "accuracy"})
        assert values["loss"] == pytest.approx(np.average(losses, weights=weights), rel=1e-6)
        assert values["accuracy"] == pytest.approx(np.mean(shares.argmax(1) == targets))


def test_weights_by_name_have_the_bits_of_a_section_with_these_weights():
    rows = frame()
    weights = np.where(rows.kind == "rare", 2.5, 1.0)
    one = trained(Frame(rows, target="kind", class_weights={"rare": 2.5}))
    other = trained(Frame(rows.assign(w=weights), target="kind", weights="w"))
    for name, values in one.parameters().items():
        assert np.array_equal(values, other.parameters()[name])


def test_weights_multiply_those_of_the_rows():
    rows = frame().assign(w=np.arange(60) + 1.0)
    block = Frame(rows, target="kind", weights="w", class_weights={"rare": 3.0, "usual": 0.0})["training"].block(0)
    wanted = rows.w * rows.kind.map({"rare": 3.0, "usual": 0.0, "some": 1.0})
    assert np.array_equal(block["weights"], np.float32(wanted))


@pytest.mark.parametrize("weights", [None, "balanced", {"rare": 2.0}])
def test_a_class_that_a_split_lacks_is_told_whatever_the_weights(weights):
    rows = frame().sort_values("kind", ascending=False)
    data = Frame(
        rows, target="kind", split={"training": 0.75, "validation": 0.25}, split_by="block", class_weights=weights
    )
    parts = {name: part.encode("targets", 0) for name, part in data.items()}
    (text,) = parts["training"].findings(["targets"], {"validation": parts["validation"]})[:1]
    assert text.startswith("class 'rare' has no row in the split 'training'")


def test_one_hot_targets_have_the_weights_of_their_classes():
    classes = np.repeat([0, 1, 2], [6, 3, 1])
    weights = np.array([10 / 18, 10 / 9, 10 / 3])
    for targets in (np.eye(3)[classes], np.eye(4, dtype=int)[classes]):
        assert weigh(targets) == pytest.approx(weights[classes], rel=1e-7)


def test_a_row_without_a_label_makes_all_rows_those_of_several_labels_in_each_block():
    targets = np.eye(3, dtype=np.float32)[np.repeat([0, 1, 2], [6, 3, 1])]
    targets[0] = 0
    assert weigh(targets)[5] == pytest.approx(10 / (2 * 5) * 10 / (2 * 7) * 10 / (2 * 9))
    pixels, rows = [np.zeros((5, 1, 2, 2), np.uint8)] * 2, np.arange(10).reshape(2, 5)
    in_blocks = ClassWeighted(Pictures(pixels, [*rows], Arrays(targets=targets)), "balanced")
    assert np.concatenate([in_blocks.block(i)["weights"] for i in range(2)]) == pytest.approx(weigh(targets))


def weigh(targets):
    return ClassWeighted(Arrays(inputs=np.zeros((len(targets), 1)), targets=targets), "balanced").block(0)["weights"]


def test_several_labels_have_the_product_of_the_weights_of_their_columns():
    labels = np.array([[1, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    balanced = ClassWeighted(Arrays(inputs=np.zeros((4, 1)), targets=labels), "balanced").block(0)["weights"]
    assert balanced == pytest.approx([4 / 6 * 1, 4 / 6 * 1, 4 / 6 * 1, 2 * 1])
    named = Arrays(inputs=np.zeros((4, 1)), targets=pd.DataFrame(labels, columns=["cat", "dog"]))
    assert ClassWeighted(named, {"cat": 2.0, "dog": 5.0}).block(0)["weights"].tolist() == [2.0, 2.0, 10.0, 5.0]


def test_shares_of_arrays_have_weights_by_index():
    targets = np.arange(40) % 4
    data = Shares(Arrays(inputs=np.zeros((40, 2)), targets=targets), class_weights={"3": 7.0})
    block = data["training"].block(0)
    assert np.array_equal(block["weights"], np.where(block["targets"] == 3, 7.0, 1.0))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"rear": 2.0}, r"class_weights: there is no class 'rear'. Did you mean 'rare'\? rare, some, usual."),
        ("balanced", "class_weights: section 'targets' holds numbers, not classes"),
    ],
)
def test_unknown_classes_and_numbers_are_refused(weights, message):
    target = "kind" if isinstance(weights, dict) else "x"
    data = Frame(frame(), target=target, inputs=["y"], class_weights=weights)
    with pytest.raises(SigmaDataError, match=message):
        data["training"].block(0)


@pytest.mark.parametrize("weights", ["equal", {"a": -1.0}, {"a": float("nan")}, {}])
def test_other_settings_are_refused(weights):
    with pytest.raises(SigmaConfigError, match="'balanced', or a weight of at least 0 by class name"):
        Iris(class_weights=weights)
