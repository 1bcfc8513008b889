from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt

import numpy as np
import pytest

from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers import Activation
from sigma_layers.plugin import ACTIVATIONS
from sigma_testing import ActivationSuite, LayerSuite, by_name, trace_layer

CLOSED = {
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, x / 100),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softplus": lambda x: np.logaddexp(x, 0),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "gelu": lambda x: x * (1 + np.vectorize(erf)(x / sqrt(2))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "identity": lambda x: x,
    "softmax": lambda x: np.exp(x - x.max(-1, keepdims=True)) / np.exp(x - x.max(-1, keepdims=True)).sum(-1)[..., None],
}


class _Closed(ActivationSuite):
    name: str

    def make(self) -> Callable[[Node], Node]:
        return by_name("activation", self.name)

    def expected(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return CLOSED[self.name](x)


class TestRelu(_Closed):
    name = "relu"


class TestLeakyRelu(_Closed):
    name = "leaky_relu"


class TestSigmoid(_Closed):
    name = "sigmoid"


class TestTanh(_Closed):
    name = "tanh"


class TestSoftplus(_Closed):
    name = "softplus"


class TestElu(_Closed):
    name = "elu"


class TestSelu(_Closed):
    name = "selu"


class TestGelu(_Closed):
    name = "gelu"


class TestSilu(_Closed):
    name = "silu"


class TestIdentity(_Closed):
    name = "identity"


class TestSoftmax(_Closed):
    name = "softmax"


class TestActivation(LayerSuite):
    inputs = (Spec((2, 3)),)

    def make(self):
        return Activation("gelu")


class TestActivationThatMixesFeatures(LayerSuite):
    def make(self):
        return Activation("softmax")


def computed(name, x):
    it = trace_layer(Activation(name), [Spec(x.shape, "float64")], training=False)
    return it.run([x])[0]


def test_every_activation_is_tested_against_a_closed_form():
    assert {*CLOSED} == {*ACTIVATIONS}


@pytest.mark.parametrize("name", CLOSED)
def test_an_activation_equals_its_closed_form(name):
    x = np.linspace(-9, 9, 77).reshape(1, 77)
    np.testing.assert_allclose(computed(name, x), CLOSED[name](x), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_stays_finite_for_large_numbers(name):
    assert np.isfinite(computed(name, np.array([[-1e4, 1e4, 0.0]]))).all()


def test_softmax_is_along_the_last_axis():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    np.testing.assert_allclose(computed("softmax", x), np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-13)


def test_an_activation_that_is_neither_a_name_nor_a_function_is_refused():
    with pytest.raises(SigmaNetworkError, match="Activation.function: must be a name or a function"):
        Activation(None)
