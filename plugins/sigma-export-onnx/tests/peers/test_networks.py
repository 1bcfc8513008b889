"""Trained networks with their preprocessing: ONNX Runtime returns what ``predict`` returns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

pytest.importorskip("onnxruntime")

import sigma_kernel
import sigma_layers as layers
from sigma_export_onnx import Onnx
from sigma_kernel import Environment, Preprocessor, SigmaConfigError, functions as f
from sigma_kernel.contracts import Step
from sigma_kernel.graph import Graph, Spec, symbol
from sigma_run import Trained, load
from sigma_testing import inference

from .running import agrees, close, outputs, results, session
from .test_layers import COSTS

DRAW = np.random.default_rng(0)
TABLE, LABELS = DRAW.normal(3.0, 50.0, (24, 4)), DRAW.integers(0, 3, 24)
PIXELS = DRAW.integers(0, 256, (24, 6, 5), np.uint8)
SCORES, PAIRS = Spec((3,)), Spec((2, 3))
EXAMPLES = {
    "softmax_cross_entropy": (layers.SoftmaxCrossEntropy(), PAIRS),
    "binary_cross_entropy": (layers.BinaryCrossEntropy(), SCORES),
    "squared_difference": (layers.SquaredDifference(), SCORES),
    "absolute_difference": (layers.AbsoluteDifference(), SCORES),
    "huber": (layers.Huber(), SCORES),
    "poisson": (layers.Poisson(), SCORES),
    "adversarial": (layers.Adversarial("real"), Spec((1,))),
    "hinge": (layers.Hinge(), Spec((1,))),
    "multi_class_hinge": (layers.MultiClassHinge(), SCORES),
    "cosine_distance": (layers.CosineDistance(), SCORES),
    "triplet": (layers.Triplet(), SCORES),
    "ctc": (layers.CTC(), PAIRS),
    "kullback_leibler": (layers.KullbackLeibler(), SCORES),
    "function_cost": (layers.FunctionCost(lambda x, y: f.mean(x - y)), SCORES),
}
PREDICTS = {"adaptive_softmax"}  # with its own parameters: as a network


def test_every_cost_has_an_example() -> None:
    assert {*EXAMPLES} | PREDICTS == COSTS


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_a_cost_predicts_is_that_of_the_reference(name: str) -> None:
    cost, spec = EXAMPLES[name]

    def step(rows: int) -> Step:
        x = symbol((rows, *spec.shape))
        return Step(Graph((x,), (cost.prediction(x),)), (), ("x",), (), (), ("it",))

    agrees(sigma_kernel.Inference("alone", (), {}, step, {}), name)


def trained(
    folder: Path, network: str, data: Mapping[str, np.ndarray], precision: str = "float32", **settings: Any
) -> Trained:
    """Return a network after an epoch, loaded from where it was saved."""
    environment = Environment("exported", folder=folder, seed=1, precision=precision)
    trainer = environment.create_trainer(
        data=data, network=network, batch_size=8, backend="numpy", **settings,
        optimiser={"type": "gradient_descent", "learning_rate": 0.01},
    )  # fmt: skip
    with environment:
        trainer.fit(epochs=1)
        return load(trainer.save(folder / "saved"))


def same(model: Trained, samples: Mapping[str, np.ndarray]) -> Any:
    """Compare what a model and its ONNX model predict for the rows of samples, and for one; return the ONNX model."""
    made = Onnx().model(model.inference())
    running = session(made)
    for rows in (1, len(next(iter(samples.values())))):
        some = {name: values[:rows] for name, values in samples.items()}
        found, wanted = outputs(running, some), model.predict(some)
        wanted = wanted if isinstance(wanted, dict) else {next(iter(found)): wanted}
        assert {*found} == {*wanted}
        for name, values in wanted.items():
            close(found[name], values, name)
    return made


def types(model: Any) -> dict[str, str]:
    """Return the types of the inputs, as ONNX Runtime names them, with their sides."""
    return {one.name: f"{one.type} {one.shape}" for one in session(model).get_inputs()}


CHAIN = "+ dense(5, activation='tanh') + output(3) + softmax_cross_entropy()"


def test_a_cost_that_predicts_with_its_parameters_is_a_part_of_the_model(tmp_path: Path) -> None:
    network = "input(4) + dense(8) + adaptive_softmax(3, [1, 2], 2.0, bias=true)"
    model = trained(tmp_path, network, {"inputs": TABLE, "targets": LABELS})
    same(model, {"inputs": TABLE.astype(np.float32)})


@pytest.mark.parametrize(
    "step",
    [
        {"type": "standardise"},
        {"type": "normalise"},
        {"type": "normalise", "source": (-200.0, 200.0), "target": (-1.0, 1.0)},
        {"type": "scale", "factor": 0.01, "offset": 0.5},
        {"type": "cast", "dtype": "float32"},
        {"type": "robust"},
        {"type": "quantile", "quantiles": 9},
        {"type": "log", "unit": 0.5},
        {"type": "clip", "share": 0.1},
    ],
    ids=lambda step: step["type"],
)
def test_preprocessing_is_a_part_of_the_model(tmp_path: Path, step: dict[str, Any]) -> None:
    data = {"inputs": TABLE, "targets": LABELS}
    model = trained(tmp_path, f"input(4) {CHAIN}", data, preprocessors={"first": step})
    made = same(model, {"inputs": TABLE.astype(np.float32)})
    assert types(made) == {"inputs": "tensor(float) ['batch', 4]"}
    about = {one.key: one.value for one in made.metadata_props}
    assert json.loads(about["preprocessors"]) == ["first"]


@pytest.mark.parametrize(
    "steps",
    [
        [{"type": "standardise", "section": "targets"}],
        [{"type": "scale", "section": "targets", "offset": -1.7e9}, {"type": "normalise", "section": "targets"}],
        [{"type": "quantile", "section": "targets"}],
        [{"type": "robust", "section": "targets"}],
    ],
)
def test_answers_are_in_the_units_of_targets(tmp_path: Path, steps: list[Any]) -> None:
    times = 1.7e9 + 4 * TABLE[:, :2]  # float32 holds every 128th of such numbers
    model = trained(
        tmp_path, "input(4) + output(2) + squared_difference()", {"inputs": TABLE, "targets": times},
        preprocessors=[{"type": "standardise"}, *steps],
    )  # fmt: skip
    given = {"inputs": TABLE.astype(np.float32)}
    found = results(Onnx().model(model.inference()), given)["1-output"]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, model.predict(given), rtol=0, atol=0.01)
    plain = results(Onnx(preprocessing=False).model(model.inference()), given)["1-output"]
    assert plain.dtype == np.float32
    assert abs(plain).max() < 1e4 < abs(found).min()


def test_bytes_stay_bytes_and_preprocessors_act_one_after_another(tmp_path: Path) -> None:
    steps = {"a": {"type": "scale", "factor": 0.5}, "b": {"type": "standardise"}}
    data = {"inputs": PIXELS, "targets": LABELS}
    model = trained(tmp_path, f"input(6, 5) + expand() + conv2d(2, 3) + flatten() {CHAIN}", data, preprocessors=steps)
    made = same(model, {"inputs": PIXELS})
    assert types(made) == {"inputs": "tensor(uint8) ['batch', 6, 5]"}


def test_classes_become_one_hot_vectors_within_the_model(tmp_path: Path) -> None:
    steps = {"inputs": {"type": "one_hot", "section": "inputs", "classes": 4}}
    given = {"inputs": DRAW.integers(0, 4, 24, np.int8), "targets": LABELS}
    made = same(trained(tmp_path, f"input(4) {CHAIN}", given, preprocessors=steps), {"inputs": given["inputs"]})
    assert types(made) == {"inputs": "tensor(int8) ['batch']"}


def test_an_integer_of_more_than_32_bits_is_no_class(tmp_path: Path) -> None:
    steps = {"inputs": {"type": "one_hot", "section": "inputs", "classes": 4}}
    given = {"inputs": DRAW.integers(0, 4, 24), "targets": LABELS}
    made = Onnx().model(trained(tmp_path, f"input(4) {CHAIN}", given, preprocessors=steps).inference())
    beyond, far, zero = (results(made, {"inputs": np.array([x])})["2-output"] for x in (2**32, 2**40, 0))
    close(beyond, far)  # both are vectors of zeros
    assert not np.allclose(beyond, zero)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint16", "uint64"])
def test_tokens_keep_their_type(tmp_path: Path, dtype: str) -> None:
    words = DRAW.integers(0, 9, (24, 6)).astype(dtype)
    network = f"input(6, dtype='int32') + embedding(9, 4) + attention(2) + flatten() {CHAIN}"
    made = same(trained(tmp_path, network, {"inputs": words, "targets": LABELS}), {"inputs": words})
    assert types(made) == {"inputs": f"tensor({dtype}) ['batch', 6]"}


def test_truth_values_keep_their_type(tmp_path: Path) -> None:
    given = {"inputs": TABLE > 0, "targets": LABELS}
    steps = {"inputs": {"type": "cast"}}
    made = same(trained(tmp_path, f"input(4) {CHAIN}", given, preprocessors=steps), {"inputs": given["inputs"]})
    assert types(made) == {"inputs": "tensor(bool) ['batch', 4]"}


def test_several_inputs_and_outputs_have_the_names_of_sections_and_layers(tmp_path: Path) -> None:
    data = {"inputs": TABLE, "others": TABLE[:, :2], "targets": LABELS, "numbers": TABLE[:, :1]}
    network = (
        "both = input(4) + concat(input(2, section='others'))\n\n"
        "both + dense(3) + output(3, name='kind') + softmax_cross_entropy()\n\n"
        "both + output(1, name='number') + squared_difference(targets='numbers')"
    )
    model = trained(tmp_path, network, data, preprocessors={"scale": {"type": "standardise", "section": "others"}})
    made = same(model, {"inputs": TABLE.astype(np.float32), "others": TABLE[:, :2].astype(np.float32)})
    assert {*types(made)} == {"inputs", "others"}
    assert [one.name for one in made.graph.output] == ["kind", "number"]


def test_an_output_with_the_name_of_a_section_gets_another_one(tmp_path: Path) -> None:
    data = {"inputs": TABLE, "targets": LABELS}
    model = trained(tmp_path, "input(4) + output(3, name='inputs') + softmax_cross_entropy()", data)
    found = results(Onnx().model(model.inference()), {"inputs": TABLE.astype(np.float32)})
    close(found["inputs_2"], model.predict(TABLE.astype(np.float32)))


def test_running_statistics_and_recurrent_state_are_exported(tmp_path: Path) -> None:
    data = {"inputs": DRAW.normal(size=(24, 5, 3)), "targets": LABELS}
    model = trained(tmp_path, f"input(5, 3) + lstm(4, sequence=true) + batch_norm(axis=-1) + gru(3) {CHAIN}", data)
    made = same(model, {"inputs": data["inputs"].astype(np.float32)})
    names = {one.name for one in made.graph.initializer}
    assert {*model.inference().arrays} <= names
    assert "2-batch_norm.mean" in names


@pytest.mark.parametrize("precision", ["float64", "mixed_bfloat16"])
def test_the_precision_is_that_of_the_training(tmp_path: Path, precision: str) -> None:
    given = {"inputs": TABLE, "targets": LABELS}
    model = trained(tmp_path, f"input(4) {CHAIN}", given, precision, preprocessors={"s": {"type": "standardise"}})
    kind = "double" if precision == "float64" else "float"
    made = same(model, {"inputs": TABLE.astype(np.float64 if kind == "double" else np.float32)})
    assert types(made) == {"inputs": f"tensor({kind}) ['batch', 4]"}


def test_the_metadata_say_where_a_model_comes_from(tmp_path: Path) -> None:
    data = {"inputs": TABLE, "targets": np.array(["a", "b", "ü"])[LABELS]}
    model = trained(tmp_path, f"input(4) {CHAIN}", data)
    made = Onnx().model(model.inference())
    about = {one.key: one.value for one in made.metadata_props}
    assert json.loads(about["classes"]) == ["a", "b", "ü"]
    assert about["architecture"] == made.doc_string == str(model.network)
    assert about["run"] == "saved/checkpoints/trainer/3"
    assert about["sigma"] == made.producer_version == sigma_kernel.__version__
    assert [(one.domain, one.version) for one in made.opset_import] == [("", 20)]
    assert made.ir_version == 9


# -- what cannot be exported -------------------------------------------------------------------------------------------
class Rooted(Preprocessor):
    section: str = "inputs"

    def fit(self, blocks: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
        return {}

    def apply(self, values: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.sqrt(np.abs(values))


def test_a_preprocessor_without_a_graph_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    network = sigma_kernel.Inference(**{
        **{name: getattr(inference(), name) for name in ("architecture", "classes", "arrays", "step", "live")},
        "preprocessors": {"root": (Rooted(), {})},
    })  # fmt: skip
    told = r"^preprocessor 'root': .*Rooted does not say what it computes as a graph: .*Pass `preprocessing = false`"
    with pytest.raises(SigmaConfigError, match=told):
        Onnx().model(network)
    x = DRAW.normal(size=(3, 3)).astype(np.float32)
    found = results(Onnx(preprocessing=False).model(network), {"inputs": x})["2-output"]
    close(found, results(Onnx().model(inference()), {"inputs": x})["2-output"])


def test_a_run_of_an_earlier_version_that_does_not_know_its_samples_is_refused_with_a_remedy(tmp_path: Path) -> None:
    steps = {"inputs": {"type": "one_hot", "section": "inputs", "classes": 4}}
    data = {"inputs": DRAW.integers(0, 4, 24), "targets": LABELS}
    network = trained(tmp_path, f"input(4) {CHAIN}", data, preprocessors=steps).inference()
    with pytest.raises(
        SigmaConfigError, match=r"^section 'inputs': .* unknown; .*Resume it for an epoch\. Pass `prepro"
    ):
        Onnx().model(evolve(network, samples={}))
