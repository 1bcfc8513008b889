"""``recompute = true`` on a layer: the same bits in less memory, on both backends and with all that a run may have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_hooks import SaveCheckpoint
from sigma_kernel import Environment, SigmaConfigError
from sigma_kernel.contracts import Layer
from sigma_kernel.graph import Graph, Node
from sigma_layers import Dense, Input, SquaredDifference
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_step.graphs import prediction_step, training_step

pytestmark = pytest.mark.rooms
RANDOM = np.random.default_rng(0)
FLAT = {"inputs": RANDOM.normal(size=(24, 8)), "targets": RANDOM.normal(size=(24, 2))}
IMAGES = {"inputs": RANDOM.normal(size=(24, 2, 8, 8)), "targets": RANDOM.normal(size=(24, 2))}
SERIES = {"inputs": RANDOM.normal(size=(24, 6, 8)), "targets": RANDOM.normal(size=(24, 2))}
TOKENS = {"inputs": RANDOM.integers(11, size=(24, 6)), "targets": RANDOM.integers(11, size=(24, 6))}
END = "+ flatten() + output(2) + squared_difference()"
BLOCK = 'subnetwork(dense(16, activation="tanh") + dense(8, activation="gelu"), recompute=MARK)'
SMOOTH = 'dense(8, activation="silu"'
NETWORKS = {  # a network, with its data
    "dense": (f"input(8) + 3 * {BLOCK} {END}", FLAT),
    "single layers": (f"input(8) + 3 * {SMOOTH}, recompute=MARK) {END}", FLAT),
    "dropout and noise": (
        f"input(8) + subnetwork(dense(9) + dropout(0.3) + dense(8) + gaussian_noise(0.1), recompute=MARK) {END}",
        FLAT,
    ),
    "batch norm": (
        'input(2, 8, 8) + subnetwork(conv2d(4, 3) + batch_norm() + activation("relu") + max_pool(2) + conv2d(4, 2), '
        f"recompute=MARK) {END}",
        IMAGES,
    ),
    "recurrent": (f"input(6, 8) + lstm(5, sequence=true, recompute=MARK) + gru(4, recompute=MARK) {END}", SERIES),
    "transformer": (
        'input(6, dtype="int32") + embedding(11, 8) + 3 * transformer_encoder(2, causal=true, recompute=MARK)'
        " + layer_norm() + output(11) + softmax_cross_entropy()",
        TOKENS,
    ),
    "dropout of attention": (
        'input(6, dtype="int32") + embedding(11, 8) + repeat(2, transformer_encoder(2, dropout=0.1, recompute=MARK))'
        " + output(11) + softmax_cross_entropy()",
        TOKENS,
    ),
    "shared": (f"input(8) + repeat(3, {SMOOTH}), shared=true, recompute=MARK) {END}", FLAT),
    "inner of a shared layer": (f"input(8) + repeat(3, {SMOOTH}, recompute=MARK), shared=true) {END}", FLAT),
    "nested": (f"input(8) + residual({BLOCK} + {SMOOTH}), recompute=MARK) {END}", FLAT),
    "an output inside": (
        f'x = input(8) + subnetwork({SMOOTH}, name="first") + {SMOOTH}), recompute=MARK)\n'
        f'x + add(x + pick("first")) {END}',
        FLAT,
    ),
    "several costs": (
        f"x = input(8) + {BLOCK}\nx + dense(2) + squared_difference()\n"
        'x + dense(2, activation="tanh") + absolute_difference(weight=0.3)',
        FLAT,
    ),
}
EXPLAINED = """
format = 1
run.backend = "numpy"
data.dataset = "iris"
data.batch_size = 120
[network]
architecture = '''
input(4) + 6 * subnetwork(dense(64, activation="silu") + dense(4), recompute=true)
+ output(3) + softmax_cross_entropy()
'''
[trainer]
optimiser = "adam"
epochs = 1
"""


def train(network: str, data: Mapping[str, np.ndarray], mark: bool, **settings: Any) -> tuple[dict[str, Any], Any]:
    """Return the state after some iterations, by name, and the trainer."""
    data = {name: x.astype("f4" if x.dtype.kind == "f" else "i4") for name, x in data.items()}
    given = {"optimiser": "adam", "batch_size": 8, "backend": "numpy", **settings}
    trainer = Environment("recompute", seed=3).create_trainer(data=data, **given)
    trainer.network = network.replace("MARK", str(mark).lower())
    trainer.fit(epochs=3)
    return {name: trainer.session.host(name) for name in trainer.session.state.arrays}, trainer


def compile_step(trainer: Any) -> tuple[Graph, int]:
    setup = trainer.session.setup
    step, program = setup.programs.get(training_step, setup.feed.batch_size)
    return step.graph, program.peak_bytes


def barriers(graph: Graph) -> int:
    return sum(node.op == "barrier" for node in graph)


def check_equal(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if found[name].tobytes() != wanted[name].tobytes()] == []


@pytest.mark.parametrize("network", NETWORKS)
def test_training_with_values_recomputed_gives_the_same_bits(network: str) -> None:
    (wanted, plain), (found, marked) = (train(*NETWORKS[network], mark) for mark in (False, True))
    check_equal(found, wanted)
    assert barriers(compile_step(plain)[0]) == 0
    assert barriers(compile_step(marked)[0]) > 0


@pytest.mark.parametrize("network", ["dense", "batch norm", "recurrent", "dropout of attention", "an output inside"])
def test_on_numba_too_up_to_the_order_of_sums(network: str) -> None:
    """The compiler adds up the elements of a sum in an order that depends on the loop around it."""
    descent = {"type": "gradient_descent", "learning_rate": 0.01}
    wanted, found = (train(*NETWORKS[network], mark, backend="numba", optimiser=descent)[0] for mark in (False, True))
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": "mixed"},
        {"precision": "float64"},
        {"optimiser": {"type": "momentum", "transforms": {"more": {"type": "accumulate", "batches": 2}}}},
        {"optimiser": {"type": "adam", "settings": {"fixed": {"match": "1-subnetwork.0-dense.*", "frozen": True}}}},
        {"optimiser": "l_bfgs"},
        {"operator": {"type": "local", "shards": 2}},
        {"backend": {"type": "tiered", "first": "numpy", "then": "debug", "start": 4}},
    ],
    ids=["mixed", "float64", "accumulated", "frozen", "line search", "shards", "tiers"],
)
def test_what_else_a_run_may_have_gives_the_same_bits(settings: dict[str, Any]) -> None:
    (wanted, _), (found, marked) = (train(*NETWORKS["dropout and noise"], mark, **settings) for mark in (False, True))
    check_equal(found, wanted)
    assert marked.session.setup.model.network["1-subnetwork"].layer.recompute


@pytest.mark.long_cases("transformer-numba")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("kind", ["dense", "transformer"])
def test_a_step_needs_less_memory(kind: str, backend: str) -> None:
    """Fails as well if copies are merged with what they repeat, or computed before they are needed."""
    tokens, wide = RANDOM.integers(11, size=(16, 64)), {"inputs": np.ones((512, 8)), "targets": np.ones((512, 2))}
    networks = {
        "dense": (f"input(8) + 12 * {BLOCK.replace('16', '64')} {END}", wide, 0.6),
        "transformer": (
            NETWORKS["transformer"][0].replace("input(6", "input(64").replace("3 *", "6 *"),
            {"inputs": tokens, "targets": tokens}, 0.6,
        ),
    }  # fmt: skip
    network, data, share = networks[kind]
    rows = len(data["inputs"]) // 2
    before, after = (
        compile_step(train(network, data, mark, backend=backend, batch_size=rows)[1])[1] for mark in (False, True)
    )
    assert after < share * before


def test_predictions_and_exports_are_of_the_same_graph() -> None:
    graphs = []
    for mark in (False, True):
        _, trainer = train(*NETWORKS["batch norm"], mark)
        graphs.append(prediction_step(trainer.session.setup.model, 8).graph)
    assert graphs[0] == graphs[1]


def test_a_run_resumes_and_replays_and_its_configuration_keeps_the_mark(tmp_path: Path) -> None:
    network = NETWORKS["dropout and noise"][0].replace("MARK", "true")
    data = {name: x.astype("f4") for name, x in FLAT.items()}
    with Environment("kept", folder=tmp_path, seed=5) as sigma:
        sigma.create_trainer(
            network=network, data=data, epochs=3, optimiser="adam", batch_size=8, hooks={"save": SaveCheckpoint(last=9)}
        )
        sigma.run()
        run = sigma.run_folder
    assert run is not None
    assert "recompute=true" in (run / "config.toml").read_text()
    assert main(["resume", str(run), "--quiet", "--epochs", "5"]) == 0
    assert main(["replay", str(run), "--check", "--quiet"]) == 0
    assert load(run, checkpoint="newest").checkpoint.values["clock"]["epoch"] == 5


def test_explain_says_what_a_step_needs_with_and_without(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "explained.toml"
    path.write_text(EXPLAINED)
    assert main(["explain", str(path), "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["trainers"]["trainer"]["memory"]
    assert memory["recomputed"] == [f"{i}-subnetwork" for i in range(1, 7)]
    assert 0 < memory["peak_bytes"] < 0.8 * memory["peak_bytes_without"]
    assert main(["explain", str(path)]) == 0
    text = capsys.readouterr().out
    assert (
        " without recompute = true, which 1-subnetwork, 2-subnetwork, 3-subnetwork, 4-subnetwork and 2 more set" in text
    )
    path.write_text(EXPLAINED.replace(", recompute=true", ""))
    assert main(["explain", str(path)]) == 0
    assert "recompute" not in capsys.readouterr().out


def test_a_run_of_recomputed_layers_agrees_with_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "verified.toml"
    path.write_text(EXPLAINED.replace('backend = "numpy"', 'backend = "numba"\nrun.verify = "1 iteration"'))
    assert main(["run", str(path), "--set", f"run.folder='{tmp_path}'", "--quiet"]) == 0


def test_a_mark_inside_a_loop_has_no_effect_as_its_gradient_recomputes_each_step() -> None:
    network, data = f"input(6, 8) + lstm(5) {END}", SERIES
    wanted, trainer = train(network, data, False)
    assert wanted
    assert barriers(compile_step(trainer)[0]) == 0


def test_the_text_form_and_the_python_form_have_the_setting() -> None:
    layer = Dense(8, recompute=True)
    assert str(layer) == "dense(8, recompute=true)"
    assert str(Dense(8)) == "dense(8)"
    assert str(2 * layer) == "2 * dense(8, recompute=true)"


def test_another_value_than_true_or_false_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match=r"recompute: must be true or false \(got 'yes'\)"):
        Dense(8, recompute="yes")  # type: ignore[arg-type]


def test_a_layer_of_ones_own_takes_the_setting() -> None:
    class Twice(Layer):
        def forward(self, context: Any, x: Node) -> Node:
            return x * x * 2.0

    data = {name: x.astype("f4") for name, x in FLAT.items()}
    trainer = Environment("own", seed=1).create_trainer(data=data, batch_size=8, backend="numpy", optimiser="adam")
    trainer.network = Input(8) + Dense(4) + Twice(recompute=True) + Dense(2) + SquaredDifference()
    trainer.fit(epochs=1)
    assert barriers(compile_step(trainer)[0]) >= 0
