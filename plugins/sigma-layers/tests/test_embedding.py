"""Embedding, and positions: values, padding, indices out of range, rotations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sigma_kernel import Environment, Network, functions as f
from sigma_kernel.contracts import Context, Layer, Parameter
from sigma_kernel.errors import SigmaDataError, SigmaError, SigmaNetworkError
from sigma_kernel.graph import Graph, Node, Spec, gradient, interpret, numpy_namespace
from sigma_layers import (
    Add,
    Dense,
    Embedding,
    Flatten,
    Input,
    LearnedPositions,
    Output,
    SinusoidalPositions,
    SquaredDifference,
    Subnetwork,
)
from sigma_layers.positions import rotate_pairs
from sigma_run import load
from sigma_testing import LayerSuite, by_name, trace_layer

TOKENS = np.array([[1, 0, 2], [2, 2, 0]], np.int32)
VECTORS = np.arange(6.0).reshape(3, 2) + 1


class TestEmbedding(LayerSuite):
    inputs = (Spec((4,), "int32"),)

    def make(self) -> Layer:
        return Embedding(3, 5, padding=1)


class TestSinusoidalPositions(LayerSuite):
    inputs = (Spec((5, 4)),)

    def make(self) -> Layer:
        return SinusoidalPositions()


class TestLearnedPositions(LayerSuite):
    inputs = (Spec((5, 4)),)

    def make(self) -> Layer:
        return LearnedPositions()


class Turned(Layer):
    """Rotate the features of a sequence."""

    def forward(self, context: Context, x: Node) -> Node:
        return rotate_pairs(context, x, 100.0)


# -- embedding ---------------------------------------------------------------------------------------------------------
def test_an_embedding_takes_rows_and_that_of_the_padding_is_zero() -> None:
    it = trace_layer(Embedding(3, 2), [Spec((2, 3), "int32")], training=True)
    np.testing.assert_array_equal(it.run([TOKENS, VECTORS])[0], VECTORS[TOKENS])
    it = trace_layer(Embedding(3, 2, padding=2), [Spec((2, 3), "int32")], training=True)
    np.testing.assert_array_equal(it.run([TOKENS, VECTORS])[0], (VECTORS * [[1], [1], [0]])[TOKENS])


def test_the_padding_gets_no_gradient_and_others_that_of_each_use() -> None:
    it = trace_layer(Embedding(3, 2, padding=2), [Spec((2, 3), "int32")], training=True)
    slopes = gradient(f.sum(it.output), [it.graph.inputs[1]])
    (flow,) = interpret(Graph(it.graph.inputs, slopes), numpy_namespace())(TOKENS, VECTORS)
    np.testing.assert_array_equal(flow, [[2, 2], [1, 1], [0, 0]])


def training(tokens: Any, *layers: Any, **settings: Any) -> Any:
    network = Input(3, dtype="int32") + layers[0]
    for layer in layers[1:]:
        network = network + layer
    network = network + Flatten() + Output(1) + SquaredDifference()
    data = {"inputs": tokens, "targets": np.ones((len(tokens), 1))}
    return Environment(seed=2).create_trainer(network=network, data=data, **{"optimiser": "adam", **settings})


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_padding_begins_and_stays_at_zero(backend: str) -> None:
    trainer = training(np.tile(TOKENS, (5, 1)), Embedding(3, 2, padding=2, name="words"), backend=backend)
    trainer.prepare()
    before = trainer.session.host("network.layers.words.weights").copy()
    assert not before[2].any()
    trainer.fit(epochs=3)
    after = trainer.session.host("network.layers.words.weights")
    assert not after[2].any()
    assert (after[:2] != before[:2]).all()


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(
    "settings",
    [
        {"initialisers": {"all": {"match": "**.weights", "type": "he_normal"}}},
        {"optimiser": {"type": "adam", "modifiers": {"c": {"type": "clip", "low": 0.1, "high": 1.0}}}},
        {"optimiser": {"type": "adamw", "weight_decay": 0.5}},
    ],
    ids=["initialiser", "modifier", "decay"],
)
def test_nothing_fills_the_vector_of_the_padding(settings: dict[str, Any], backend: str) -> None:
    layer, data = Embedding(3, 2, padding=2, name="words"), np.tile(TOKENS, (5, 1))
    trainer = training(data, layer, backend=backend, **settings)
    trainer.fit(epochs=2)
    found = trainer.session.host("network.layers.words.weights")
    assert not found[2].any()
    assert found[:2].all()


def test_the_vector_of_the_padding_stays_zero_when_weights_are_set() -> None:
    with Environment("padded", seed=2) as sigma:
        network = Input(3, dtype="int32") + Embedding(3, 2, padding=1, name="words") + Flatten() + Output(1)
        data = {"inputs": np.tile(TOKENS, (5, 1)), "targets": np.ones((5 * len(TOKENS), 1))}
        trainer = sigma.create_trainer(network=network + SquaredDifference(), data=data, optimiser="adam")
        trainer.prepare()
        sigma.set("trainer.network.layers.words.weights", np.full((3, 2), 4.0))
        np.testing.assert_array_equal(sigma.get("trainer.network.layers.words.weights"), [[4, 4], [0, 0], [4, 4]])


@pytest.mark.parametrize("rows", [{3: 0.0}, {-1: 0.0}, {0: np.nan}, {"a": 0.0}])
def test_fixed_rows_are_finite_numbers_by_index(rows: Any) -> None:
    with pytest.raises(SigmaNetworkError, match=r"Parameter.fixed_rows: must hold finite numbers by index"):
        Parameter((3, 2), fixed_rows=rows)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([[0, 1, 2], [0, 3, 1]], r"data: section 'inputs', row 1: 3 is not an index from 0 to 2\. .* holds 0 to 3"),
        ([[0, 1, -1]], r"row 0: -1 is not an index from 0 to 2"),
        ([[0, 1.5, 1.0]], r"row 0: 1.5 is not an index from 0 to 2"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_data_with_an_index_out_of_range_is_refused_with_its_row(tokens: Any, message: str, nested: bool) -> None:
    layer = Embedding(3, 2)
    with pytest.raises(SigmaDataError, match=message):
        training(np.array(tokens), Subnetwork(layer + Dense(2)) if nested else layer).fit(epochs=1)


def test_samples_with_an_index_out_of_range_are_refused(tmp_path: Any) -> None:
    trainer = training(TOKENS, Embedding(3, 2))
    trainer.fit(epochs=1)
    trainer.save(tmp_path / "model")
    for model in (trainer, load(tmp_path / "model")):
        with pytest.raises(SigmaDataError, match="predict: section 'inputs', row 1: 7 is not an index from 0 to 2"):
            model.predict([[0, 1, 2], [7, 1, 1]])


def test_of_several_embeddings_the_smallest_vocabulary_counts() -> None:
    tokens = Input(3, dtype="int32")
    network = Network.build(Add(tokens + Embedding(4, 2), tokens + Embedding(3, 2), tokens + Embedding(9, 2)))
    assert network.declare({"inputs": Spec((3,), "int32")}, "float32", by_name).indices == {"inputs": 3}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Embedding(0, 3), "Embedding.vocabulary: must be a whole number of at least 1"),
        (lambda: Embedding(3, 0), "Embedding.units: must be a whole number of at least 1"),
        (lambda: Embedding(3, 2, padding=-1), "Embedding.padding: must be a whole number of at least 0"),
        (lambda: Embedding(3, 2, padding=3), r"Embedding.padding: 3 is not an index below 3 \(vocabulary\)"),
        (lambda: LearnedPositions(0), "LearnedPositions.length: must be a whole number of at least 1"),
        (lambda: SinusoidalPositions(0), "SinusoidalPositions.base: must be more than 0"),
    ],
)
def test_a_wrong_setting_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=message):
        make()


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Input(3) + Embedding(3, 2), r'embedding: takes indices \(got float32\)\. Write Input\(3, dtype="int32"\)'),
        (Input() + Embedding(3, 2), r'Write Input\(dtype="int32"\) before it'),
        (Input(3) + SinusoidalPositions(), r"sinusoidal_positions\(\(3,\)\): a sample must be a sequence"),
        (Input(3) + LearnedPositions(), r"learned_positions\(\(3,\)\): a sample must be a sequence"),
        (Input(3) + Dense(4) + Embedding(3, 2), "2-embedding: embedding: takes indices"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(network: Any, message: str) -> None:
    shape = next(iter(Network.build(network).inputs)).layer.shape
    with pytest.raises(SigmaNetworkError, match=message):
        Network.build(network).declare({"inputs": Spec(shape)}, "float32", by_name)


def test_a_sequence_longer_than_its_positions_is_refused() -> None:
    with pytest.raises(SigmaNetworkError, match="a sequence of 5 exceeds 4 positions. Choose a greater"):
        trace_layer(LearnedPositions(4), [Spec((2, 5, 3))], training=True)


# -- positions ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("features", [4, 5])
def test_sinusoidal_positions_are_sines_and_cosines_of_falling_frequencies(features: int) -> None:
    it = trace_layer(SinusoidalPositions(base=50.0), [Spec((1, 6, features), "float64")], training=True)
    found = it.run([np.zeros((1, 6, features))])[0][0]
    for t, row in enumerate(found):
        for i, value in enumerate(row):
            angle = t / 50.0 ** (2 * (i // 2) / features)
            assert value == pytest.approx(np.cos(angle) if i % 2 else np.sin(angle), abs=1e-15)


def test_learned_positions_are_added_from_the_first_on() -> None:
    it = trace_layer(LearnedPositions(7), [Spec((2, 3, 2), "float64")], training=True)
    x, table = np.ones((2, 3, 2)), np.arange(14.0).reshape(7, 2)
    np.testing.assert_array_equal(it.run([x, table])[0], x + table[:3])


def turned(x: np.ndarray) -> np.ndarray:
    it = trace_layer(Turned(), [Spec((1, *x.shape), "float64")], training=True)
    return it.run([x[None]])[0][0]


def test_rotary_positions_turn_each_pair_by_an_angle_that_grows_with_the_position() -> None:
    x = np.random.default_rng(0).normal(size=(5, 6))
    pairs = x[:, ::2] + 1j * x[:, 1::2]
    angles = np.arange(5)[:, None] * 100.0 ** (-np.arange(0, 6, 2) / 6)
    expected = pairs * np.exp(1j * angles)
    found = turned(x)
    assert_allclose(found[:, ::2] + 1j * found[:, 1::2], expected, rtol=1e-12)
    assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(x, axis=1), rtol=1e-12)


def test_products_of_turned_vectors_depend_on_their_distance_alone() -> None:
    q, k = np.random.default_rng(0).normal(size=(2, 6))
    left, right = turned(np.tile(q, (8, 1))), turned(np.tile(k, (8, 1)))
    products = left @ right.T
    for distance in range(-7, 8):
        diagonal = np.diagonal(products, distance)
        assert_allclose(diagonal, diagonal[0], rtol=1e-10)
    assert len(np.unique(products.round(9))) == 15
