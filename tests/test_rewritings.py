"""Rewritings of a network's graph: in files, workers, shards, resumes, replays and exports, and what refuses them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from attrs import define

from sigma_kernel import Environment, Node, Rewriting, functions as f
from sigma_kernel.errors import SigmaComponentError, SigmaConfigError
from sigma_kernel.graph import symbol, with_inputs
from sigma_layers import Dense, Dropout, Input, QuantisedWeights, Residual, SquaredDifference
from sigma_optimisers import LBFGS, GradientDescent
from sigma_run import from_file, load
from sigma_run.launcher.group import main

pytestmark = pytest.mark.rooms
X = np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)
Y = X[:, :2].copy()
FILE = """
format = 1
[run]
seed = 3
[data]
dataset = "iris"
batch_size = 30
[network]
architecture = "input(4) + dense(6, 'tanh') + output(3) + softmax_cross_entropy()"
[network.rewritings.few]
type = "quantised_weights"
bits = 3
[trainer]
optimiser = "adam"
epochs = 2
"""


@define(eq=False)
class Sines(Rewriting):
    """Replace hyperbolic tangents."""

    def replace(self, node: Node, inputs: tuple[Node, ...], training: bool) -> Node:
        return f.sin(inputs[0]) if node.op == "tanh" else with_inputs(node, inputs)


@define(eq=False)
class Wrong(Rewriting):
    """Return something else than a node of the same form."""

    what: Any = None

    def replace(self, node: Node, inputs: tuple[Node, ...], training: bool) -> Node:
        return self.what(with_inputs(node, inputs))  # type: ignore[no-any-return]


def network(activation="tanh", **settings):
    inner = Residual(Dense(4, activation, **settings))
    return Input(4) + Dense(4, activation) + inner + Dropout(0.2) + Dense(2) + SquaredDifference()


def trainer(activation="tanh", optimiser=None, settings=None, **others):
    return Environment(folder=None).create_trainer(
        network=network(activation, **(settings or {})), data=(X, Y), optimiser=optimiser or GradientDescent(0.1),
        batch_size=8, backend="numpy", **others,
    )  # fmt: skip


def outcome(trained, epochs=3):
    trained.fit(epochs=epochs, progress=False)
    return {name: np.asarray(x).tobytes() for name, x in trained.parameters().items()}


@pytest.mark.parametrize("optimiser", [GradientDescent(0.1), LBFGS()], ids=["once", "at other values"])
def test_a_network_trains_as_the_one_that_it_is_rewritten_to(optimiser):
    sines = trainer(f.sin, optimiser)
    rewritten = trainer("tanh", optimiser, rewritings=[Sines()])
    np.testing.assert_array_equal(rewritten.predict(X), sines.predict(X))
    assert outcome(rewritten) == outcome(sines)
    assert rewritten.evaluate("training") == sines.evaluate("training")


def test_layers_that_are_recomputed_are_rewritten_too():
    kept, again = (trainer(settings={"recompute": flag}, rewritings=[Sines()]) for flag in (False, True))
    assert outcome(kept) == outcome(again) == outcome(trainer(f.sin))


@pytest.mark.long_cases("processes")
@pytest.mark.parametrize("kind", ["local", "processes"])
def test_workers_rewrite_alike(kind):
    chosen = {"few": QuantisedWeights(3)}
    shards = trainer(rewritings=chosen, operator={"type": "default:operator", "shards": 2})
    workers = trainer(rewritings=chosen, operator={"type": kind, "workers": 2, "shards": 2})
    assert outcome(workers, 1) == outcome(shards, 1)


def test_several_apply_one_after_the_other():
    twice = trainer(rewritings={"sines": Sines(), "few": QuantisedWeights(4)})
    np.testing.assert_array_equal(twice.predict(X), trainer(f.sin, rewritings=[QuantisedWeights(4)]).predict(X))


def test_a_file_names_them_and_a_resume_a_replay_and_an_export_have_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(FILE)
    assert main(["run", "run.toml", "--quiet", "--json"]) == 0
    folder = json.loads(capsys.readouterr().out)["folder"]
    assert any("quantised_weights" in path.read_text() for path in (tmp_path / folder).glob("*.toml"))
    assert main(["replay", folder, "--check", "--quiet"]) == 0
    assert main(["explain", "run.toml"]) == 0
    assert "its graph is rewritten by few (QuantisedWeights), before" in capsys.readouterr().out
    assert main(["resume", folder, "--epochs", "3", "--quiet"]) == 0
    trained = load(folder)
    weights = trained.parameters()["network.layers.1-dense.weights"]
    assert np.unique(np.asarray(weights)).size > 7
    assert "floor" in {node.op for node in trained.inference().step(1).graph}


def test_a_trainer_from_python_writes_its_rewritings_into_the_run_folder(tmp_path):
    environment = Environment(folder=tmp_path)
    own = environment.create_trainer(
        network=network(), data=(X, Y), optimiser=GradientDescent(0.1), batch_size=8, backend="numpy",
        rewritings={"few": QuantisedWeights(2, match="*<dense>")},
    )  # fmt: skip
    own.fit(epochs=1, progress=False)
    np.testing.assert_array_equal(load(environment.run_folder).predict(X), own.predict(X))


MISTAKES = {
    "rows": (lambda node: node[:1], "must return float32 of shape .* in place of 'tanh'"),
    "dtype": (lambda node: f.cast(node, "float64"), "must return float32 of shape .* in place of 'tanh'"),
    "nothing": (lambda node: None, "must return a node .got NoneType"),
    "input": (lambda node: node * symbol((), node.dtype, "rate"), "must read inputs of the network alone"),
}


@pytest.mark.parametrize(("what", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_does_not_fit_is_refused_before_training(what, message):
    wrong = Wrong(lambda node: what(node) if node.op == "tanh" else node)
    with pytest.raises(SigmaComponentError, match=rf"rewriting 'wrong' .*: replace\(\) {message}"):
        trainer(rewritings={"wrong": wrong}).fit(epochs=1, progress=False)


def test_a_name_of_another_kind_is_told_with_its_place(tmp_path):
    (tmp_path / "run.toml").write_text(FILE.replace("quantised_weights", "dense"))
    with pytest.raises(SigmaConfigError, match=r"network\.rewritings\.few"):
        from_file(tmp_path / "run.toml")
