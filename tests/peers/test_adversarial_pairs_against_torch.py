"""An adversarial pair trains as in PyTorch, with simultaneous and with alternating updates."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment

torch = pytest.importorskip("torch")

NETWORK = """
judged = input(2, section="noise") + dense(2, activation="tanh", name="generator")
    + dense(5, activation="tanh", name="judge-1") + dense(1, name="judge-2")
input(2, section="real") + dense(5, activation="tanh", share={"weights": "judge-1.weights", "biases": "judge-1.biases"})
    + dense(1, share={"weights": "judge-2.weights", "biases": "judge-2.biases"})
    + binary_cross_entropy(targets="ones", name="real-known")
judged + binary_cross_entropy(targets="zeros", name="fake-found")
judged + binary_cross_entropy(targets="ones", name="fooled")
"""
RANDOM = np.random.default_rng(2)
NOISE, REAL = RANDOM.normal(size=(45, 2)), RANDOM.normal(1.0, 0.3, size=(45, 2))
DATA = {"noise": NOISE, "real": REAL, "ones": np.ones((45, 1)), "zeros": np.zeros((45, 1))}
LAYERS = ("generator", "judge-1", "judge-2")


def linear(start, name):
    layer = torch.nn.Linear(*start[f"{name}.weights"].shape, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(start[f"{name}.weights"].T))
        layer.bias.copy_(torch.tensor(start[f"{name}.biases"]))
    return layer


def theirs(start, order, epochs):
    """Train on batches of 20, 20 and 5 rows, in order."""
    generator, one, two = (linear(start, name) for name in LAYERS)

    def judge(x):
        return two(torch.tanh(one(x)))

    critic = [*one.parameters(), *two.parameters()]
    optimisers = {
        "critic": torch.optim.Adam(critic, lr=0.02, betas=(0.5, 0.999)),
        "generator": torch.optim.SGD(generator.parameters(), lr=0.3, momentum=0.9),
    }
    cost = torch.nn.BCEWithLogitsLoss()

    def loss(name, real, noise):
        judged = judge(torch.tanh(generator(noise)))
        if name == "generator":
            return cost(judged, torch.ones_like(judged))
        return cost(judge(real), torch.ones_like(judged)) + cost(judged, torch.zeros_like(judged))

    for _ in range(epochs):
        for at in range(0, 45, 20):
            batch = torch.tensor(REAL[at : at + 20]), torch.tensor(NOISE[at : at + 20])
            for names in [[name] for name in order] or [[*optimisers]]:
                slopes = {}
                for name in names:
                    own = [p for group in optimisers[name].param_groups for p in group["params"]]
                    slopes |= dict(zip(own, torch.autograd.grad(loss(name, *batch), own), strict=True))
                for parameter, slope in slopes.items():
                    parameter.grad = slope
                for name in names:
                    optimisers[name].step()
    return {name: layer.weight.detach().numpy().T for name, layer in zip(LAYERS, (generator, one, two), strict=True)}


@pytest.mark.parametrize(
    ("order", "shards"), [([], 1), ([], 3), (["critic", "generator"], 1), (["generator", "critic"], 1)]
)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_an_adversarial_pair_has_the_parameters_of_torch(backend, order, shards):
    momentum = {"type": "momentum", "learning_rate": 0.3, "momentum": 0.9}
    with Environment("pair", precision="float64") as sigma:
        trainer = sigma.create_trainer(
            network=NETWORK, data=DATA, batch_size=20, iterator="sequential", backend=backend, order=order
        )
        trainer.operator = {"type": "local", "shards": shards}
        trainer.optimisers = {
            "critic": {
                "type": "adam", "learning_rate": 0.02, "beta1": 0.5,
                "match": "judge-*.*", "minimises": ["real-known", "fake-found"],
            },
            "generator": {**momentum, "match": "generator.*", "minimises": ["fooled"]},
        }  # fmt: skip
        trainer.prepare()
        parameters = trainer.session.setup.model.parameters()
        start = {name: trainer.session.host(f"network.layers.{name}") for name in parameters}
        trainer.fit(epochs=8)
        for name, weights in theirs(start, order, 8).items():
            found = trainer.session.host(f"network.layers.{name}.weights")
            np.testing.assert_allclose(found, weights, rtol=1e-9, atol=1e-12)
