"""A network trained in NumPy and the same in PyTorch, for the comparisons of this folder."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sigma_kernel import Network, Trace  # noqa: E402
from sigma_kernel.graph import (  # noqa: E402
    Graph,
    Key,
    Spec,
    constant,
    gradient,
    interpret,
    numpy_namespace,
    symbol,
)
from sigma_testing import by_name  # noqa: E402

RATE, TOLERANCE = 0.1, 1e-9


class Trained:
    """A network with its parameters, trained by plain gradient descent in NumPy."""

    def __init__(self, architecture, data, precision="float64"):
        self.network, self.precision = Network.build(architecture), precision
        self.data = {name: x.astype(precision) if x.dtype.kind == "f" else x for name, x in data.items()}
        specs = {name: Spec(x.shape[1:], str(x.dtype)) for name, x in self.data.items()}
        self.shapes = self.network.declare(specs, precision, by_name)
        random = np.random.default_rng(1)
        drawn = {name: random.normal(size=p.shape) / 2 for name, p in self.shapes.parameters.items()}
        self.values = {name: x.astype(precision) for name, x in drawn.items()}
        self.iteration = 0
        self.run = self.compiled()

    def compiled(self):
        sections = {name: symbol(x.shape, str(x.dtype), name) for name, x in self.data.items()}
        parameters = {name: symbol(x.shape, self.precision, name) for name, x in self.values.items()}
        live = {name: symbol((), self.precision, name) for name in self.shapes.live}
        words = symbol((2,), "uint32"), symbol((), "uint32")
        key = Key(*words, constant(0, "uint32"), constant(0, "uint32"), self.shapes.streams)
        forward = self.network.forward(Trace(by_name, True, key, self.precision, {**parameters, **live}), sections)
        loss = forward.loss_or_fail()
        outputs = (loss, forward.prediction, *gradient(loss, list(parameters.values())))
        return interpret(
            Graph((*sections.values(), *parameters.values(), *live.values(), *words), outputs), numpy_namespace()
        )

    def computed(self):
        live = [np.asarray(setting.value, self.precision) for setting in self.shapes.live.values()]
        words = np.array([5, 6], np.uint32), np.uint32(self.iteration)
        loss, prediction, *gradients = self.run(*self.data.values(), *self.values.values(), *live, *words)
        return loss, prediction, dict(zip(self.values, gradients, strict=True))

    def step(self):
        _, _, gradients = self.computed()
        self.values = {name: x - RATE * gradients[name] for name, x in self.values.items()}
        self.iteration += 1


def affine(p, name, x):
    return x @ p[f"{name}.weights"] + p[f"{name}.biases"]


def in_torch(function, values):
    """Return the loss and the gradients that PyTorch computes for these values."""
    parameters = {name: torch.tensor(x, requires_grad=True) for name, x in values.items()}
    loss = function(parameters)
    loss.backward()
    return loss.item(), {name: p.grad.numpy() for name, p in parameters.items()}


def agree(found, expected):
    assert found.keys() == expected.keys()
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
