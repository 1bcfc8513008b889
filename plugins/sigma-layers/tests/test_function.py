"""Users' own functions: errors name the layer that they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel import Network, SigmaNetworkError, functions as f
from sigma_kernel.graph import Spec
from sigma_layers import Activation, Conv2d, Dense, Function, Input
from sigma_testing import by_name

HERE = {"inputs": Spec((2, 3, 3), "float32"), "targets": Spec((18,), "float32")}


def numpyish(x: Any) -> Any:
    return np.tanh(x)


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (Function(lambda x: chr(x, x)), "1-function: its function, given a node, failed: TypeError: chr"),
        (Function(lambda x, y: x), "1-function: its function, given a node, failed: TypeError: .* missing 1 required"),
        (Function(lambda x: x.sigmoid()), "1-function: its function, given a node, failed: AttributeError: "),
    ],
)
def test_an_exception_of_a_users_function_names_the_layer_and_the_valid_operations(layer: Any, told: str) -> None:
    network = Network.build(Input(2, 3, 3) + layer)
    with pytest.raises(SigmaNetworkError, match=f"^{told}.*Write it with .* sigma_kernel.functions, such as") as error:
        network.declare(HERE, "float32", by_name)
    assert isinstance(error.value.__cause__.__cause__, TypeError | AttributeError)  # type: ignore[union-attr]


def test_a_number_that_is_asked_of_a_node_is_refused_with_the_method_for_it() -> None:
    network = Network.build(Input(2, 3, 3) + Function(lambda x: float(x)))
    with pytest.raises(SigmaNetworkError, match=r"^1-function: input .*: its value is unknown .* Use x.astype\("):
        network.declare(HERE, "float32", by_name)


def test_a_graph_error_is_reported_with_its_own_message() -> None:
    network = Network.build(Input(2, 3, 3) + Function(lambda x: x @ f.reshape(x, (2, 18))))
    with pytest.raises(SigmaNetworkError, match=r"^1-function: matmul\("):
        network.declare(HERE, "float32", by_name)


@pytest.mark.parametrize(
    ("layer", "name"),
    [
        (Function(numpyish), "1-function"),
        (Activation(numpyish), "1-activation"),
        (Dense(3, activation=numpyish), "1-dense"),
        (Conv2d(3, 2, activation=numpyish), "1-conv2d"),
    ],
)
def test_a_function_of_numpy_is_refused_with_the_one_of_the_graph(layer: Any, name: str) -> None:
    with pytest.raises(SigmaNetworkError, match=rf"^{name}: np\.tanh: NumPy cannot .* Use f\.tanh, of sigma_kernel"):
        Network.build(Input(2, 3, 3) + layer).declare(HERE, "float32", by_name)
