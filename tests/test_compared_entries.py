"""A loss, or a layer, that compares entries trains as it was tried out on arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f

layers = pytest.importorskip("sigma_layers")
pytestmark = pytest.mark.rooms


def weighted(output, targets):
    return f.mean(f.square(output - targets) * (1 + 9 * (targets == 1)))


def of_a_class(logits, labels):
    return f.mean(f.softmax_cross_entropy(logits, labels) * (1.0 + 9.0 * (labels == 1)))


def trained(sigma, name, network, data):
    optimiser = {"type": "gradient_descent", "learning_rate": 0.0}
    trainer = sigma.create_trainer(name, data=data, optimiser=optimiser)
    trainer.network = network
    trainer.fit(epochs=1)
    return trainer


def test_a_loss_that_compares_targets_trains_as_it_was_tried_out():
    x = np.tile(np.float32([[0.0, 1.0, 2.0]]), (10, 1))
    with Environment("compared", seed=0) as sigma:
        network = layers.Input(3) + layers.Dense(3) + layers.Output() + layers.FunctionCost(weighted)
        trainer = trained(sigma, "floats", network, (x, x))
        error = (np.asarray(trainer.predict(x), float) - x) ** 2
        assert trainer.history["training.loss"][-1] == pytest.approx(np.mean(error * [1, 10, 1]), rel=1e-6)


def test_a_loss_that_compares_labels_weights_their_rows():
    x, labels = np.float32([[0.0, 1.0], [1.0, 0.5], [0.5, 0.5]]), np.array([0, 1, 1])
    with Environment("labels", seed=0) as sigma:
        network = layers.Input(2) + layers.Output(2) + layers.FunctionCost(of_a_class)
        trainer = trained(sigma, "labels", network, (x, labels))
        logits = np.asarray(trainer.predict(x), float)
        losses = np.log(np.exp(logits).sum(1)) - logits[range(3), labels]
        assert trainer.history["training.loss"][-1] == pytest.approx(np.mean(losses * [1, 10, 10]), rel=1e-5)


def test_a_layer_that_masks_by_not_equal_masks():
    x = np.tile(np.float32([[0.0, 1.0, 2.0]]), (10, 1))
    with Environment("masked", seed=0) as sigma:
        network = layers.Input(3) + layers.Function(lambda v: v * (v != 1)) + layers.Output()
        trainer = trained(sigma, "masked", network + layers.FunctionCost(weighted), (x, x))
        assert trainer.predict(x[:1]).tolist() == [[0.0, 0.0, 2.0]]
