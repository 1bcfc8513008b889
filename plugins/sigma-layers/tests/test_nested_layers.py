"""Residual, Repeat, Subnetwork and Pick: networks inside of layers, and layers with several outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import Environment, Network, functions as f
from sigma_kernel.contracts import Architecture, Context, Layer, Outputs
from sigma_kernel.errors import SigmaComponentError, SigmaError, SigmaNetworkError
from sigma_kernel.graph import Node, Spec
from sigma_layers import (
    Concat,
    Dense,
    Dropout,
    Input,
    Pick,
    Repeat,
    Residual,
    SquaredDifference,
    Subnetwork,
)
from sigma_run import load
from sigma_testing import LayerSuite, by_name, trace_layer

X = np.random.default_rng(0).normal(size=(20, 4))
DATA = {"inputs": X, "targets": X[:, :2] * 2, "other": X[:, :1]}


class TestResidual(LayerSuite):
    def make(self) -> Layer:
        return Residual(Dense(6, activation="tanh") + Dense(4))


class TestResidualWithAProjection(LayerSuite):
    inputs = (Spec((3, 4)),)

    def make(self) -> Layer:
        return Residual(Dense(5, activation="tanh"), projection=Dense(5, bias=False))


class TestRepeat(LayerSuite):
    def make(self) -> Layer:
        return Repeat(3, Dense(5, activation="tanh") + Dense(4))


class TestRepeatShared(LayerSuite):
    def make(self) -> Layer:
        return Repeat(3, Dense(4, activation="tanh"), shared=True)


class TestBlock(LayerSuite):
    def make(self) -> Layer:
        start = Dense(5, activation="tanh")
        return Subnetwork(Concat(start + Dense(2), start + Dense(3) + Dropout(0.25)))


class TestPart(LayerSuite):
    def make(self) -> Layer:
        return Pick("last")


@define(eq=False)
class Split(Layer):
    """Return two halves, and their sum as a further output."""

    def forward(self, context: Context, x: Node) -> Outputs:
        left, right = f.split(x, 2)
        return Outputs(left, others={"right": right, "sum": left + right})


def declared(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    shapes = Network.build(architecture).declare({"inputs": Spec((4,))}, "float64", by_name)
    return {address: parameter.shape for address, parameter in shapes.parameters.items()}


def prepared(text: str) -> Any:
    trainer = Environment().create_trainer(network=text, data=DATA, optimiser="adam", epochs=1)
    trainer.prepare()
    return trainer


def run(layer: Layer, x: np.ndarray = X) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the value of a layer, and its parameters."""
    it = trace_layer(layer, [Spec(x.shape, "float64")], training=False)
    values = it.values([x])
    return it.run(values)[0], dict(zip((name.removeprefix("0-it.") for name in it.names), values, strict=True))


def affine(x: np.ndarray, p: dict[str, np.ndarray], name: str) -> np.ndarray:
    return np.asarray(x @ p[f"{name}.weights"] + p[f"{name}.biases"])


# -- values ------------------------------------------------------------------------------------------------------------
def test_a_residual_adds_its_input_to_what_the_chain_makes_of_it() -> None:
    value, p = run(Residual(Dense(8) + Dense(4)))
    np.testing.assert_allclose(value, X + affine(affine(X, p, "body.0-dense"), p, "body.1-dense"), rtol=1e-12)
    value, p = run(Residual(Dense(3), projection=Dense(3, bias=False)))
    np.testing.assert_allclose(value, X @ p["projection.weights"] + affine(X, p, "body"), rtol=1e-12)


def test_repeat_runs_a_chain_with_parameters_of_its_own_each_time_or_the_same() -> None:
    value, p = run(Repeat(2, Dense(4)))
    np.testing.assert_allclose(value, affine(affine(X, p, "0"), p, "1"), rtol=1e-12)
    assert set(p) == {"input 0", "0.weights", "0.biases", "1.weights", "1.biases"}
    value, p = run(Repeat(3, Dense(4), shared=True))
    np.testing.assert_allclose(value, affine(affine(affine(X, p, "0-dense"), p, "0-dense"), p, "0-dense"), rtol=1e-12)
    assert set(p) == {"input 0", "0-dense.weights", "0-dense.biases"}


def test_a_block_runs_branches_and_gives_its_inputs_to_every_layer_without_a_source() -> None:
    start = Dense(5, name="start")
    value, p = run(Subnetwork(Concat(start + Dense(2, name="a"), Dense(3, name="b"))))
    expected = [affine(affine(X, p, "start"), p, "a"), affine(X, p, "b")]
    np.testing.assert_allclose(value, np.concatenate(expected, 1), rtol=1e-12)
    assert declared(Input(4) + Subnetwork(start + Dense(2, name="a"), name="head")) == {
        "head.start.weights": (4, 5), "head.start.biases": (5,), "head.a.weights": (5, 2), "head.a.biases": (2,),
    }  # fmt: skip


def test_other_outputs_are_read_by_name_and_linked_separately() -> None:
    split = Input(4) + Split(name="split")
    network = Network.build(Concat(split + Pick("right"), split, split + Pick("sum") + Dense(3)))
    shapes = network.declare({"inputs": Spec((4,))}, "float64", by_name)
    assert shapes.outputs["split"].shape == shapes.outputs["2-pick"].shape == (2,)
    assert network["5-concat"].sources == ("2-pick", "split", "4-dense")
    value, _ = run(Subnetwork(Split(name="s") + Pick("right")))
    np.testing.assert_array_equal(value, X[:, 2:])
    value, p = run(Subnetwork(Residual(Dense(4) + Dense(4), name="r") + Pick("body.0-dense")))
    np.testing.assert_allclose(value, affine(X, p, "r.body.0-dense"), rtol=1e-12)


def test_several_outputs_of_a_layer_have_costs_of_their_own() -> None:
    text = """
        x1 = input(4) + subnetwork(dense(3, name="code") + dense(2), name="model")
        x1 + output() + squared_difference()
        x1 + pick("code") + output(4) + squared_difference(targets="inputs")
    """
    with Environment() as sigma:
        trainer = sigma.create_trainer(network=text, data=DATA, optimiser="adam")
        trainer.fit(epochs=2)
        assert [x.shape for x in trainer.predict(X).values()] == [(20, 2), (20, 4)]


# -- text, addresses ---------------------------------------------------------------------------------------------------
NESTED = (
    'input(4) + residual(dense(8, activation="relu") + dense(4)) + repeat(2, chain=residual(dense(4)), shared=true)'
    ' + 2 * subnetwork(dense(4, name="a") + dropout(0.25), name="block-#") + output(2) + squared_difference()'
)
BRANCHED = """x1 = dense(5)
x2 = input(4) + subnetwork(concat(x1 + dense(2), x1), name="wide")
x2 + pick("0-dense") + output(2) + squared_difference()
x2 + output(1) + squared_difference(targets="other")"""


@pytest.mark.parametrize(
    "text",
    [NESTED, BRANCHED, "input(4) + residual(2 * dense(3), projection=dense(3)) + output(2) + squared_difference()"],
)
def test_the_text_form_of_nested_layers_round_trips(text: str) -> None:
    assert str(prepared(text).session.setup.model.network) == text


def test_nested_parameters_are_frozen_optimised_initialised_and_kept_by_address(tmp_path: Path) -> None:
    inner = "network.layers.1-residual.body.0-dense.weights"
    with Environment("nested", folder=tmp_path, seed=3) as sigma:
        trainer = sigma.create_trainer(network=NESTED, data=DATA, epochs=2, batch_size=5)
        trainer.optimisers = {
            "inner": {"type": "gradient_descent", "learning_rate": 0.0, "match": "1-residual.**"},
            "blocks": {"type": "adam", "match": "block-*.**"},
            "rest": {"type": "adam", "match": "*t*.**"},
        }
        trainer.initialisers = {"ones": ("**.body.0-dense.weights", {"type": "constant", "value": 1.0})}
        sigma.run()
        np.testing.assert_array_equal(trainer.session.host(inner), np.ones((4, 8)))
        sigma.set("trainer.optimisers.blocks.block-3.a.weights.frozen", True)
        before = trainer.session.host("network.layers.block-3.a.weights").copy()
        moved = trainer.session.host("network.layers.block-4.a.weights").copy()
        trainer.fit(epochs=1)
        np.testing.assert_array_equal(trainer.session.host("network.layers.block-3.a.weights"), before)
        assert (trainer.session.host("network.layers.block-4.a.weights") != moved).all()
        sigma.set("trainer.network.layers.block-3.1-dropout.rate", 0.5)
        expected = trainer.predict(X)
        trainer.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), expected)
    assert load(sigma.run_folder).predict(X).shape == (20, 2)


def test_a_summary_and_explain_count_what_is_inside(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = str(prepared(NESTED).summary())
    assert any(line.split()[:3] == ["1-residual", "4", "76"] for line in table.splitlines()), table
    assert any(line.split()[:3] == ["2-repeat", "4", "20"] for line in table.splitlines()), table


def test_a_nested_parameter_is_shared_by_its_address() -> None:
    chain = Input(4) + Subnetwork(Dense(4, name="own"), name="a")
    chain = chain + Residual(Dense(4, name="own", share={"weights": "a.own.weights"}), name="b")
    assert set(declared(chain)) == {"a.own.weights", "a.own.biases", "b.body.biases"}


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (
            Dense(5, name="a") + Dense(4, name="b", share={"weights": "a.weights"}),
            r"^b: share: b.weights has shape \(5, 4\), a.weights has \(4, 5\)\. Share only parameters of equal s",
        ),
        (
            Dense(4, name="b", share={"weights": "a.weights"}) + Dense(5, name="a"),
            r"^a: share: a.weights has shape \(4, 5\), b.weights has \(4, 4\)\. Share only",
        ),
    ],
)
def test_shared_parameters_of_other_shapes_are_told_before_a_layer_computes_with_them(
    chain: Architecture, message: str
) -> None:
    with pytest.raises(SigmaNetworkError, match=message):
        declared(Input(4) + chain)


def test_the_layers_of_all_runs_count_as_layers_of_the_network() -> None:
    many = Repeat(5000, Repeat(5000, Dense(4), shared=True), shared=True)
    with pytest.raises(SigmaNetworkError, match=r"10,000 layers at most \(got 25,005,002\)\. Make fewer copies\."):
        Network.build(Input(4) + many)
    with pytest.raises(SigmaNetworkError, match=r"got 20,020"):
        20 * Repeat(1000, Dense(4))


def test_copies_of_nested_layers_have_parameters_of_their_own() -> None:
    assert set(declared(Input(4) + 2 * Residual(Dense(4, bias=False)))) == {
        "1-residual.body.weights", "2-residual.body.weights",
    }  # fmt: skip


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Residual(3), "Residual.chain: must be a layer or a chain of layers"),
        (lambda: Residual(Dense(3), 4), "Residual.projection: must be a layer or a chain"),
        (lambda: Repeat(0, Dense(3)), "Repeat.times: must be a whole number of at least 1"),
        (lambda: Subnetwork("dense"), "Subnetwork.chain: must be a layer or a chain"),
        (lambda: Pick(""), "Pick.output: must be the name of an output"),
    ],
)
def test_a_wrong_setting_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SigmaError, match=message):
        make()


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Residual(Dense(8)), r"1-residual: residual\(\(4,\)\): \(4,\) and \(8,\), the chain's output.*projection="),
        (
            Subnetwork(Dense(3) + SquaredDifference()),
            "1-subnetwork: 1-squared_difference: a layer cannot own input or cost",
        ),
        (Subnetwork(Dense(3, name="a")) + Pick("b"), "2-pick: 1-subnetwork has no output 'b'. It has a"),
        (Dense(3) + Pick("b"), "2-pick: 1-dense has no output 'b'. It has none"),
        (
            Repeat(2, Dense(3), shared=True),
            r"0-dense.weights: is used with shapes \(4, 3\) and \(3, 3\). .* a chain that keeps the shape of its i",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_layers_name(layer: Architecture, message: str) -> None:
    with pytest.raises(SigmaNetworkError, match=message):
        declared(Input(4) + layer)


def test_a_further_output_must_be_a_node() -> None:
    @define(eq=False)
    class Wrong(Layer):
        def forward(self, context: Context, x: Node) -> Outputs:
            return Outputs(x, others={"count": 3})  # type: ignore[dict-item]

    with pytest.raises(SigmaComponentError, match="its output 'count' must be a node"):
        declared(Input(4) + Wrong())


def test_nested_layers_train_to_the_same_numbers_on_the_compiled_backend() -> None:
    results = []
    for backend in ("numpy", "numba"):
        with Environment(precision="float64", seed=1) as sigma:
            trainer = sigma.create_trainer(network=NESTED, data=DATA, optimiser="adam", backend=backend)
            trainer.fit(epochs=2)
            results.append(trainer.predict(X))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9)
