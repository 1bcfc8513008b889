"""Optimisers, with rows, backends and iterators of other rooms: accumulated batches, long averages, warm-up."""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_optimisers import Adam, Cosine, GradientDescent, WarmUp
from sigma_training import minimise

# -- accumulated gradients ---------------------------------------------------------------------------------------------
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


# -- averages ----------------------------------------------------------------------------------------------------------
def lengths(gradients, beta2):
    """Return the length of each step in learning rates: moments are weighted means of gradients, in Python's floats."""
    found = []
    for n in range(1, len(gradients) + 1):
        first, second = ([beta ** (n - i) for i in range(1, n + 1)] for beta in (0.9, beta2))
        mean = fsum(w * g for w, g in zip(first, gradients, strict=False)) / fsum(first)
        square = fsum(w * g * g for w, g in zip(second, gradients, strict=False)) / fsum(second)
        found.append(mean / (sqrt(square) + 1e-8))
    return found


@pytest.mark.parametrize("beta2", [0.999, 0.99999, 0.9999999])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_long_averages_are_corrected_to_all_digits_in_float32(beta2, backend):
    rows, values = np.random.default_rng(0).normal(2.0, 1.0, size=(40, 1)).astype("float32"), [0.0]
    minimise(
        lambda p, batch: f.sum(p["x"] * batch["inputs"]), {"x": np.zeros(1)}, {"inputs": rows}, Adam(0.01, beta2=beta2),
        lambda moment, loss, parameters: values.append(parameters["x"].item()),
        iterations=40, batch_size=1, iterator="sequential", backend=backend,
    )  # fmt: skip
    wanted = -0.01 * np.cumsum(lengths(rows[:, 0].tolist(), beta2))
    np.testing.assert_allclose(values[1:], wanted, rtol=2e-6)


def test_the_correction_follows_a_rate_that_is_set_during_a_run():
    rows = np.random.default_rng(1).normal(size=(12, 1))
    with Environment("set", seed=0, precision="float64") as sigma:
        trainer = sigma.create_trainer(
            data=(rows, 0 * rows), network="input(1) + output(1, bias=false) + squared_difference()", batch_size=1,
            backend="numpy", iterator="sequential", optimiser={"type": "adam", "learning_rate": 0.01},
            initialisers={"all": {"match": "**", "type": "constant", "value": 1.0}},
        )  # fmt: skip
        x, m, v, beta2 = 1.0, 0.0, 0.0, 0.999
        for t, row in enumerate(rows[:, 0], 1):
            if t == 6:
                beta2 = 0.0
            sigma.set("trainer.optimiser.beta2", beta2) if t in (1, 6) else None
            trainer.fit(iterations=1, progress=False)
            g = 2 * x * row * row
            m, v = 0.9 * m + 0.1 * g, beta2 * v + (1 - beta2) * g * g
            x -= 0.01 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - beta2**t)) + 1e-8)
            assert sigma.get("trainer.network.layers.1-output.weights").item() == pytest.approx(x, rel=1e-12)


# -- warm-up -----------------------------------------------------------------------------------------------------------
def test_a_warm_up_of_epochs_rises_with_every_iteration():
    found = []
    minimise(
        lambda p, b: f.sum(p["w"]) + 0.0 * f.mean(b["inputs"]), {"w": np.zeros(1)}, {"inputs": np.ones((45, 1))},
        GradientDescent(1.0, schedules={"learning_rate": WarmUp("1 epoch", 0.1)}),
        lambda moment, loss, parameters: found.append(parameters["w"].item()),
        iterations=7, batch_size=10, precision="float64", backend="numpy",
    )  # fmt: skip
    rates = -np.diff([0.0, *found])
    assert rates == pytest.approx([0.1, 0.28, 0.46, 0.64, 0.82, 1.0, 1.0])  # an epoch is five iterations


@pytest.mark.parametrize("every", [1, 3, 7])
def test_bursts_of_any_length_have_the_same_rates_within_epochs(every):
    rates = WarmUp("2 epochs", 0.0, then=Cosine("1 epoch"))
    settings = {"iterations": 21, "batch_size": 10, "backend": "numpy", "iterator": "sequential"}
    data, start = {"inputs": np.arange(70.0)[:, None]}, {"w": np.zeros(1)}
    ends = [
        minimise(lambda p, b: f.mean((p["w"] - b["inputs"]) ** 2.0), start, data,
                 GradientDescent(0.1, schedules={"learning_rate": rates}), callback, every=length, **settings)["w"]
        for callback, length in ((None, 1), (lambda moment, loss: None, every))
    ]  # fmt: skip
    assert ends[0] == ends[1]
