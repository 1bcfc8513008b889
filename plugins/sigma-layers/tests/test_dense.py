from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Network, functions as f
from sigma_kernel.errors import SigmaError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Dense, Input, Output, tanh
from sigma_testing import LayerSuite, by_name, trace_layer


class TestDense(LayerSuite):
    def make(self):
        return Dense(3, activation="tanh")


class TestDenseOnTheLastAxis(LayerSuite):
    inputs = (Spec((2, 5)),)

    def make(self):
        return Dense(3)


class TestDenseWithoutBias(LayerSuite):
    def make(self):
        return Dense(3, bias=False)


class TestOutput(LayerSuite):
    def make(self):
        return Output(3, activation="sigmoid")


class TestOutputThatOnlyMarks(LayerSuite):
    def make(self):
        return Output()


def test_dense_is_an_affine_map_of_the_last_axis():
    it = trace_layer(Dense(3), [Spec((2, 5, 4), "float64")], training=True)
    assert it.names[1:] == ("0-it.weights", "0-it.biases")
    x, w, b = (np.random.default_rng(0).normal(size=s) for s in ((2, 5, 4), (4, 3), (3,)))
    np.testing.assert_allclose(it.run([x, w, b])[0], np.einsum("btf,fu->btu", x, w) + b, rtol=1e-13)


def test_dense_has_weights_in_by_out_and_biases_of_zero():
    parameters = Dense(3).parameters(Spec((7, 4)))
    assert {name: (p.shape, p.initialiser) for name, p in parameters.items()} == {
        "weights": ((4, 3), "glorot_uniform"),
        "biases": ((3,), 0.0),
    }
    assert (parameters["weights"].fan_in, parameters["weights"].fan_out) == (4, 3)
    assert list(Dense(3, bias=False).parameters(Spec((4,)))) == ["weights"]


def test_an_activation_is_a_name_or_a_function():
    graphs = [
        trace_layer(Dense(3, activation=a), [Spec((2, 4))], training=True, precision="float32").graph
        for a in ("tanh", tanh, f.tanh)
    ]
    assert graphs[0] == graphs[1] == graphs[2]


def test_an_unknown_activation_is_an_error_for_people():
    network = Network.build(Input(4) + Dense(3, activation="rleu"))
    with pytest.raises(SigmaError, match="1-dense: .*'rleu'.*Did you mean 'relu'"):
        network.declare({"inputs": Spec((4,))}, "float32", by_name)


def test_samples_of_a_single_number_are_refused_with_a_remedy():
    with pytest.raises(SigmaNetworkError, match=r"1-dense: .*Put Reshape\(1\) before"):
        Network.build(Input() + Dense(3)).declare({"inputs": Spec(())}, "float32", by_name)


@pytest.mark.parametrize("make", [Dense, Output])
@pytest.mark.parametrize("units", [0, -3, 2.0, "ten", True])
def test_units_must_be_a_positive_number(make, units):
    with pytest.raises(
        SigmaNetworkError, match=rf"{make.__name__}.units: must be a whole number of at least 1 \(got {units!r}\)"
    ):
        make(units)


@pytest.mark.parametrize("make", [Dense, Output])
def test_an_activation_must_be_a_name_or_a_function(make):
    with pytest.raises(SigmaNetworkError, match="activation: must be a name or a function"):
        make(3, activation=7)


def test_an_output_layer_computes_like_dense_and_is_marked_as_output():
    dense, output = (
        trace_layer(layer, [Spec((2, 4))], training=True, precision="float32") for layer in (Dense(3), Output(3))
    )
    assert dense.graph == output.graph
    assert [placed.name for placed in Network.build(Input(4) + Output(3) + Dense(2)).outputs] == ["1-output"]


def test_an_output_without_units_computes_nothing():
    it = trace_layer(Output(), [Spec((2, 4))], training=True, precision="float32")
    assert it.output is it.graph.inputs[0]
    assert not it.shapes.parameters
