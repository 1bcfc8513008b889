"""From a run folder to predictions: ``load``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sigma_data import Digits, Standardise
from sigma_kernel import SigmaCheckpointError, SigmaConfigError, SigmaDataError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_layers import Dropout
from sigma_run import load
from sigma_run.config import build, load as read
from sigma_store.checkpoints import store as checkpoint

DIGITS = """
format = 1

[run]
name = "small"

[data]
dataset = "digits"
batch_size = 50
preprocessors.scale = "standardise"

[network]
architecture = 'input(8, 8) + flatten() + dense(16, activation="relu") + output(10) + softmax_cross_entropy()'

[trainer]
optimiser = "adam"

[hooks.score]
type = "accuracy"

[hooks.save]
type = "checkpoint"
every = "1 epoch"

[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""
XOR = """
[trainers.{name}.data]
dataset = "xor"
[trainers.{name}.network]
architecture = 'input(2) + dense(8, activation="tanh") + output(2) + softmax_cross_entropy()'
[trainers.{name}]
optimiser = "adam"
[trainers.{name}.hooks.finish]
type = "stop"
when = "epoch reaches 3"
"""


def ran(text, folder):
    """Return the run folder of a configuration, and a function that predicts with the trainer itself."""
    environment = build(read(text), catalogue(), folder)
    environment.run()
    environment.close()
    return environment


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return ran(DIGITS, tmp_path_factory.mktemp("runs"))


@pytest.fixture
def run(digits, tmp_path):
    """Return a copy of the run folder, to be damaged."""
    return Path(shutil.copytree(digits.run_folder, tmp_path / "run"))


def images():
    return Digits()["validation"].block(0)["inputs"]


def test_predictions_from_a_run_folder_equal_the_trainers_bit_for_bit(digits):
    model = load(digits.run_folder)
    assert np.array_equal(model.predict(images()), digits.trainer("trainer").predict(images()))
    assert np.array_equal(model.predict({"inputs": images()}), model.predict(images()))
    whole = (images() * 16).astype(np.uint8)
    assert np.array_equal(model.predict(whole), digits.trainer("trainer").predict(whole))


def test_predictions_agree_with_numpy_on_the_parameters(digits):
    model = load(str(digits.run_folder))
    p = {address.removeprefix("network.layers."): v for address, v in model.parameters().items()}
    seen = Digits()["training"].block(0)["inputs"].reshape(-1, 64).astype(np.float64)
    deviation = seen.std(axis=0)
    x = (images().reshape(-1, 64) - seen.mean(axis=0)) / np.where(deviation, deviation, 1)
    hidden = np.maximum(x @ p["2-dense.weights"] + p["2-dense.biases"], 0)
    scores = np.exp(hidden @ p["3-output.weights"] + p["3-output.biases"])
    assert np.allclose(model.predict(images()), scores / scores.sum(axis=1, keepdims=True), atol=1e-5)


def test_predictions_use_the_live_settings_of_layers_as_they_were_set(tmp_path, monkeypatch):
    monkeypatch.setattr(Dropout, "forward", lambda self, context, x: x * context.live["rate"])
    text = "format = 1\n" + XOR.format(name="a").replace("+ output", "+ dropout(0.5) + output")
    cases = np.array([[0.0, 0.0], [1.0, 0.0]])
    with build(read(text), catalogue(), tmp_path) as environment:
        environment.prepare()
        environment.set("**.rate", 0.25)
        environment.run()
        expected = environment.trainer("a").predict(cases)
    model = load(environment.run_folder)
    assert np.array_equal(model.predict(cases), expected)
    p = {address.removeprefix("network.layers."): v for address, v in model.parameters().items()}
    hidden = 0.25 * np.tanh(cases @ p["1-dense.weights"] + p["1-dense.biases"])
    scores = np.exp(hidden @ p["3-output.weights"] + p["3-output.biases"])
    assert np.allclose(expected, scores / scores.sum(axis=1, keepdims=True), atol=1e-5)


def test_predicting_reads_no_training_data(digits, monkeypatch):
    def refuse(self):
        raise AssertionError("the data were read")

    monkeypatch.setattr(Digits, "load", refuse)
    monkeypatch.setattr(Standardise, "fit", lambda *_: refuse(None))
    model = load(digits.run_folder)
    assert model.predict(np.zeros((3, 8, 8))).shape == (3, 10)
    assert model.classes == tuple(range(10))


def test_the_results_of_a_run_can_be_measured_from_its_folder(digits):
    model = load(digits.run_folder)
    found = model.evaluate("validation", {"accuracy": "accuracy"})
    assert found == {name: model.summary["metrics"][f"validation.{name}"] for name in ("loss", "accuracy")}
    assert model.summary["status"] == "finished"


def test_a_run_with_swapped_components_is_evaluated_in_its_final_state(tmp_path):
    environment = build(read(DIGITS), catalogue(), tmp_path)
    environment.prepare()
    environment.swap("optimiser", "momentum")
    environment.swap("backend", "numba")
    environment.detach("score")
    environment.run()
    loss = environment.trainer("trainer").evaluate("validation")["loss"]
    environment.close()
    found = load(environment.run_folder).evaluate("validation")["loss"]
    assert found == pytest.approx(loss, rel=1e-5)


def test_parameters_have_addresses_and_are_copies(digits):
    model = load(digits.run_folder)
    found = model.parameters()
    trainer = digits.trainer("trainer")
    assert list(found) == sorted(found)
    for address, value in found.items():
        assert np.array_equal(value, digits.get(f"{trainer.name}.{address}"))
    found["network.layers.3-output.biases"][:] = 7
    assert not (model.parameters()["network.layers.3-output.biases"] == 7).any()


def test_any_checkpoint_can_be_loaded_by_number(digits):
    first, last = checkpoint.list_checkpoints(digits.run_folder, "trainer")[
        :: len(checkpoint.list_checkpoints(digits.run_folder, "trainer")) - 1
    ]
    assert load(digits.run_folder).path == last
    early = load(digits.run_folder, checkpoint=int(first.name))
    assert early.path == first
    assert not np.array_equal(early.predict(images()), load(digits.run_folder).predict(images()))
    with pytest.raises(SigmaCheckpointError, match=r"has no checkpoint 12345 of 'trainer'\. There are: .*\d"):
        load(digits.run_folder, checkpoint=12345)


def test_a_damaged_checkpoint_is_named_and_skipped(run):
    newest = checkpoint.list_checkpoints(run, "trainer")[-1]
    (newest / "state.safetensors").write_bytes(b"")
    told = []
    model = load(run, log=told.append)
    assert model.path != newest
    assert any(str(newest) in text and "damaged" in text for text in told)
    with pytest.raises(SigmaCheckpointError, match="damaged"):
        load(run, checkpoint=int(newest.name))
    for path in checkpoint.list_checkpoints(run, "trainer"):
        shutil.rmtree(path)
    with pytest.raises(SigmaCheckpointError, match="checkpoints/trainer: holds no checkpoint"):
        load(run)


def test_a_checkpoint_of_another_network_is_skipped(run):
    text = (run / "config.toml").read_text().replace("dense(16", "dense(17")
    (run / "config.toml").write_text(text)
    told = []
    with pytest.raises(SigmaCheckpointError, match="no intact checkpoint"):
        load(run, log=told.append)
    assert "2-dense.biases is float32[16] in it, and float32[17] here" in told[0]


def test_samples_that_do_not_fit_are_refused_with_the_expected_shape(digits):
    model = load(digits.run_folder)
    with pytest.raises(SigmaDataError, match="one sample without the axis of the batch"):
        model.predict(images()[0])
    with pytest.raises(SigmaDataError, match="section 'inputs' is missing"):
        model.predict({"pixels": images()})
    with pytest.raises(SigmaDataError, match=r"preprocessor 'scale': cannot take section 'inputs', <U1"):
        model.predict(np.array(["a", "b"]))
    with pytest.raises(SigmaDataError, match=r"cannot take section 'inputs', float64 of shape \(1, 7, 7\)"):
        model.predict(np.zeros((3, 7, 7)))


def test_another_backend_agrees_within_its_tolerance(digits):
    pytest.importorskip("sigma_backend_numba")
    model = load(digits.run_folder, backend="numba")
    assert np.allclose(model.predict(images()), load(digits.run_folder).predict(images()), atol=1e-5)


def test_one_of_several_trainers_must_be_named(tmp_path):
    environment = ran("format = 1\n" + XOR.format(name="a") + XOR.format(name="b"), tmp_path)
    cases = [[0, 0], [1, 0]]
    with pytest.raises(SigmaConfigError, match="has several trainers: a, b"):
        load(environment.run_folder)
    with pytest.raises(SigmaConfigError, match="trainer 'c'"):
        load(environment.run_folder, "c")
    model = load(environment.run_folder, "b")
    found = model.predict(cases)
    (evaluator,) = model._evaluators.values()
    assert evaluator.batch_size == 4  # as all four rows were one batch, so that bits agree for more samples, too
    assert np.array_equal(found, environment.trainer("b").predict(cases))


def test_a_path_that_is_not_a_run_folder_is_refused(tmp_path):
    with pytest.raises(SigmaConfigError, match=r"nowhere: not a run folder: not a directory"):
        load(tmp_path / "nowhere")
    with pytest.raises(SigmaConfigError, match=r"it has no config\.toml"):
        load(tmp_path)
    with pytest.raises(SigmaConfigError, match=r"^load: a run is given by the path of its folder \(got NoneType\)"):
        load(None)


def test_opening_an_old_run_made_in_python_explains_how_to_resume_it(run):
    (run / "config.toml").write_text("")
    with pytest.raises(SigmaConfigError, match="was trained from Python, so it has no configuration"):
        load(run)


def test_other_plugin_versions_and_a_damaged_summary_are_reported(run):
    (run / "plugins.json").write_text(json.dumps({"plugins": {"sigma-layers": "0.0.1"}}))
    (run / "summary.json").write_text("[" * 10_000)
    told = []
    assert load(run, log=told.append).summary == {}
    assert any(text.startswith("sigma-layers was 0.0.1, and is ") for text in told)
    assert any("summary.json: not JSON" in text for text in told)
    (run / "plugins.json").write_text(json.dumps({"plugins": 3}))
    load(run, log=told.append)
    assert f"{run / 'plugins.json'}: does not say which plugins were used" in told


def test_the_history_of_a_run_folder_has_the_values_and_moments_of_its_trainer(digits, run):
    then, now = digits.trainer("trainer").history, load(digits.run_folder).history
    assert list(now) == list(then)
    for name in then:
        mine, read = then.curve(name), now.curve(name)
        kept = np.isin(mine.iterations, read.iterations)
        for column in ("iterations", "epochs", "values"):
            np.testing.assert_array_equal(getattr(read, column), getattr(mine, column)[kept])
        assert read.low.min() == mine.values.min()
        assert read.high.max() == mine.values.max()
        assert np.allclose(read.seconds, mine.seconds[kept], atol=1.0)
    (run / "curves.bin").unlink()
    assert dict(load(run).history) == {}


def test_a_run_folder_has_its_curves_as_a_picture(digits):
    drawn = ElementTree.parse(digits.run_folder / "curves.svg")
    texts = ["".join(one.itertext()) for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == digits.run_folder.name
    assert {"loss", "accuracy"} <= set(texts)
    assert f"validation {digits.summary().metrics['validation.accuracy']:.4g}" in texts
