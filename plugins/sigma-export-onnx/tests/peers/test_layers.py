"""Every layer and activation of sigma-layers alone: the same outputs in ONNX Runtime as in the reference."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime")

import sigma_layers as layers
from sigma_kernel import functions as f
from sigma_kernel.graph import Spec
from sigma_layers.plugin import ACTIVATIONS, LAYERS
from sigma_testing import by_name

from .running import agrees, alone

ROW, SIGNAL, IMAGE, VOLUME = Spec((5,)), Spec((4, 7)), Spec((2, 6, 5)), Spec((2, 4, 3, 3))
TEXT, WORDS, LENGTH = Spec((6, 4)), Spec((6,), "int32"), Spec((), "int32")
COSTS = {name for name in LAYERS if getattr(by_name("layer", name), "targets", None) is not None}
EXAMPLES = {
    "output": [(layers.Output(3), [ROW]), (layers.Output(), [ROW])],
    "dense": [(layers.Dense(3, activation="tanh"), [TEXT]), (layers.Dense(2, bias=False), [IMAGE])],
    "conv1d": [(layers.Conv1d(6, 3, stride=2, padding="same", dilation=2, groups=2), [SIGNAL])],
    "conv2d": [(layers.Conv2d(4, 3, padding=(1, 2), dilation=(2, 1), groups=2), [IMAGE])],
    "conv3d": [(layers.Conv3d(3, 2, stride=(1, 2, 1), padding=1, bias=False), [VOLUME])],
    "depthwise_conv1d": [(layers.DepthwiseConv1d(3, dilation=2), [SIGNAL])],
    "depthwise_conv2d": [(layers.DepthwiseConv2d(3, padding="same", multiplier=2), [IMAGE])],
    "depthwise_conv3d": [(layers.DepthwiseConv3d(2, stride=2), [VOLUME])],
    "conv1d_transpose": [(layers.Conv1dTranspose(6, 3, stride=3, output_padding=2, groups=2), [SIGNAL])],
    "conv2d_transpose": [
        (layers.Conv2dTranspose(3, (2, 3), 2, padding=(0, 1), output_padding=(1, 0), dilation=(1, 2)), [IMAGE]),
    ],
    "conv3d_transpose": [(layers.Conv3dTranspose(2, 2, stride=2, padding=1), [VOLUME])],
    "max_pool": [
        (layers.MaxPool((3, 2), stride=2, padding=1), [IMAGE]),
        (layers.MaxPool(2, stride=(1, 2), padding=1, dilation=(1, 3)), [IMAGE]),
        (layers.MaxPool(2), [VOLUME]),
        (layers.MaxPool((3, 2), stride=2, ceil_mode=True), [IMAGE]),
    ],
    "average_pool": [
        (layers.AveragePool(3, stride=2, padding=1), [SIGNAL]),
        (layers.AveragePool(3, stride=2, padding="same", count_padding=False), [IMAGE]),
        (layers.AveragePool(2), [VOLUME]),
        (layers.AveragePool((3, 4), stride=3, padding=1, ceil_mode=True), [IMAGE]),
        (layers.AveragePool(2, stride=2, count_padding=False, ceil_mode=True), [VOLUME]),
    ],
    "global_max_pool": [(layers.GlobalMaxPool(), [IMAGE])],
    "global_average_pool": [(layers.GlobalAveragePool(keepdims=True), [VOLUME])],
    "adaptive_max_pool": [(layers.AdaptiveMaxPool((4, 3)), [IMAGE])],
    "adaptive_average_pool": [(layers.AdaptiveAveragePool(3), [SIGNAL])],
    "upsample": [
        (layers.Upsample((2, 3)), [IMAGE]),
        (layers.Upsample(size=5), [SIGNAL]),
        (layers.Upsample(2, mode="linear"), [IMAGE]),
        (layers.Upsample(mode="linear", align_corners=True, size=(2, 5, 4)), [VOLUME]),
    ],
    "pad": [
        (layers.Pad([1, (0, 2)], value=0.5), [IMAGE]),
        (layers.Pad([(2, 1), 3], mode="reflect"), [IMAGE]),
        (layers.Pad([(0, 9)], mode="replicate"), [SIGNAL]),
        (layers.Pad([(5, 2)], mode="circular"), [SIGNAL]),
    ],
    "crop": [(layers.Crop([1, (0, 2)]), [IMAGE])],
    "simple_rnn": [
        (layers.SimpleRNN(3, direction="reverse"), [TEXT]),
        (layers.SimpleRNN(3, sequence=True, direction="bidirectional"), [TEXT]),
    ],
    "gru": [(layers.GRU(3, sequence=True), [TEXT]), (layers.GRU(3), [TEXT, LENGTH])],
    "lstm": [(layers.LSTM(3), [TEXT]), (layers.LSTM(2, sequence=True, direction="bidirectional"), [TEXT, LENGTH])],
    "activation": [(layers.Activation(name), [SIGNAL]) for name in ACTIVATIONS],
    "dropout": [(layers.Dropout(0.5), [ROW])],
    "spatial_dropout": [(layers.SpatialDropout(0.5), [IMAGE])],
    "gaussian_noise": [(layers.GaussianNoise(0.5), [ROW])],
    "batch_norm": [(layers.BatchNorm(), [IMAGE]), (layers.BatchNorm(axis=-1, affine=False), [SIGNAL])],
    "layer_norm": [(layers.LayerNorm(), [SIGNAL]), (layers.LayerNorm(2, affine=False), [IMAGE])],
    "group_norm": [(layers.GroupNorm(2), [SIGNAL])],
    "instance_norm": [(layers.InstanceNorm(), [IMAGE])],
    "rms_norm": [(layers.RMSNorm(2), [IMAGE])],
    "expand": [(layers.Expand(), [IMAGE]), (layers.Expand(-1), [ROW])],
    "flatten": [(layers.Flatten(), [IMAGE])],
    "reshape": [(layers.Reshape(7, 4), [SIGNAL])],
    "permute": [(layers.Permute(2, 3, 1), [IMAGE])],
    "add": [(layers.Add(), [SIGNAL, SIGNAL, SIGNAL])],
    "multiply": [(layers.Multiply(), [SIGNAL, Spec((4, 1))])],
    "mean": [(layers.Mean(), [SIGNAL, SIGNAL])],
    "maximum": [(layers.Maximum(), [SIGNAL, SIGNAL])],
    "dot": [(layers.Dot(), [ROW, ROW]), (layers.Dot(axis=1, cosine=True), [SIGNAL, Spec((4, 2))])],
    "concat": [(layers.Concat(axis=2), [SIGNAL, Spec((4, 2))])],
    "embedding": [(layers.Embedding(3, 4), [WORDS]), (layers.Embedding(3, 4, padding=1), [WORDS])],
    "sinusoidal_positions": [(layers.SinusoidalPositions(), [TEXT])],
    "learned_positions": [(layers.LearnedPositions(9), [TEXT])],
    "document_mask": [(layers.DocumentMask(1), [WORDS])],
    "attention": [
        (layers.Attention(2), [TEXT]),
        (layers.Attention(2, causal=True, rotary=10.0), [TEXT]),
        (layers.Attention(2, key_value_heads=1), [TEXT, LENGTH]),
        (layers.Subnetwork(layers.Attention(2, dropout=0.5) + layers.Pick("weights")), [TEXT]),
    ],
    "transformer_encoder": [(layers.TransformerEncoder(2, causal=True), [TEXT])],
    "transformer_decoder": [(layers.TransformerDecoder(2), [TEXT, Spec((3, 4))])],
    "residual": [(layers.Residual(layers.Dense(3), layers.Dense(3)), [ROW])],
    "repeat": [(layers.Repeat(2, layers.Dense(5, activation="gelu")), [ROW])],
    "subnetwork": [(layers.Subnetwork(layers.Dense(4) + layers.Dense(3)), [ROW])],
    "pick": [
        (layers.Subnetwork(layers.Subnetwork(layers.Dense(4, name="a") + layers.Dense(3)) + layers.Pick("a")), [ROW]),
    ],
    "function": [(layers.Function(lambda x, y: f.sin(x) % (f.abs(y) + 1.0)), [ROW, ROW])],
}  # fmt: skip
ELSEWHERE = {"input": "test_networks.py, as in every network there", **dict.fromkeys(COSTS, "test_networks.py")}


def test_every_layer_has_an_example() -> None:
    assert {*EXAMPLES} | {*ELSEWHERE} == {*LAYERS}
    assert not {*EXAMPLES} & {*ELSEWHERE}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_layer_has_the_outputs_of_the_reference(name: str) -> None:
    for layer, specs in EXAMPLES[name]:
        agrees(alone(layer, specs), repr(layer))
