"""Second derivatives of every family of layers and costs, compared with finite differences of the first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel import functions as f
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace, symbol
from sigma_layers import (
    CTC,
    GRU,
    LSTM,
    Attention,
    BatchNorm,
    BinaryCrossEntropy,
    Conv1d,
    Conv2d,
    Conv2dTranspose,
    CosineDistance,
    Dense,
    DepthwiseConv2d,
    Dot,
    GlobalAveragePool,
    GroupNorm,
    Huber,
    Input,
    KullbackLeibler,
    LayerNorm,
    MaxPool,
    Multiply,
    Poisson,
    RMSNorm,
    SimpleRNN,
    SoftmaxCrossEntropy,
    SquaredDifference,
    TransformerEncoder,
    Triplet,
    Upsample,
)
from sigma_testing import trace_layer

IMAGE, SEQUENCE = (2, 2, 5, 4), (2, 4, 6)
CASES: list[tuple[Any, list[Any]]] = [
    (Dense(3, activation="tanh"), [(3, 4)]),
    (Conv1d(4, 3, padding=1, dilation=2), [(2, 2, 7)]),
    (Conv2d(4, 3, stride=2, padding="same", groups=2, activation="gelu"), [IMAGE]),
    (Conv2dTranspose(3, 3, stride=2, activation="tanh"), [IMAGE]),
    (DepthwiseConv2d(2, multiplier=2), [IMAGE]),
    (MaxPool(2), [IMAGE]),
    (GlobalAveragePool(), [IMAGE]),
    (Upsample(2, "linear"), [IMAGE]),
    (BatchNorm(), [(5, 3)]),
    (LayerNorm(), [SEQUENCE]),
    (GroupNorm(2), [(2, 4, 3)]),
    (RMSNorm(), [SEQUENCE]),
    (Multiply(), [SEQUENCE, SEQUENCE]),
    (Dot(cosine=True), [(3, 5), (3, 5)]),
    (SimpleRNN(3), [SEQUENCE]),
    (GRU(3, sequence=True), [SEQUENCE]),
    (LSTM(3, direction="bidirectional"), [SEQUENCE]),
    (Attention(2, causal=True, rotary=10.0, key_size=2), [SEQUENCE]),
    (TransformerEncoder(2, hidden=5, activation="gelu"), [SEQUENCE]),
    (SoftmaxCrossEntropy((0.5, 1.0, 2.0), label_smoothing=0.1), [(4, 3), np.array([0, 2, 1, 1], np.int32)]),
    (BinaryCrossEntropy(), [(4, 2), np.array([[0, 1], [1, 1], [0, 0], [1, 0]], np.float64)]),
    (SquaredDifference(), [(4, 3), (4, 3)]),
    (Huber(0.5), [(4, 3), (4, 3)]),
    (KullbackLeibler(), [(2, 3), np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])]),
    (Poisson(), [(4, 3), np.ones((4, 3))]),
    (CosineDistance(), [(4, 3), (4, 3)]),
    (Triplet(Input(3), Input(3)), [(4, 3)] * 3),
    (CTC(), [(2, 5, 3), np.array([[1, 2], [1, -1]], np.int32)]),
]


@pytest.mark.parametrize(("layer", "given"), CASES, ids=[type(layer).__name__ for layer, _ in CASES])
def test_second_derivatives_agree_with_finite_differences(layer: Any, given: list[Any]) -> None:
    random = np.random.default_rng(0)
    arrays = [one if isinstance(one, np.ndarray) else random.normal(size=one) for one in given]
    it = trace_layer(layer, [Spec(x.shape, str(x.dtype)) for x in arrays], training=True)
    values = it.values(arrays)
    fixed = {f"input {i}" for i, one in enumerate(given) if isinstance(one, np.ndarray)} | it.shapes.live.keys()
    places = [i for i, x in enumerate(values) if x.dtype.kind == "f" and it.names[i] not in fixed]
    nodes = [it.graph.inputs[i] for i in places]
    along = [random.normal(size=node.shape) for node in nodes]
    vectors = [symbol(node.shape, "float64") for node in nodes]
    slopes = gradient(f.sum(f.sin(it.output)), nodes)
    slope = sum(
        (f.sum(slope * vector) for slope, vector in zip(slopes, vectors, strict=True)), f.constant(0.0, "float64")
    )
    run = interpret(Graph((*it.graph.inputs, *vectors), (slope, *gradient(slope, nodes))), numpy_namespace())
    step = 1e-6
    _, *seconds = run(*values, *along)
    for place, second in zip(places, seconds, strict=True):
        towards = random.normal(size=second.shape)
        up, down = (
            run(*[x + by * towards if i == place else x for i, x in enumerate(values)], *along)[0]
            for by in (step, -step)
        )
        wanted = (up - down) / (2 * step)
        np.testing.assert_allclose(np.sum(second * towards), wanted, rtol=1e-5, atol=1e-6, err_msg=it.names[place])
