"""Training with class weights and ignored labels agrees with PyTorch: remainder batches, shards, evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_layers import Input, Output, SoftmaxCrossEntropy
from sigma_operator_local import LocalOperator
from sigma_optimisers import GradientDescent

torch = pytest.importorskip("torch")

CLASSES = [0.1, 3.0, 10.0]
RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 4))
LABELS = RNG.choice(3, 90, p=[0.8, 0.15, 0.05])


COSTS = {
    "class weights": ({"class_weights": CLASSES}, {}),
    "ignored labels": ({"ignore_index": 1}, {"ignore_index": 1}),
    "everything": (
        {"class_weights": CLASSES, "ignore_index": 0, "label_smoothing": 0.2},
        {"ignore_index": 0, "label_smoothing": 0.2},
    ),
}


def theirs(weights, epochs, name):
    """Train on batches of 40, 40 and 10 rows, in order."""
    layer = torch.nn.Linear(4, 3, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights.T))
        layer.bias.zero_()
    ours, settings = COSTS[name]
    classes = torch.tensor(CLASSES, dtype=torch.float64) if "class_weights" in ours else None
    cost = torch.nn.CrossEntropyLoss(weight=classes, **settings)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.3)
    x, labels = torch.tensor(X), torch.tensor(LABELS)
    for _ in range(epochs):
        for start in range(0, 90, 40):
            optimiser.zero_grad()
            cost(layer(x[start : start + 40]), labels[start : start + 40]).backward()
            optimiser.step()
    return layer.weight.detach().numpy().T, cost(layer(x), labels).item()


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", COSTS)
def test_weighted_means_train_as_in_torch_whatever_the_shards(name, shards, backend):
    with Environment("weighted", precision="float64") as sigma:
        trainer = sigma.create_trainer("trainer", data=(X, LABELS.astype(np.int32)), batch_size=40, backend=backend)
        trainer.network = Input(4) + Output(3) + SoftmaxCrossEntropy(**COSTS[name][0])
        trainer.optimiser, trainer.iterator = GradientDescent(learning_rate=0.3), "sequential"
        trainer.operator = LocalOperator(shards=shards)
        trainer.prepare()
        start = trainer.session.host("network.layers.1-output.weights")
        trainer.fit(epochs=5)
        weights, loss = theirs(start, 5, name)
        np.testing.assert_allclose(trainer.session.host("network.layers.1-output.weights"), weights, rtol=1e-11)
        assert trainer.evaluate("training")["loss"] == pytest.approx(loss, rel=1e-11)
