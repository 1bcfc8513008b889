from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, Network
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import Spec
from sigma_layers import Dense, Input, Output, Reshape, SquaredDifference
from sigma_run import load
from sigma_testing import LayerSuite, by_name, trace_layer


class TestInput(LayerSuite):
    inputs = (Spec((3, 5)),)

    def make(self):
        return Input(3, 5)


class TestInputOfIndices(LayerSuite):
    inputs = (Spec((4,), "int32"),)

    def make(self):
        return Input(4)  # integers are cast to the network's precision


def test_inputs_are_cast_to_the_networks_precision():
    it = trace_layer(Input(4), [Spec((2, 4), "int32")], training=True, precision="float64")
    (found,) = it.run([np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.int32)])
    assert found.dtype == np.float64
    assert found.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_an_explicit_dtype_is_kept():
    assert trace_layer(Input(4, dtype="int32"), [Spec((2, 4), "int32")], training=True).output.dtype == "int32"


def test_an_input_without_shape_takes_one_number_per_sample():
    assert trace_layer(Input(), [Spec((2,))], training=True, precision="float32").output.shape == (2,)


def test_samples_of_another_shape_are_refused_with_the_input_to_declare():
    network = Network.build(Input(28, 28, section="images") + Dense(2))
    with pytest.raises(SigmaNetworkError, match=r"0-input: .*'images' have shape \(784,\). Write Input\(784\)"):
        network.declare({"images": Spec((784,))}, "float32", by_name)


@pytest.mark.parametrize("side", [0, -1, 2.5, "4", True])
def test_a_dimension_must_be_positive(side):
    with pytest.raises(SigmaNetworkError, match="Input.shape: must be a whole number of at least 1"):
        Input(28, side)


@pytest.mark.parametrize(("make", "layer"), [(Input, "Input"), (Reshape, "Reshape")])
def test_a_shape_as_a_tuple_or_by_name_is_answered_with_what_to_write(make, layer):
    with pytest.raises(
        SigmaNetworkError, match=rf"^{layer}: pass sides as separate arguments .* Write {layer}\(2, 3\)\.$"
    ):
        make((2, 3))
    with pytest.raises(SigmaConfigError, match=rf"^{layer}: has no setting 'shape'\. Give it by position"):
        make(shape=(2, 3))


class TestInputOfAnySize(LayerSuite):
    inputs = (Spec((3, 5)),)

    def make(self):
        return Input(None, 5)


def test_a_side_of_none_is_that_of_the_data():
    network = Network.build(Input(None, None, section="images") + Reshape(784) + Dense(2))
    shapes = network.declare({"images": Spec((28, 28))}, "float32", by_name)
    assert shapes.outputs["0-input"].shape == (28, 28)
    with pytest.raises(SigmaNetworkError, match=r"'images' have shape \(784,\). Write Input\(784\)"):
        network.declare({"images": Spec((784,))}, "float32", by_name)


def test_an_unknown_side_is_written_as_none_and_unknown_in_a_summary():
    network = Input(None, 4) + Dense(2)
    assert str(network) == "input(none, 4) + dense(2)"
    assert [row.shape for row in network.summary().rows] == [None, None]


def test_a_run_on_data_of_any_size_is_trained_saved_and_loaded(tmp_path):
    x, y = np.linspace(-1, 1, 60, dtype=np.float32).reshape(10, 6), np.zeros((10, 1), np.float32)
    with Environment("any", seed=0, folder=tmp_path) as sigma:
        trainer = sigma.create_trainer(
            network=Input(None) + Output(1) + SquaredDifference(), data=(x, y), optimiser="adam"
        )
        trainer.fit(epochs=1, progress=False)
        expected = trainer.predict(x)
        folder = sigma.run_folder
    np.testing.assert_array_equal(load(folder).predict(x), expected)
