"""Every family of layers on the backends: outputs, new state and gradients, and a training run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend
from sigma_backend_numpy import NumpyBackend
from sigma_kernel import Environment, functions as f
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace
from sigma_layers import (
    AdaptiveAveragePool,
    AdaptiveMaxPool,
    AveragePool,
    BatchNorm,
    Conv1d,
    Conv1dTranspose,
    Conv2d,
    Conv2dTranspose,
    Conv3d,
    Conv3dTranspose,
    Crop,
    DepthwiseConv1d,
    DepthwiseConv2d,
    Dot,
    Flatten,
    GaussianNoise,
    GlobalAveragePool,
    GlobalMaxPool,
    GroupNorm,
    Input,
    InstanceNorm,
    LayerNorm,
    Maximum,
    MaxPool,
    Mean,
    Multiply,
    Output,
    Pad,
    Permute,
    RMSNorm,
    SoftmaxCrossEntropy,
    SpatialDropout,
    Upsample,
)
from sigma_testing import trace_layer

SIGNAL, IMAGE, VOLUME = (3, 4, 7), (3, 2, 6, 5), (2, 2, 3, 4, 3)
FAMILIES: dict[str, list[tuple[Any, list[tuple[int, ...]]]]] = {  # layers, and the shapes of their inputs
    "convolution": [
        (Conv1d(6, 3, stride=2, padding="same", dilation=2, groups=2, activation="tanh"), [SIGNAL]),
        (Conv2d(4, 3, padding=(1, 2), dilation=(2, 1), groups=2), [IMAGE]),
        (Conv3d(3, 2, stride=(1, 2, 1), padding=1), [VOLUME]),
        (DepthwiseConv1d(3, dilation=2), [SIGNAL]),
        (DepthwiseConv2d(3, padding="same", multiplier=2), [IMAGE]),
    ],
    "transposed convolution": [
        (Conv1dTranspose(6, 3, stride=3, output_padding=2, groups=2), [SIGNAL]),
        (Conv2dTranspose(3, (2, 3), stride=2, padding=(0, 1), output_padding=(1, 0), dilation=(1, 2)), [IMAGE]),
        (Conv3dTranspose(2, 2, stride=2, padding=1), [VOLUME]),
    ],
    "norm": [
        (BatchNorm(), [(6, 4)]),
        (BatchNorm(momentum=0.3, epsilon=1e-3), [IMAGE]),
        (BatchNorm(axis=-1, affine=False), [SIGNAL]),
        (LayerNorm(), [SIGNAL]),
        (LayerNorm(2, affine=False), [IMAGE]),
        (GroupNorm(2), [SIGNAL]),
        (InstanceNorm(), [IMAGE]),
        (RMSNorm(2), [IMAGE]),
    ],
    "pool": [
        (MaxPool((3, 2), stride=2, padding=1), [IMAGE]),
        (MaxPool(2, stride=(1, 2), padding=1, dilation=(1, 3)), [IMAGE]),
        (MaxPool((1, 2, 1)), [VOLUME]),
        (MaxPool(12), [(2, 2, 12, 12)]),
        (AveragePool(3, stride=2, padding=1), [SIGNAL]),
        (AveragePool(3, stride=2, padding="same", count_padding=False), [IMAGE]),
        (MaxPool(3, stride=2, ceil_mode=True), [IMAGE]),
        (AveragePool((3, 2), stride=2, padding=(0, 1), ceil_mode=True), [IMAGE]),
        (GlobalMaxPool(), [IMAGE]),
        (GlobalAveragePool(), [VOLUME]),
        (AdaptiveMaxPool((4, 3)), [IMAGE]),
        (AdaptiveAveragePool(3), [SIGNAL]),
    ],
    "sides": [
        (Upsample((2, 3)), [IMAGE]),
        (Upsample(size=5), [SIGNAL]),
        (Upsample(2, mode="linear"), [IMAGE]),
        (Upsample(mode="linear", align_corners=True, size=(2, 5, 4)), [VOLUME]),
        (Pad([1, (0, 2)], value=0.5), [IMAGE]),
        (Pad([(2, 1), 3], mode="reflect"), [IMAGE]),
        (Pad([(0, 9)], mode="replicate"), [SIGNAL]),
        (Pad([(5, 2)], mode="circular"), [SIGNAL]),
        (Crop([1, (0, 2)]), [IMAGE]),
        (Permute(2, 3, 1), [IMAGE]),
    ],
    "merge": [
        (Multiply(), [SIGNAL, (3, 4, 1)]),
        (Mean(), [SIGNAL, SIGNAL, SIGNAL]),
        (Maximum(), [SIGNAL, SIGNAL, SIGNAL]),
        (Dot(), [(3, 5), (3, 5)]),
        (Dot(axis=1, cosine=True), [SIGNAL, (3, 4, 2)]),
    ],
    "noise": [(SpatialDropout(0.4), [IMAGE]), (GaussianNoise(0.5), [SIGNAL])],
}


def merged() -> Any:
    """Return a network that merges branches."""
    trunk = Input(2, 6, 6) + Conv2d(3, 3)
    gate = trunk + GlobalAveragePool(keepdims=True)
    return trunk + Multiply(gate) + Mean(trunk) + Maximum(trunk + Conv2d(3, 1))


NETWORKS: dict[str, Any] = {  # of 2 x 6 x 6 images
    "convolution": Input(2, 6, 6)
    + Conv2d(4, 3, dilation=2, groups=2, activation="tanh")
    + DepthwiseConv2d(2, multiplier=2),
    "transposed convolution": Input(2, 6, 6) + Conv2dTranspose(3, 4, stride=2, padding=1, activation="tanh"),
    "pool": Input(2, 6, 6) + Conv2d(3, 3, padding=1) + MaxPool(2, 1, dilation=2) + AdaptiveAveragePool(3),
    "sides": Input(2, 6, 6) + Pad(1, "reflect") + Upsample(2, "linear") + Crop([(1, 2), 0]) + Conv2d(2, 3),
    "merge": merged(),
    "noise": Input(2, 6, 6) + SpatialDropout(0.3) + Conv2d(3, 3) + GaussianNoise(0.2),
    "norm": Input(2, 6, 6) + BatchNorm() + GroupNorm(2) + Conv2d(4, 3) + LayerNorm(3) + RMSNorm() + InstanceNorm(),
}
by_family = pytest.mark.parametrize("family", FAMILIES)


def combined(family: str) -> tuple[Graph, list[np.ndarray]]:
    """Return one graph of the outputs, the new state and the gradients of all layers of a family, and its inputs."""
    inputs, outputs, values = [], [], []
    for layer, shapes in FAMILIES[family]:
        draw = np.random.default_rng(0)
        given = [draw.normal(size=shape).astype(np.float32) for shape in shapes]
        it = trace_layer(layer, [Spec(shape) for shape in shapes], training=True, precision="float32")
        values += it.values(given)
        loss = f.sum(f.sin(it.output))
        floats = [node for node in it.graph.inputs if node.dtype == "float32" and node.shape]
        inputs += it.graph.inputs
        outputs += [*it.graph.outputs, *gradient(loss, floats)]
    return Graph(tuple(inputs), tuple(outputs)), values


@pytest.mark.parametrize("backend", [NumpyBackend(), NumbaBackend()], ids=["numpy", "numba"])
@by_family
def test_outputs_and_gradients_are_those_of_the_reference(family: str, backend: Any) -> None:
    graph, values = combined(family)
    found = backend.lower(graph, {})(*values)
    for ours, wanted in zip(found, interpret(graph, numpy_namespace())(*values), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(wanted).max())))


def trained(network: Any, backend: str) -> dict[str, np.ndarray]:
    """Return parameters and layer state after three iterations."""
    draw = np.random.default_rng(1)
    data = {"inputs": draw.normal(size=(12, 2, 6, 6)), "targets": draw.integers(0, 3, 12)}
    sigma = Environment("layers", seed=0, precision="float64")
    how = {"type": "gradient_descent", "learning_rate": 0.1}
    trainer = sigma.create_trainer(data=data, optimiser=how, backend=backend, batch_size=4)
    trainer.network = network + Flatten() + Output(3) + SoftmaxCrossEntropy()
    trainer.fit(epochs=1)
    return {name: x for name, x in trainer.session.snapshot().arrays.items() if name.startswith("network.")}


@by_family
def test_a_network_trains_to_the_same_parameters_on_both(family: str) -> None:
    wanted, found = (trained(NETWORKS[family], backend) for backend in ("numpy", "numba"))
    assert found.keys() == wanted.keys()
    assert len(wanted) > 3
    for name, x in wanted.items():
        np.testing.assert_allclose(found[name], x, rtol=1e-9, atol=1e-12, err_msg=name)
