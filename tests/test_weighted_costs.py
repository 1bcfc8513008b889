"""Costs with weighted rows are means over the batch or the split, however rows are divided."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Totals
from sigma_layers import FunctionCost, Input, Output, SoftmaxCrossEntropy, SquaredDifference
from sigma_operator_local import LocalOperator
from sigma_optimisers import Adam, GradientDescent
from sigma_training.minimisation import minimise

CLASSES = [0.1, 3.0, 10.0]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 4))
LABELS = RNG.choice(3, 100, p=[0.8, 0.15, 0.05]).astype(np.int32)
NUMBERS = RNG.normal(size=(100, 3))


def by_size(output, targets):
    """Weight rows by the squares of their targets, which differ by orders of magnitude."""
    weights = f.sum(f.square(f.square(targets)), axis=1)
    return Totals(f.sum(weights * f.sum(f.square(output - targets), axis=1)), f.sum(weights))


def classifier(**settings):
    return Input(4) + Output(3) + SoftmaxCrossEntropy(class_weights=CLASSES, **settings)


def mixed():
    """Three costs on one output: class weights, equal rows, and custom weights."""
    scores = Input(4) + Output(3, name="scores")
    return [
        scores + SoftmaxCrossEntropy(class_weights=CLASSES, weight=0.7),
        scores + SquaredDifference(targets="numbers", weight=0.2),
        scores + FunctionCost(by_size, targets="numbers", weight=2.0),
    ]


def trainer(sigma, network, shards=1, batch=40, backend="numpy", optimiser=None, **settings):
    data = settings.pop("data", {"inputs": X, "targets": LABELS, "numbers": NUMBERS})
    made = sigma.create_trainer(
        "trainer", data=data, batch_size=batch, backend=backend, operator=LocalOperator(shards=shards), **settings
    )
    made.optimiser = optimiser or GradientDescent(learning_rate=0.3)
    made.network = network
    return made


def trained(network, iterations=60, **settings):
    with Environment("weighted", precision=settings.pop("precision", "float64")) as sigma:
        made = trainer(sigma, network, **settings)
        losses = made.fit(iterations=iterations)["training.loss"] if iterations else []
        names = [name for name in made.session.state.arrays if name.startswith("network")]
        return {name: made.session.host(name) for name in names}, losses


def assert_same(found, wanted, **tolerances):
    for name, value in wanted[0].items():
        np.testing.assert_allclose(found[0][name], value, err_msg=name, **tolerances)
    np.testing.assert_allclose(found[1], wanted[1], **tolerances)


@pytest.mark.long_cases("numpy-mixed")
@pytest.mark.parametrize("network", [classifier, mixed])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_shards_of_a_batch_train_as_the_whole_batch_does(network, backend):
    whole = trained(network(), backend=backend)  # batches of 40, 40 and 20 rows
    for shards in (2, 3, 4, 40):
        assert_same(trained(network(), shards=shards, backend=backend), whole, rtol=1e-10, atol=1e-12)


def test_shards_differ_by_rounding_in_single_precision():
    whole = trained(classifier(), precision="float32")
    assert_same(trained(classifier(), shards=4, precision="float32"), whole, rtol=1e-4, atol=1e-5)


def test_an_optimiser_with_slots_trains_the_same_on_shards():
    whole = trained(mixed(), optimiser=Adam(0.05))
    assert_same(trained(mixed(), shards=7, optimiser=Adam(0.05)), whole, rtol=1e-8, atol=1e-9)


def test_one_update_on_shards_equals_the_closed_form():
    start = {"w": np.zeros((4, 3))}
    weights = np.array(CLASSES)[LABELS]

    def loss(p, batch):
        each = f.take(f.stack(*(f.constant(w, "float64") for w in CLASSES)), batch["targets"])
        return Totals(f.sum(f.softmax_cross_entropy(batch["inputs"] @ p["w"], batch["targets"]) * each), f.sum(each))

    found = minimise(
        loss, start, {"inputs": X, "targets": LABELS}, GradientDescent(learning_rate=1.0),
        batch_size=100, precision="float64", operator=LocalOperator(shards=6),
    )  # fmt: skip
    slope = X.T @ (weights[:, None] * (1 / 3 - np.eye(3)[LABELS])) / weights.sum()
    np.testing.assert_allclose(found["w"], -slope, rtol=1e-12)


@pytest.mark.parametrize("network", [classifier, mixed])
def test_an_evaluation_does_not_depend_on_the_size_of_its_batches(network):
    found = []
    for batch in (100, 25, 7, 1):
        with Environment("weighted", precision="float64") as sigma:
            found.append(trainer(sigma, network(), batch=batch).evaluate("training")["loss"])
    np.testing.assert_allclose(found, found[0], rtol=1e-13)


def test_an_evaluation_is_the_weighted_mean_times_the_costs_weight():
    with Environment("weighted", precision="float64") as sigma:
        made = trainer(sigma, classifier(weight=0.5), batch=7)
        scores = np.log(made.predict(X))  # of softmax, which is invariant under an offset of all scores of a row
        weights = np.array(CLASSES)[LABELS]
        picked = (scores - np.log(np.exp(scores).sum(1, keepdims=True)))[np.arange(100), LABELS]
        wanted = -0.5 * (weights * picked).sum() / weights.sum()
        assert made.evaluate("training")["loss"] == pytest.approx(wanted, rel=1e-12)


def test_a_shard_of_total_weight_zero_adds_nothing():
    """Some shards only hold rows of class 0, whose weight is 0."""
    labels = np.zeros(40, np.int32)
    labels[[3, 5]] = 1, 2
    network = Input(4) + Output(3) + SoftmaxCrossEntropy(class_weights=[0.0, 1.0, 2.0])
    data = {"inputs": X[:40], "targets": labels}
    whole = trained(network, data=data)
    assert_same(trained(network, shards=8, data=data), whole, rtol=1e-12)
    assert np.isfinite(whole[1]).all()


@pytest.mark.parametrize("shards", [1, 4])
def test_a_batch_of_total_weight_zero_has_no_loss_and_changes_nothing(shards):
    network = Input(4) + Output(3) + SoftmaxCrossEntropy(class_weights=[0.0, 1.0, 2.0])
    data = {"inputs": X, "targets": np.zeros(100, np.int32)}
    (before, _), (after, losses) = (trained(network, count, shards=shards, data=data) for count in (0, 5))
    np.testing.assert_array_equal(losses, np.full(5, np.nan))
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    with Environment("weighted") as sigma:
        assert np.isnan(trainer(sigma, network, data=data).evaluate("training")["loss"])


def test_any_number_of_workers_gives_the_same_bits_with_weights():
    found = []
    for workers in (1, 3):
        with Environment("weighted") as sigma:
            made = trainer(sigma, mixed())
            made.operator = LocalOperator(shards=5, workers=workers)
            made.fit(iterations=20)
            found.append([made.session.host(name).tobytes() for name in sorted(made.session.state.arrays)])
    assert found[0] == found[1]
