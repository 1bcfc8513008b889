"""Weights that are rounded to a few bits: the suite, values by hand, training, files, and mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from sigma_kernel import Environment, functions as f
from sigma_kernel.contracts import Rewriting
from sigma_kernel.errors import SigmaConfigError, SigmaNetworkError
from sigma_kernel.graph import interpret, numpy_namespace, trace
from sigma_layers import LSTM, Dense, Input, QuantisedWeights, SquaredDifference
from sigma_layers.quantised_weights import quantise
from sigma_optimisers import Adam
from sigma_testing import RewritingSuite

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5], [0.0]], np.float32)).astype(np.float32)


class TestQuantisedWeights(RewritingSuite):
    def make(self) -> Rewriting:
        return QuantisedWeights(bits=3)


def rounded(weights: np.ndarray, bits: int) -> np.ndarray:
    graph = trace(lambda x: quantise(x, bits), weights.shape)
    return np.asarray(interpret(graph, numpy_namespace())(weights.astype(np.float32))[0])


def test_weights_are_whole_multiples_of_the_greatest_one_over_their_number():
    weights = np.array([[0.7, -0.35], [0.05, 0.24]])
    np.testing.assert_allclose(rounded(weights, 4), [[0.7, -0.3], [0.1, 0.2]], rtol=1e-6)  # 0.7 / 7: ties go up
    np.testing.assert_allclose(rounded(weights, 2), [[0.7, 0.0], [0.0, 0.0]], rtol=1e-6, atol=1e-7)
    assert not rounded(np.zeros((2, 2)), 8).any()


def trainer_of(**settings):
    network = settings.pop("network", Input(4) + Dense(5, "tanh") + Dense(1) + SquaredDifference())
    return Environment(folder=None).create_trainer(
        network=network, data=(X, Y), optimiser=Adam(0.05), batch_size=20, backend="numpy", **settings
    )


def test_predictions_are_those_of_rounded_weights_and_parameters_keep_their_bits():
    trainer = trainer_of(rewritings={"few": QuantisedWeights(3)})
    trainer.fit(epochs=60, progress=False)
    arrays = {name.removeprefix("network.layers."): np.asarray(x) for name, x in trainer.parameters().items()}
    weights = [rounded(arrays[f"{name}.weights"], 3) for name in ("1-dense", "2-dense")]
    hidden = np.tanh(X @ weights[0] + arrays["1-dense.biases"])
    np.testing.assert_allclose(trainer.predict(X), hidden @ weights[1] + arrays["2-dense.biases"], rtol=1e-4, atol=1e-5)
    assert len(np.unique(weights[0])) <= 7
    assert len(np.unique(arrays["1-dense.weights"])) > 7
    whole = trainer_of()
    whole.fit(epochs=60, progress=False)
    cut = {name: rounded(np.asarray(x), 3) if name.endswith("weights") else x for name, x in whole.parameters().items()}
    for name, values in cut.items():
        whole.host.set(f"{whole.name}.{name}", values)
    assert trainer.evaluate("training")["loss"] < whole.evaluate("training")["loss"]  # it has learned to do with them


def test_only_layers_that_match_are_rounded():
    some = trainer_of(rewritings={"few": QuantisedWeights(2, match="2-*")})
    none = trainer_of()
    assert not np.array_equal(some.predict(X), none.predict(X))
    arrays = {name.removeprefix("network.layers."): np.asarray(x) for name, x in some.parameters().items()}
    hidden = np.tanh(X @ arrays["1-dense.weights"] + arrays["1-dense.biases"])
    expected = hidden @ rounded(arrays["2-dense.weights"], 2) + arrays["2-dense.biases"]
    np.testing.assert_allclose(some.predict(X), expected, rtol=1e-4, atol=1e-6)


def test_the_weights_of_loops_are_rounded_too():
    series = np.random.default_rng(1).normal(size=(20, 6, 4)).astype(np.float32)
    network = Input(6, 4) + LSTM(5, sequence=False) + Dense(1) + SquaredDifference()
    plain, few = (
        Environment(folder=None).create_trainer(
            network=network, data=(series, series[:, 0, :1]), optimiser=Adam(), backend="numpy", rewritings=chosen
        )
        for chosen in ({}, {"few": QuantisedWeights(4, match="1-*")})
    )
    for name, values in {n: np.asarray(x) for n, x in plain.parameters().items()}.items():
        if values.ndim > 1 and "1-lstm" in name:
            plain.host.set(f"{plain.name}.{name}", rounded(values, 4))
    np.testing.assert_allclose(few.predict(series), plain.predict(series), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("bits", [1, 17, 2.0, True, "8"])
def test_bits_must_be_a_whole_number_in_range(bits):
    with pytest.raises(SigmaNetworkError, match=r"bits: must be a whole number from 2 to 16"):
        QuantisedWeights(bits)


def test_a_rewriting_has_the_name_of_its_kind_and_a_wrong_one_is_told():
    with pytest.raises(SigmaConfigError, match=r"trainer\.rewritings"):
        trainer_of(rewritings={"few": "tanh"}).prepare()


def test_sums_of_parameters_are_left_alone():
    graph = trace(lambda x: f.sum(x), (3,))
    assert QuantisedWeights().replace(graph.outputs[0], graph.outputs[0].inputs, True) is graph.outputs[0]
