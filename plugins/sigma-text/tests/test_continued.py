"""Sequences continued entry by entry, from what layers remember, have the numbers of whole sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sigma_kernel import Network, Rewriting, Trace, functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_kernel.graph import Graph, Spec, interpret, numpy_namespace, symbol
from sigma_layers import (
    GRU,
    LSTM,
    Attention,
    Dense,
    DocumentMask,
    Embedding,
    Flatten,
    Function,
    Input,
    LearnedPositions,
    Output,
    QuantisedWeights,
    Repeat,
    Reshape,
    Residual,
    SimpleRNN,
    SinusoidalPositions,
    SoftmaxCrossEntropy,
    TransformerDecoder,
    TransformerEncoder,
)
from sigma_testing import by_name
from sigma_text import Continued

LENGTH, ROWS, VOCABULARY = 7, 2, 5
LENGTHS = np.array([6, 3], np.int32)
TOKENS = np.random.default_rng(1).integers(0, VOCABULARY, (ROWS, LENGTH)).astype(np.int32)
MODELS: dict[str, Any] = {
    "pre-norm, learned positions": lambda: LearnedPositions() + Repeat(2, TransformerEncoder(2, causal=True)),
    "post-norm, sinusoidal": lambda: SinusoidalPositions() + 2 * TransformerEncoder(2, causal=True, norm="post"),
    "rotary, grouped heads": lambda: 2 * TransformerEncoder(4, causal=True, rotary=100.0, key_value_heads=2),
    "shared parameters": lambda: Repeat(3, TransformerEncoder(2, causal=True, dropout=0.1), shared=True),
    "recurrent layers": lambda: SimpleRNN(6, sequence=True) + GRU(5, sequence=True) + LSTM(7, sequence=True),
    "attention in a residual": lambda: Residual(Attention(1, causal=True, rotary=10.0, value_size=3)) + Dense(6),
}


def network(body: Any) -> Network:
    trunk = Input(LENGTH, dtype="int32") + Embedding(VOCABULARY, 8)
    return Network.build(trunk + body + Output(VOCABULARY) + SoftmaxCrossEntropy())


class Model:
    """A network with parameters drawn by a seed: predictions for whole sequences, and for one piece after another."""

    def __init__(self, built: Network, lengths: np.ndarray | None = None) -> None:
        self.built = built
        self.arrays = {"inputs": TOKENS} if lengths is None else {"inputs": TOKENS, "lengths": lengths}
        self.sections = {name: Spec(x.shape[1:], "int32") for name, x in self.arrays.items()}
        self.sections["targets"] = Spec((LENGTH,), "int32")
        self.shapes = built.declare(self.sections, "float64", by_name)
        draw = np.random.default_rng(2)
        self.values = {a: draw.normal(size=p.shape) for a, p in self.shapes.parameters.items()}
        self.values |= {a: np.asarray(one.value) for a, one in self.shapes.live.items()}
        self.rewritings: dict[str, Rewriting] = {}

    def whole(self) -> np.ndarray:
        given = {name: symbol(x.shape, "int32") for name, x in self.arrays.items()}
        values = {name: symbol(value.shape, "float64") for name, value in self.values.items()}
        forward = self.built.forward(Trace(by_name, False, None, "float64", values), given)
        run = interpret(Graph((*given.values(), *values.values()), (forward.prediction,)), numpy_namespace())
        return np.asarray(run(*self.arrays.values(), *self.values.values())[0])

    def continued(self, count: int = 1) -> Continued:
        about = self.built, self.shapes, self.sections, "float64", by_name
        return Continued.from_network(*about, ROWS, count, self.rewritings)

    def pieces(self, count: int) -> np.ndarray:
        step = self.continued(count)
        run, values = interpret(step.graph, numpy_namespace()), [self.values[name] for name in step.values]
        memory = [np.zeros(spec.shape, spec.dtype) for spec in step.memory.values()]
        found = []
        for start in range(0, LENGTH - count + 1, count):
            piece = [x[:, start : start + count] if x.ndim > 1 else x for x in self.arrays.values()]
            prediction, *memory = run(*piece, np.asarray(start, np.int32), *values, *memory)
            found.append(prediction)
        return np.concatenate(found, 1)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_entry_by_entry_gives_the_numbers_of_the_whole_sequence(name: str, count: int) -> None:
    model = Model(network(MODELS[name]()))
    found = model.pieces(count)
    np.testing.assert_allclose(found, model.whole()[:, : found.shape[1]], rtol=1e-11, atol=1e-13)


def test_documents_apart_are_continued_as_whole_sequences() -> None:
    tokens = Input(LENGTH, dtype="int32")
    apart = tokens + DocumentMask()
    encoder = TransformerEncoder(2, causal=True, rotary=100.0, mask=apart)
    trunk = tokens + Embedding(VOCABULARY, 8) + encoder
    model = Model(Network.build(trunk + Output(VOCABULARY) + SoftmaxCrossEntropy()))
    assert (TOKENS[:, :-1] == 0).any()
    for count in (1, LENGTH):
        np.testing.assert_allclose(model.pieces(count), model.whole(), rtol=1e-11, atol=1e-13)


def test_a_position_computed_again_forgets_what_it_was() -> None:
    model = Model(network(MODELS["rotary, grouped heads"]()))
    step = model.continued()
    run, values = interpret(step.graph, numpy_namespace()), [model.values[name] for name in step.values]
    memory = [np.zeros(spec.shape, spec.dtype) for spec in step.memory.values()]
    for t, shift in ((0, 0), (1, 0), (2, 1), (3, 2), (2, 0)):  # two tokens that are taken back
        piece = (TOKENS[:, t : t + 1] + shift) % VOCABULARY
        prediction, *memory = run(piece, np.asarray(t, np.int32), *values, *memory)
    np.testing.assert_allclose(prediction[:, 0], model.whole()[:, 2], rtol=1e-11)


def test_padding_of_pieces_is_remembered() -> None:
    tokens = Input(LENGTH, dtype="int32")
    body = Embedding(VOCABULARY, 8) + TransformerEncoder(2, causal=True, mask=tokens)
    model = Model(Network.build(tokens + body + Output(VOCABULARY) + SoftmaxCrossEntropy()))
    assert (TOKENS == 0).any()
    np.testing.assert_allclose(model.pieces(1), model.whole(), rtol=1e-11, atol=1e-13)


def test_sequences_of_different_lengths_are_continued_up_to_their_ends() -> None:
    lengths = Input(section="lengths", dtype="int32")
    body = LSTM(8, sequence=True, lengths=lengths) + TransformerEncoder(2, mask=lengths, causal=True)
    trunk = Input(LENGTH, dtype="int32") + Embedding(VOCABULARY, 8)
    model = Model(Network.build(trunk + body + Output(VOCABULARY) + SoftmaxCrossEntropy()), LENGTHS)
    np.testing.assert_allclose(model.pieces(1), model.whole(), rtol=1e-11, atol=1e-13)
    assert (model.whole() != Model(model.built, LENGTHS + 1).whole()).any()


def test_memory_holds_the_keys_and_values_of_every_layer() -> None:
    step = Model(network(MODELS["shared parameters"]())).continued()
    runs = ("", "(1)", "(2)")  # of one layer
    names = (f"2-repeat.0-transformer_encoder.attention{run}" for run in runs)
    assert [*step.memory] == [f"{name}.{kind}" for name in names for kind in ("keys", "values")]
    assert {spec.shape for spec in step.memory.values()} == {(ROWS, 2, LENGTH, 4)}
    assert step.length == LENGTH


def test_pieces_are_rewritten_as_whole_sequences_are() -> None:
    few, model = (Model(network(MODELS["recurrent layers"]())) for _ in range(2))
    few.rewritings = {"few": QuantisedWeights(3)}
    for name, values in model.values.items():
        if values.ndim > 1:
            unit = np.abs(values).max() / 3.0
            model.values[name] = np.floor(values / unit + 0.5) * unit
    np.testing.assert_allclose(few.pieces(1), model.whole(), rtol=1e-11, atol=1e-13)


def turn(x: Any) -> Any:
    return f.concat(f.narrow(x, 1, 0, 1), x, axis=1)[:, : x.shape[1]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (LSTM(3, sequence=True, direction="reverse"), "2-lstm: LSTM: continues a sequence only in the forward"),
        (Attention(2), "2-attention: attention: continues a sequence only if it is causal"),
        (Flatten() + Dense(LENGTH * 3) + Reshape(LENGTH, 3), "3-dense: matmul.*keep the axis of time"),
        (Function(lambda x: f.mean(x, 1, keepdims=True) + x) + Dense(3), "2-function: computes other values"),
        (Function(turn) + Dense(3), "2-function: computes other values for single entries than for whole sequences"),
    ],
)
def test_layers_that_cannot_continue_a_sequence_are_refused_by_name(body: Any, message: str) -> None:
    with pytest.raises(SigmaNetworkError, match=message):
        Model(network(body)).continued()


def test_sequences_of_different_lengths_are_refused() -> None:
    other = Input(3, 8, section="memory")
    built = Network.build(
        Input(LENGTH, dtype="int32") + Embedding(VOCABULARY, 8) + TransformerDecoder(2, memory=other) + Output(2)
    )
    sections = {"inputs": Spec((LENGTH,), "int32"), "memory": Spec((3, 8))}
    shapes = built.declare(sections, "float32", by_name)
    with pytest.raises(SigmaNetworkError, match=r"sequences of one length.*inputs \(7,\), memory \(3, 8\)"):
        Continued.from_network(built, shapes, sections, "float32", by_name)
