"""Inputs and outputs without sizes take them from the data; runs keep them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data import Arrays
from sigma_kernel import Environment, functions as f
from sigma_kernel.errors import SigmaNetworkError
from sigma_layers import (
    BinaryCrossEntropy,
    Concat,
    Dense,
    Flatten,
    FunctionCost,
    Input,
    Output,
    SoftmaxCrossEntropy,
    SquaredDifference,
)
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_training.components import Learned

ROWS = np.random.default_rng(0).normal(size=(24, 5)).astype("float32")
LABELS = np.arange(24) % 3


def trainer_of(network: Any, seed: int = 0, **sections: Any) -> Any:
    settings = {"backend": "numpy", "optimiser": "adam", "batch_size": 8}
    data = {"inputs": ROWS, **sections}
    return Environment("sizes", seed=seed).create_trainer(network=network, data=data, **settings)


def sizes_of(trainer: Any) -> dict[str, tuple[int, ...]]:
    return dict(trainer.session.setup.model.network.sizes)


@pytest.mark.parametrize(
    ("targets", "cost", "units"),
    [
        (LABELS, SoftmaxCrossEntropy(), 3),
        (np.array(list("abcd") * 6), SoftmaxCrossEntropy(), 4),
        (np.eye(3)[LABELS], SoftmaxCrossEntropy(), 3),
        (np.where(LABELS == 2, -100, LABELS), SoftmaxCrossEntropy(ignore_index=-100), 2),
        (np.where(LABELS == 2, 9, LABELS), SoftmaxCrossEntropy(ignore_index=9), 2),
        (LABELS % 2, BinaryCrossEntropy(), 1),
        (np.stack([LABELS % 2] * 4, axis=1), BinaryCrossEntropy(), 4),
        (ROWS[:, 0], SquaredDifference(), 1),
        (ROWS[:, :2], SquaredDifference(), 2),
    ],
)
def test_an_output_fits_its_targets(targets: Any, cost: Any, units: int) -> None:
    named, written = (
        trainer_of(Input(*shape) + Dense(7) + Output(*size) + cost, targets=targets)
        for shape, size in (((), ()), ((5,), (units,)))
    )
    named.fit(epochs=2)
    written.fit(epochs=2)
    assert sizes_of(named) == {"0-input": (5,), "2-output": (units,)}
    assert written.session.setup.model.network.sizes is None
    np.testing.assert_array_equal(named.predict(ROWS), written.predict(ROWS))


@pytest.mark.parametrize(
    ("targets", "cost"),
    [
        (LABELS, SoftmaxCrossEntropy()),
        (ROWS[:, :3], SquaredDifference()),
        (ROWS[:, :2], FunctionCost(lambda y, t: f.mean(y))),
    ],
)
def test_an_output_that_fits_already_adds_nothing(targets: Any, cost: Any) -> None:
    trainer = trainer_of(Input(5) + Dense(3) + Output() + cost, targets=targets)
    assert sizes_of(trainer) == {}
    assert [*trainer.session.setup.model.parameters()] == ["1-dense.weights", "1-dense.biases"]


def test_several_inputs_and_outputs_take_their_own_sizes() -> None:
    merged = Concat()
    (Input(section="right", name="right") + Dense(3)).link(merged)
    trunk = Input(section="left", name="left") + Dense(4) + merged
    price = Output(name="price") + SquaredDifference(targets="price")
    trunk.link(price)
    kind = trunk + Output(name="kind") + SoftmaxCrossEntropy(targets="kind")
    rows = {"left": ROWS, "right": ROWS[:, :2], "price": ROWS[:, :2], "kind": np.array(["x", "y"] * 12)}
    trainer = Environment("several").create_trainer(network=[kind, price], data=rows, optimiser="adam")
    assert sizes_of(trainer) == {"left": (5,), "right": (2,), "kind": (2,), "price": (2,)}


def test_images_keep_their_sides_and_single_numbers_theirs() -> None:
    images = ROWS.repeat(2, axis=1).reshape(24, 1, 2, 5)
    trainer = Environment("images").create_trainer(
        network=Input() + Flatten() + Output() + SoftmaxCrossEntropy(), data=(images, LABELS), optimiser="adam"
    )
    assert sizes_of(trainer) == {"0-input": (1, 2, 5), "2-output": (3,)}
    numbers = Environment("numbers").create_trainer(
        network=Input() + Output() + SquaredDifference(), data=(ROWS[:, 0], ROWS[:, 1]), optimiser="adam"
    )
    assert sizes_of(numbers) == {"0-input": ()}


def test_before_the_data_are_read_the_size_is_unknown() -> None:
    trainer = trainer_of(Input(5) + Dense(7) + Output() + SoftmaxCrossEntropy(), targets=LABELS)
    assert trainer.summary().rows[2].shape is None
    assert trainer.summary().parameters is None
    trainer.prepare()
    assert trainer.summary().rows[2].shape == (3,)


def test_classes_that_are_only_read_during_training_are_not_counted() -> None:
    def blocks() -> Iterator[Any]:
        yield ROWS, LABELS.astype("int32")

    trainer = trainer_of(Input() + Dense(7) + Output() + SoftmaxCrossEntropy(), targets=LABELS)
    trainer.data = blocks
    wrong = r"2-output: the number of classes in section 'targets' is not known, as .* Write Output\(10\) for 10"
    with pytest.raises(SigmaNetworkError, match=wrong):
        trainer.prepare()


def test_numbers_are_not_taken_for_classes() -> None:
    trainer = trainer_of(Input() + Dense(7) + Output() + SoftmaxCrossEntropy(), targets=ROWS[:, 0])
    with pytest.raises(SigmaNetworkError, match=r"it holds float32 of shape \(\)\. Write Output\(10\)"):
        trainer.prepare()


def test_a_saved_network_keeps_its_sizes_without_its_data(tmp_path: Path) -> None:
    trainer = trainer_of(Input() + Dense(7) + Output() + SoftmaxCrossEntropy(), targets=LABELS)
    trainer.fit(epochs=1)
    trained = load(trainer.save(tmp_path / "net"))
    np.testing.assert_array_equal(trained.predict(ROWS), trainer.predict(ROWS))
    assert trained.network.sizes == sizes_of(trainer)
    score = trained.evaluate((ROWS[:6], LABELS[:6] % 2))  # classes of a part, and an output of all
    assert score["loss"] == trainer.evaluate((ROWS[:6], LABELS[:6] % 2))["loss"]


@pytest.mark.parametrize("about", [{"samples": {"inputs": [[5], "float32"]}}])
def test_what_was_trained_before_outputs_took_sizes_has_none(about: dict[str, Any]) -> None:
    trainer = trainer_of(Input(5) + Dense(7) + Output() + SoftmaxCrossEntropy(), targets=LABELS)
    trainer.learned = Learned(about)
    assert [*trainer.session.setup.model.parameters()] == ["1-dense.weights", "1-dense.biases"]
    assert trainer.predict(ROWS).shape == (24, 7)


FILE = """
format = 1
run = { name = "open", backend = "numpy" }
data = { dataset = "iris", batch_size = 30 }
network.architecture = "input() + dense(6, activation='tanh') + output() + softmax_cross_entropy()"
trainer = { optimiser = "adam", epochs = 4 }
"""


def test_check_prints_sizes_and_runs_resume_and_load_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("open.toml").write_text(FILE, encoding="utf-8")
    assert main(["check", "open.toml"]) == 0
    said = capsys.readouterr().err
    assert said == "ok\n0-input takes 4 from the data\n2-output takes 3 from the data\n"
    assert main(["check", "open.toml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sizes"] == {"0-input": [4], "2-output": [3]}
    digests = []
    for sizes in (["input()", "output()"], ["input(4)", "output(3)"]):
        Path("same.toml").write_text(FILE.replace("input()", sizes[0]).replace("output()", sizes[1]), encoding="utf-8")
        assert main(["run", "same.toml", "--json", "--epochs", "2"]) == 0
        folder = json.loads(capsys.readouterr().out)["folder"]
        assert load(folder).predict(np.zeros((2, 4))).shape == (2, 3)
        assert main(["resume", folder, "--json", "--set", "trainer.epochs=4"]) == 0
        digests.append(json.loads(capsys.readouterr().out)["parameters_sha256"])
    assert digests[0] == digests[1]


def test_a_data_set_of_labels_counts_the_classes_of_all_splits() -> None:
    splits = {"training": Arrays(inputs=ROWS, targets=LABELS), "validation": Arrays(inputs=ROWS, targets=LABELS + 1)}
    trainer = trainer_of(Input() + Output() + SoftmaxCrossEntropy(), targets=LABELS)
    trainer.data = splits
    assert sizes_of(trainer)["1-output"] == (4,)
