from __future__ import annotations

from math import erf, exp, expm1, log1p, sqrt, tanh

import numpy as np
import pytest

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_kernel.testing import LayerSuite, traced
from sigma_layers import Activation
from sigma_layers.plugin import ACTIVATIONS

CLOSED = {
    "relu": lambda x: max(x, 0),
    "leaky_relu": lambda x: x if x > 0 else x / 100,
    "sigmoid": lambda x: 1 / (1 + exp(-x)),
    "tanh": tanh,
    "softplus": lambda x: log1p(exp(x)),
    "elu": lambda x: x if x > 0 else expm1(x),
    "gelu": lambda x: x * (1 + erf(x / sqrt(2))) / 2,
    "silu": lambda x: x / (1 + exp(-x)),
    "identity": lambda x: x,
}


class TestActivation(LayerSuite):
    inputs = (Spec((2, 3)),)

    def make(self):
        return Activation("gelu")


class TestSoftmax(LayerSuite):
    def make(self):
        return Activation("softmax")


def computed(name, x):
    it = traced(Activation(name), [Spec(x.shape, "float64")], training=False)
    return it.run([x])[0]


def test_every_activation_is_tested_against_a_closed_form():
    assert {*CLOSED, "softmax"} == set(ACTIVATIONS)


@pytest.mark.parametrize("name", CLOSED)
def test_an_activation_equals_its_closed_form(name):
    x = np.linspace(-9, 9, 77).reshape(1, 77)
    np.testing.assert_allclose(computed(name, x)[0], [CLOSED[name](v) for v in x[0].tolist()], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_stays_finite_for_large_numbers(name):
    assert np.isfinite(computed(name, np.array([[-1e4, 1e4, 0.0]]))).all()


def test_softmax_is_along_the_last_axis():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    np.testing.assert_allclose(computed("softmax", x), np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-13)


def test_an_activation_that_is_neither_a_name_nor_a_function_is_refused():
    with pytest.raises(SigmaNetworkError, match="Activation.function: must be a name or a function"):
        Activation(None)
