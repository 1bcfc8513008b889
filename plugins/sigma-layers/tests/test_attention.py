"""Attention and transformer blocks: causality, masks, grouped heads, dropout, text, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sigma_kernel import Environment, Network, functions as f
from sigma_kernel.contracts import Architecture, Layer
from sigma_kernel.errors import SigmaError, SigmaNetworkError
from sigma_kernel.graph import Graph, Spec, gradient, interpret, numpy_namespace
from sigma_layers import (
    Attention,
    DocumentMask,
    Input,
    Output,
    Pick,
    Repeat,
    SinusoidalPositions,
    SquaredDifference,
    Subnetwork,
    TransformerDecoder,
    TransformerEncoder,
)
from sigma_testing import LayerSuite, by_name, trace_layer

RANDOM = np.random.default_rng(0)
SEQUENCE, MEMORY, LENGTHS = Spec((5, 6)), Spec((4, 3)), Spec((), "int32")
X, OTHER = RANDOM.normal(size=(2, 3, 5, 6))
M = RANDOM.normal(size=(3, 4, 3))


class AttentionSuite(LayerSuite):
    scales = (1e-3, 1.0, 3.0)  # of greater ones a difference crosses from one key to another


class TestAttention(AttentionSuite):
    inputs = (SEQUENCE,)

    def make(self) -> Layer:
        return Attention(3, causal=True)


class TestAttentionWithEverySetting(AttentionSuite):
    inputs = (SEQUENCE, MEMORY, LENGTHS, Spec((4,), "int32"))

    def make(self) -> Layer:
        return Attention(4, key_value_heads=2, key_size=2, value_size=3, units=5, bias=False, rotary=100.0)


class TestTransformerEncoder(AttentionSuite):
    inputs = (SEQUENCE, Spec((5,), "int32"))

    def make(self) -> Layer:
        return TransformerEncoder(2, hidden=7, activation="gelu", norm="post", causal=True)


class TestTransformerDecoder(AttentionSuite):
    inputs = (SEQUENCE, LENGTHS, MEMORY, Spec((4,), "int32"))

    def make(self) -> Layer:
        return TransformerDecoder(3, hidden=4, activation="tanh", rotary=100.0)


class Run:
    """A layer's value, and the gradient of a weighted sum of it, for inputs and parameters drawn by a seed."""

    def __init__(self, layer: Architecture, *arrays: np.ndarray, rows: slice = slice(None), training: bool = False):
        it = trace_layer(layer if isinstance(layer, Layer) else Subnetwork(layer), _specs(arrays), training=training)
        values = it.values(arrays)
        self.parameters = dict(zip((name.removeprefix("0-it.") for name in it.names), values, strict=True))
        start, stop, _ = rows.indices(it.output.shape[1])
        weights = np.random.default_rng(4).normal(size=it.output.shape)
        loss = f.sum(f.narrow(it.output * weights, 1, start, stop))
        targets = [x for x in it.graph.inputs if x.dtype == "float64"]
        found = interpret(Graph(it.graph.inputs, (it.output, *gradient(loss, targets))), numpy_namespace())(*values)
        self.value, slopes = found[0], found[1:]
        self.slopes = dict(zip((str(x.attrs["name"]).removeprefix("0-it.") for x in targets), slopes, strict=True))


def _specs(arrays: Any) -> list[Spec]:
    return [Spec(x.shape, str(x.dtype)) for x in arrays]


# -- values ------------------------------------------------------------------------------------------------------------
def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


@pytest.mark.parametrize("shared", [1, 2, 4])
def test_heads_are_softmax_attention_of_affine_maps_and_share_keys_in_groups(shared: int) -> None:
    run = Run(Attention(4, key_value_heads=4 // shared, key_size=3, value_size=2, units=5), X)
    p = run.parameters
    q, k, v = (X @ p[f"{name}.weights"] + p[f"{name}.biases"] for name in ("query", "key", "value"))
    heads = []
    for head in range(4):
        pair = head // shared
        scores = q[..., head * 3 : head * 3 + 3] @ k[..., pair * 3 : pair * 3 + 3].swapaxes(1, 2) / np.sqrt(3)
        heads.append(softmax(scores) @ v[..., pair * 2 : pair * 2 + 2])
    expected = np.concatenate(heads, -1) @ p["output.weights"] + p["output.biases"]
    assert_allclose(run.value, expected, rtol=1e-12)


def test_the_weights_of_the_values_are_a_further_output() -> None:
    found = Run(Attention(2, key_value_heads=1, causal=True, name="a") + Pick("weights"), X).value
    assert found.shape == (3, 2, 5, 5)
    assert_allclose(found.sum(-1), 1.0, rtol=1e-12)
    assert not np.triu(found, 1).any()


def test_addresses_of_parameters_are_those_of_inner_layers() -> None:
    network = Network.build(Input(5, 6) + Repeat(2, TransformerEncoder(2, dropout=0.1), name="stack"))
    shapes = network.declare({"inputs": SEQUENCE}, "float32", by_name)
    names = {a.removeprefix("stack.0.") for a in shapes.parameters if a.startswith("stack.0.")}
    maps = [*(f"attention.{name}" for name in ("query", "key", "value", "output")), "hidden", "feed_forward"]
    norms = [f"{part}_norm.{name}" for part in ("attention", "feed_forward") for name in ("scale", "shift")]
    assert names == {*(f"{name}.{one}" for name in maps for one in ("weights", "biases")), *norms}
    assert len(shapes.parameters) == 2 * len(names)
    assert {a.removeprefix("stack.1.") for a in shapes.live if "stack.1" in a} == {
        "attention.dropout.rate", "attention_dropout.rate", "hidden_dropout.rate", "feed_forward_dropout.rate",
    }  # fmt: skip


def test_dropout_drops_in_training_alone() -> None:
    layer = Attention(2, dropout=0.5, name="a") + Pick("weights")
    assert_array_equal(Run(layer, X).value, Run(layer, X, training=True).value)  # the weights before dropout
    plain, dropped = Run(Attention(2), X).value, Run(Attention(2, dropout=0.5), X)
    assert_array_equal(plain, dropped.value)
    it = trace_layer(Attention(2, dropout=0.5), _specs([X]), training=True)
    assert (it.run(it.values([X]))[0] != plain).all()


# -- documents ---------------------------------------------------------------------------------------------------------
class TestDocumentMask(LayerSuite):
    inputs = (Spec((5,), "int32"),)

    def make(self) -> Layer:
        return DocumentMask()


def read_mask(tokens: np.ndarray, separator: int = 0) -> np.ndarray:
    it = trace_layer(DocumentMask(separator), _specs([tokens]), training=False)
    return np.asarray(it.run([tokens])[0])


def test_a_document_mask_is_a_triangle_for_each_document() -> None:
    tokens = np.array([[7, 2, 7, 3, 3, 7], [2, 3, 2, 2, 3, 2], [7, 7, 7, 7, 7, 7]], np.int32)
    mask = read_mask(tokens, 7)
    for sizes, rows in zip(([1, 2, 3], [6], [1] * 6), mask, strict=True):
        blocks = [np.tril(np.ones((size, size), bool)) for size in sizes]
        starts = np.cumsum([0, *sizes])
        expected = np.zeros((6, 6))
        for start, block in zip(starts, blocks, strict=False):
            expected[start : start + len(block), start : start + len(block)] = block
        assert_array_equal(rows, expected)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_packed_documents_are_encoded_as_each_alone(norm: str) -> None:
    tokens = np.array([[3, 0, 4, 2, 0]], np.int32)
    encoder = TransformerEncoder(3, causal=True, rotary=10.0, norm=norm, name="e")
    packed, whole = Run(encoder, X[:1], read_mask(tokens)), Run(encoder, X[:1])
    for part in (slice(0, 2), slice(2, 5)):
        alone = Run(encoder, X[:1, part])
        assert all((alone.parameters[name] == value).all() for name, value in whole.parameters.items() if "." in name)
        assert_allclose(packed.value[:, part], alone.value, rtol=1e-10, atol=1e-12)
    assert not np.allclose(whole.value[:, 2:], packed.value[:, 2:])


def test_what_is_no_sequence_of_indices_and_masks_of_other_lengths_are_refused() -> None:
    with pytest.raises(SigmaNetworkError, match=r"document_mask\(\(5, 6\)\): a sample must be a sequence of indices"):
        read_mask(X)
    with pytest.raises(SigmaNetworkError, match="is causal only within a sequence"):
        Run(Attention(2, causal=True), X, np.ones((3, 4, 5)))
    with pytest.raises(SigmaError, match=r"DocumentMask\.separator: must be a whole number"):
        DocumentMask(0.5)


# -- causality and masks -----------------------------------------------------------------------------------------------
CAUSAL: dict[str, Callable[[], Architecture]] = {
    "attention": lambda: Attention(2, causal=True, rotary=100.0, key_size=4),
    "encoder": lambda: Repeat(2, TransformerEncoder(2, causal=True)),
    "post-norm encoder": lambda: SinusoidalPositions() + 2 * TransformerEncoder(3, causal=True, norm="post"),
    "grouped encoder": lambda: TransformerEncoder(6, causal=True, key_value_heads=2),
}


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("t", [0, 1, 3, 5])
def test_an_entry_of_a_causal_model_changes_nothing_before_it(name: str, t: int) -> None:
    later = np.concatenate([X[:, :t], OTHER[:, t:] * 10], 1)
    first, second = (Run(CAUSAL[name](), x, rows=slice(t)) for x in (X, later))
    assert_array_equal(first.value[:, :t], second.value[:, :t])
    for address, slope in first.slopes.items():
        assert_array_equal(slope, second.slopes[address])
    assert not first.slopes["input 0"][:, t:].any()
    if t < 5:
        assert (first.value[:, t:] != second.value[:, t:]).all()


@pytest.mark.parametrize("t", [1, 4])
def test_an_entry_of_a_causal_decoder_changes_nothing_before_it(t: int) -> None:
    later = np.concatenate([X[:, :t], OTHER[:, t:]], 1)
    first, second = (Run(TransformerDecoder(2), x, M, rows=slice(t)) for x in (X, later))
    assert_array_equal(first.value[:, :t], second.value[:, :t])
    assert not first.slopes["input 0"][:, t:].any()
    assert first.slopes["input 1"].any()


def masks(count: int) -> dict[str, list[np.ndarray]]:
    """Return masks of the first ``count`` of 5 keys."""
    there, lengths = np.tile(np.arange(5) < count, (3, 1)), np.full(3, count, np.int32)
    return {
        "lengths": [lengths], "a column": [lengths[:, None]], "numbers": [there * 2.5], "truth values": [there],
        "tokens": [(there * 7).astype(np.int32)], "both": [lengths, np.ones((3, 5))],
    }  # fmt: skip


@pytest.mark.parametrize("kind", masks(3))
@pytest.mark.parametrize(
    "make", [lambda: Attention(2), lambda: TransformerEncoder(2), lambda: Repeat(2, TransformerEncoder(2, norm="post"))]
)
def test_padding_changes_nothing(kind: str, make: Callable[[], Architecture]) -> None:
    padded = np.concatenate([X[:, :3], 1e3 * OTHER[:, 3:]], 1)
    alone, whole = Run(make(), X[:, :3]), Run(make(), padded, *masks(3)[kind], rows=slice(3))
    assert_allclose(whole.value[:, :3], alone.value, rtol=1e-10, atol=1e-12)
    assert not whole.slopes["input 0"][:, 3:].any()


def test_each_sample_has_a_mask_of_its_own() -> None:
    lengths = np.array([5, 2, 3], np.int32)
    found = Run(Attention(2), X, lengths).value
    for i, n in enumerate(lengths):
        assert_allclose(found[i, :n], Run(Attention(2), X[i : i + 1, :n]).value[0], rtol=1e-10)


def test_masks_of_a_decoder_are_told_apart_by_their_place() -> None:
    own, there = np.array([2, 5, 4], np.int32), np.array([4, 1, 3], np.int32)
    found = Run(TransformerDecoder(2, causal=False), X, own, M, there).value
    for i in range(3):
        alone = Run(TransformerDecoder(2, causal=False), X[i : i + 1, : own[i]], M[i : i + 1, : there[i]])
        assert_allclose(found[i, : own[i]], alone.value[0], rtol=1e-10)


@pytest.mark.parametrize("layer", [Attention(2), TransformerEncoder(2)])
def test_a_sample_without_any_key_gives_numbers_as_if_heads_returned_zero(layer: Layer) -> None:
    run = Run(layer, X, np.array([0, 5, 2], np.int32))
    assert np.isfinite(run.value).all()
    assert all(np.isfinite(slope).all() for slope in run.slopes.values())
    if isinstance(layer, Attention):
        assert_array_equal(run.value[0], np.tile(run.parameters["output.biases"], (5, 1)))


def test_large_inputs_in_float32_are_masked_without_overflow() -> None:
    it = trace_layer(
        Attention(2, causal=True), [Spec((3, 5, 6)), Spec((3,), "int32")], training=False, precision="float32"
    )
    found = it.run(it.values([(X * 1e15).astype("f4"), np.array([0, 1, 4], np.int32)]))[0]
    assert np.isfinite(found).all()


# -- networks ----------------------------------------------------------------------------------------------------------
TEXTS = [
    "input(5, 6) + attention(3, causal=true, rotary=100.0) + output(1) + squared_difference()",
    'x1 = input(4, 3, section="memory")\nx2 = input(section="lengths", dtype="int32")\n'
    "input(5, 6) + attention(2, memory=x1, mask=x2) + output(1) + squared_difference()",
    'x1 = input(4, 3, section="memory")\nx2 = repeat(2, chain=transformer_decoder(2, norm="post"))\nx1 -> x2\n'
    "input(5, 6) + x2 + output(1) + squared_difference()",
    'input(5, 6) + transformer_decoder(3, memory=input(4, 3, section="memory"), memory_mask=input(section="lengths",'
    ' dtype="int32"), hidden=8) + output(1) + squared_difference()',
]
DATA = {"inputs": X, "memory": M, "lengths": np.array([4, 1, 3], np.int32), "targets": X[..., :1]}


def trained(network: Any, backend: str = "numpy") -> Any:
    sigma = Environment(precision="float64", seed=1)
    trainer = sigma.create_trainer(network=network, data=DATA, optimiser="adam", backend=backend)
    trainer.fit(epochs=3)
    return trainer


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_form_round_trips_and_trains(text: str) -> None:
    trainer = trained(text)
    first = str(trainer.session.setup.model.network)
    assert str(trained(first).session.setup.model.network) == first
    losses = trainer.history["training.loss"]
    assert losses[-1] < losses[0]


def test_a_linked_memory_is_that_of_the_setting() -> None:
    memory = Input(4, 3, section="memory")
    given = Input(5, 6) + TransformerDecoder(2, memory=memory, name="d") + Output(1) + SquaredDifference()
    linked = TransformerDecoder(2, name="d")
    Input(4, 3, section="memory").link(linked)
    other = Input(5, 6) + linked + Output(1) + SquaredDifference()
    specs = {"inputs": SEQUENCE, "memory": MEMORY, "targets": Spec((5, 1))}
    one, two = (Network.build(x).declare(specs, "float32", by_name) for x in (given, other))
    assert one.parameters.keys() == two.parameters.keys()


def test_a_step_on_the_compiled_backend_gives_the_same_numbers() -> None:
    text = """
        x1 = input(section="lengths", dtype="int32")
        x2 = input(4, 3, section="memory")
        input(5, 6) + sinusoidal_positions() + transformer_encoder(2, mask=x1, causal=true, key_value_heads=1)
        + transformer_decoder(3, memory=x2, rotary=100.0, hidden=8, dropout=0.25, norm="post")
        + output(1) + squared_difference()
    """
    samples = {name: DATA[name] for name in ("inputs", "memory", "lengths")}
    ours, compiled = (trained(text, backend).predict(samples) for backend in ("numpy", "numba"))
    assert_allclose(compiled, ours, rtol=1e-9)


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attention(0), "Attention.heads: must be a whole number of at least 1"),
        (lambda: Attention(4, key_value_heads=3), "key_value_heads: 3 cannot be shared evenly by 4 heads"),
        (lambda: Attention(4, dropout=1.0), "Attention.dropout: must be less than 1"),
        (lambda: Attention(4, rotary=0.0), "Attention.rotary: must be more than 0"),
        (lambda: Attention(4, key_size=0), "Attention.key_size: must be a whole number of at least 1"),
        (lambda: Attention(4, memory=3), "Attention.memory: must be a layer or a chain"),
        (lambda: TransformerEncoder(4, norm="middle"), "TransformerEncoder.norm: must be 'pre' or 'post'"),
        (lambda: TransformerEncoder(4, hidden=-1), "TransformerEncoder.hidden: must be a whole number of at least 1"),
        (lambda: TransformerDecoder(4, memory_mask="x"), "TransformerDecoder.memory_mask: must be a layer or a chain"),
    ],
)
def test_a_wrong_setting_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=message):
        make()


@pytest.mark.parametrize(
    ("layer", "others", "message"),
    [
        (Attention(4), [], r"attention\(\(5, 6\)\): 6 features cannot be divided among 4 heads"),
        (Attention(2, rotary=10.0), [], "rotary positions turn pairs of features, and a head has 3. Choose an even"),
        (Attention(2, causal=True), [M], "attention: is causal only within a sequence"),
        (Attention(2), [np.ones((3, 4))], "a mask for 4 keys does not fit 5. Give one entry for each"),
        (Attention(2), [M, M], r"attention\(\(5, 6\), \(4, 3\), \(4, 3\)\): further inputs are a sequence"),
        (Attention(2), [np.ones((3, 4, 5, 6))], "further inputs are a sequence"),
        (TransformerDecoder(2), [np.ones(3)], r"transformer_decoder\(\(\)\): there is no sequence to attend to"),
        (TransformerEncoder(4), [], "attention: attention.* 6 features cannot be divided among 4 heads"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(layer: Layer, others: Any, message: str) -> None:
    with pytest.raises(SigmaNetworkError, match=message):
        trace_layer(layer, _specs([X, *others]), training=True)


def test_a_sample_that_is_no_sequence_is_refused() -> None:
    for layer in Attention(2), TransformerEncoder(2):
        with pytest.raises(SigmaNetworkError, match=r"\(6,\)\): a sample must be a sequence, \(time, features\)"):
            trace_layer(layer, [Spec((3, 6))], training=True)
