"""Labels keep the type that they have in the data: in ``classify``, in checkpoints, and in what commands write."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sigma_data import Arrays, Csv, Frame
from sigma_kernel import Environment
from sigma_kernel.errors import SigmaDataError
from sigma_run import load
from sigma_run.launcher.group import main
from sigma_testing import DatasetSuite
from sigma_testing.checkpoints import newest_checkpoint

CODES = np.arange(60) % 3
X = np.eye(3, dtype=np.float32)[CODES] + np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32) / 9
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
LABELS: dict[str, Any] = {
    "integers": np.array([5, 7, 11]),
    "negative integers": np.array([-7, -1, 1]),
    "indices": np.array([0, 1, 2]),
    "small integers": np.array([5, 7, 11], np.uint8),
    "large integers": np.array([2**53, 2**53 + 1, 2**53 + 2]),
    "objects": np.array([5, 7, 11], object),
    "booleans": np.array([False, True, True]),
    "numpy booleans as objects": np.array([False, True, True], object),
    "floats": np.array([-1.0, 0.0, 2.0]),
    "words": np.array(["ant", "cat", "dog"]),
    "words that are numbers": np.array(["5", "7", "11"]),
    "words that are booleans": np.array(["False", "True", "unknown"]),
}
NETWORK = "input(3) + output({}) + softmax_cross_entropy()"


def environment(folder: Path | None, data: Any, classes: int) -> Environment:
    made = Environment("labels", seed=2, folder=folder)
    trainer = made.create_trainer(data=data, network=NETWORK.format(classes), batch_size=20, epochs=30)
    trainer.optimiser = {"type": "adam", "learning_rate": 0.2}
    return made


def plain(values: np.ndarray) -> list[tuple[type, Any]]:
    return [(type(one), one) for one in values.tolist()]


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_a_frame_come_back_with_their_type(name: str, tmp_path: Path) -> None:
    targets = LABELS[name][CODES]
    with environment(tmp_path, Frame(FRAME.assign(y=targets), "y"), len({*targets.tolist()})) as made:
        trainer = made.trainer("trainer")
        trainer.fit()
        assert plain(trainer.classify(X)) == plain(targets)
        saved = load(trainer.save(tmp_path / "model"))
    assert made.run_folder is not None
    model = load(made.run_folder)
    assert model.classes == tuple(sorted({*targets.tolist()}, key=[*LABELS[name].tolist()].index))
    for one in (saved, model):
        assert plain(one.classify(X)) == plain(targets)
        assert one.classify(X[:0]).dtype == one.classify(X).dtype


@pytest.mark.parametrize("name", ["integers", "negative integers", "large integers", "booleans", "words"])
def test_labels_of_a_file_come_back_with_their_type(name: str, tmp_path: Path) -> None:
    targets = LABELS[name][CODES]
    FRAME.astype(float).assign(y=targets).to_csv(tmp_path / "t.csv", index=False)
    data = Csv(tmp_path / "t.csv", "y", split={"training": 1.0})
    with environment(None, data, len({*targets.tolist()})) as made:
        made.trainer("trainer").fit()
        assert plain(made.trainer("trainer").classify(X)) == plain(targets)


@pytest.mark.parametrize(("name", "texts"), [
    ("integers", ["5", "7", "11"]), ("negative integers", ["-7", "-1", "1"]), ("booleans", ["False", "True"]),
    ("floats", ["-1.0", "0.0", "2.0"]), ("words that are numbers", ["5", "7", "11"]),
])  # fmt: skip
def test_predict_writes_labels_as_values_to_json_and_as_text_to_csv(
    name: str, texts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = LABELS[name][CODES]
    with environment(tmp_path, Frame(FRAME.assign(y=targets), "y"), len({*targets.tolist()})) as made:
        made.run()
    np.save(tmp_path / "x.npy", X)
    path = tmp_path / "found.csv"
    assert main(["predict", str(made.run_folder), str(tmp_path / "x.npy"), "--json", "--output", str(path)]) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [(type(row["label"]), row["label"]) for row in rows] == plain(targets)
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["input", "row", "class", "label", *(f"probability_{text}" for text in texts)]
    assert [line[3] for line in lines] == [str(one) for one in targets.tolist()]


def test_a_resumed_run_and_its_rows_keep_the_types(tmp_path: Path) -> None:
    targets = LABELS["integers"][CODES]
    with environment(tmp_path, Frame(FRAME.assign(y=targets), "y"), 3) as made:
        made.trainer("trainer").fit(epochs=30)
    assert main(["resume", str(made.run_folder), "--epochs", "31"]) == 0
    assert made.run_folder is not None
    _, checkpoint = newest_checkpoint(made.run_folder, "trainer")
    assert checkpoint.values["clock"]["epoch"] == 31
    assert checkpoint.values["classes"] == [5, 7, 11]
    assert load(made.run_folder).trainer.session.setup.evaluator.classes == (5, 7, 11)  # of the rows saved with the run


def test_labels_of_older_checkpoints_are_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_training.components.labels", lambda names: [*map(str, names)])
    targets = LABELS["integers"][CODES]
    with environment(tmp_path, Frame(FRAME.assign(y=targets), "y"), 3) as made:
        made.run()
    monkeypatch.undo()
    assert made.run_folder is not None
    assert load(made.run_folder).classify(X).tolist() == targets.astype(str).tolist()
    assert main(["resume", str(made.run_folder), "--epochs", "31"]) == 0
    assert plain(load(made.run_folder).classify(X)) == plain(targets)


def test_every_output_has_labels_of_its_own_type(tmp_path: Path) -> None:
    tall, kind = np.array([False, True])[CODES % 2], np.array(["ant", "cat", "dog"])[CODES]
    with Environment("labels", seed=2, folder=tmp_path) as made:
        trainer = made.create_trainer(data={"inputs": X, "tall": tall, "kind": kind}, optimiser="adam", epochs=1)
        trainer.network = """
            a = input(3)
            a + output(2, name="one") + softmax_cross_entropy(targets="tall")
            a + output(3, name="two") + softmax_cross_entropy(targets="kind")
        """
        made.run()
    assert made.run_folder is not None
    model = load(made.run_folder)
    assert (model.names("one"), model.names("two")) == ([False, True], ["ant", "cat", "dog"])
    assert {name: values.dtype.kind for name, values in model.classify(X).items()} == {"one": "b", "two": "U"}


def test_nullable_columns_and_those_of_polars_keep_the_type() -> None:
    for column in (pd.Series([5, 7, 11], dtype="Int64"), pl.Series([5, 7, 11]), pd.Series([5, 7, 11], dtype=object)):
        labels = Frame({"a": [1.0, 2.0, 3.0], "y": column}, "y")["training"].encode("targets", 3)
        assert [(type(one), one) for one in labels.class_names("targets")] == [(int, 5), (int, 7), (int, 11)]
    labels = Frame({"a": [1.0, 2.0], "y": pd.Series([True, False], dtype="boolean")}, "y")["training"]
    assert labels.encode("targets", 2).class_names("targets") == (False, True)


def test_labels_of_several_types_stay_apart(tmp_path: Path) -> None:
    class Mixed(Arrays):
        def class_names(self, section: str) -> tuple[Any, ...]:
            return (1, "one", np.float64(1.5)) if section == "targets" else ()

    with environment(tmp_path, Mixed(inputs=X, targets=CODES), 3) as made:
        made.run()
        wanted = [[1, "one", 1.5][code] for code in CODES]
        assert plain(made.trainer("trainer").classify(X)) == [(type(one), one) for one in wanted]
    assert made.run_folder is not None
    assert load(made.run_folder).classify(X).tolist() == wanted


def test_a_class_that_training_does_not_have_is_named_by_its_label() -> None:
    data = {"training": Frame(FRAME.assign(y=CODES + 5), "y"), "validation": Frame(FRAME.assign(y=CODES + 6), "y")}
    with pytest.raises(SigmaDataError, match="holds the class 8, which the training split does not have: 5, 6, 7"):
        environment(None, data, 3).trainer("trainer").prepare()


def test_three_classes_are_too_many_for_booleans() -> None:
    data = Frame(FRAME.assign(y=LABELS["booleans"][CODES]), "y")
    with pytest.raises(SigmaDataError, match="holds 2 classes: False, True; the network has 3"):
        environment(None, data, 3).trainer("trainer").prepare()


class TestIntegerLabels(DatasetSuite):
    def make(self) -> Any:
        return Frame(FRAME.assign(y=CODES + 5), "y")["training"]
