"""Gradients that are accumulated over batches: one update of all their rows, whatever each batch weighs."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment

pytestmark = pytest.mark.rooms

ROWS = np.random.default_rng(0)
INPUTS, LABELS, WEIGHTS = ROWS.normal(size=(40, 3)), ROWS.integers(0, 3, 40), ROWS.uniform(0.0, 2.0, 40)
LABELS[:9] = -1  # nearly the whole first batch of ten


def weights_after_one_update(
    size, network="input(3) + output(3) + softmax_cross_entropy(ignore_index=-1)", data=None, **settings
):
    """Return the weights after an epoch of 40 rows in batches of a size, whose gradients are accumulated."""
    transforms = {"a": {"type": "accumulate", "batches": 40 // size}} if size < 40 else {}
    settings = {"backend": "numpy", **settings}
    with Environment("accumulated", seed=1, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data=data or {"inputs": INPUTS, "targets": LABELS}, network=network, iterator="sequential", batch_size=size,
            optimiser={"type": "gradient_descent", "learning_rate": 0.5, "transforms": transforms}, **settings,
        )  # fmt: skip
        trainer.fit(epochs=1, progress=False)
        return {name: sigma.get(f"trainer.network.layers.{name}") for name in ("1-output.weights", "1-output.biases")}


CLASSED = "input(3) + output(3) + softmax_cross_entropy(ignore_index=-1, class_weights=[0.2, 1, 5])"
WEIGHTED = 'input(3) + output(3) + softmax_cross_entropy(weights="rows", ignore_index=-1)'
COUNTED = {"inputs": INPUTS, "targets": LABELS, "rows": WEIGHTS}
CASES = {
    "ignored labels": {},
    "class weights": {"network": CLASSED},
    "row weights": {"network": WEIGHTED, "data": COUNTED},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [20, 10, 4])
@pytest.mark.parametrize("operator", [{}, {"operator": {"type": "local", "shards": 3}}], ids=["whole", "shards"])
def test_batches_of_unequal_weight_are_one_update_of_all_rows(case, size, operator):
    whole, parts = (weights_after_one_update(n, **CASES[case], **more) for n, more in ((40, {}), (size, operator)))
    for name, value in whole.items():
        np.testing.assert_allclose(parts[name], value, rtol=1e-12, atol=1e-13)


def test_the_update_of_batches_with_ignored_labels_is_that_of_the_known_ones():
    """Softmax regression by hand: the mean over the 31 rows that have a label."""
    with Environment("start", seed=1, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data={"inputs": INPUTS, "targets": LABELS}, network=CASES["class weights"]["network"], batch_size=40
        )
        sigma.prepare()
        start = np.array(trainer.parameters()["network.layers.1-output.weights"])
    known = LABELS >= 0
    scores = np.exp(INPUTS[known] @ start)
    slope = INPUTS[known].T @ (scores / scores.sum(1, keepdims=True) - np.eye(3)[LABELS[known]]) / known.sum()
    np.testing.assert_allclose(weights_after_one_update(10)["1-output.weights"], start - 0.5 * slope, rtol=1e-12)


def test_a_smaller_last_batch_counts_for_its_rows():
    cut = {"a": {"type": "accumulate", "batches": 3}}
    with Environment("cut", seed=1, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data={"inputs": INPUTS, "targets": LABELS}, iterator="sequential", batch_size=16, backend="numpy",
            network="input(3) + output(3) + softmax_cross_entropy(ignore_index=-1)",
            optimiser={"type": "gradient_descent", "learning_rate": 0.5, "transforms": cut},
        )  # fmt: skip
        trainer.fit(epochs=1, progress=False)  # of 16, 16 and 8 rows
        weights = sigma.get("trainer.network.layers.1-output.weights")
    np.testing.assert_allclose(weights, weights_after_one_update(40)["1-output.weights"], rtol=1e-12)


def test_batches_whose_rows_all_weigh_nothing_change_nothing():
    nothing = {"inputs": INPUTS, "targets": np.full(40, -1)}
    assert np.isfinite(weights_after_one_update(10, data=nothing)["1-output.weights"]).all()
