"""The configuration of the page about several files trains, predicts, and is the same as its Python."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sigma_data import Digits
from sigma_run import load
from sigma_run.launcher.group import main

PAGE = Path(__file__).parents[1] / "docs/how-to/several-files.md"

pytestmark = pytest.mark.rooms


def as_idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def test_the_configuration_of_the_page_trains_and_predicts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    digits = Digits(split={"training": 1.0})["training"].block(0)
    images = np.rint(digits["inputs"].reshape(-1, 8, 8) * 255).astype(np.uint8)
    with zipfile.ZipFile("digits.zip", "w") as archive:
        archive.writestr("images-idx3-ubyte.gz", gzip.compress(as_idx(images)))
        archive.writestr("labels-idx1-ubyte.gz", gzip.compress(as_idx(digits["targets"].astype(np.uint8))))
    text = PAGE.read_text().partition("```toml\n")[2].partition("```")[0]
    Path("digits.toml").write_text(text)
    assert main(["run", "digits.toml", "--quiet", "--epochs", "2", "--set", "run.folder=runs"]) == 0
    Path("others-idx3-ubyte.gz").write_bytes(gzip.compress(as_idx(images[:5])))
    capsys.readouterr()
    (run,) = Path("runs").iterdir()
    assert main(["predict", str(run), "others-idx3-ubyte.gz", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["predictions"]
    wanted = load(run).predict(images[:5] / 255)
    assert [row["class"] for row in printed] == wanted.argmax(axis=1).tolist()
    np.testing.assert_allclose([row["probability"] for row in printed], wanted.max(axis=1), rtol=1e-6)


FITTED = """
format = 1
[run]
name = "table"
[data]
batch_size = 8
[data.dataset]
type = "joined"
split = { training = 0.8, validation = 0.2 }
[data.dataset.parts.inputs]
reader = "npy"
source = { type = "file", path = "x.npy" }
preprocessors.whole = { type = "standardise" }
[data.dataset.parts.targets]
reader = "npy"
source = { type = "file", path = "y.npy" }
preprocessors.whole = { type = "standardise", section = "targets" }
[network]
architecture = "input(3) + dense(8, activation='relu') + output(2) + squared_difference()"
[trainer]
epochs = 3
optimiser = { type = "adam", learning_rate = 0.01 }
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    inputs = draw.normal(5, 3, (50, 3)).astype(np.float32)
    np.save("x.npy", inputs)
    np.save("y.npy", (inputs[:, :2] * 10 + 100).astype(np.float32))
    Path("table.toml").write_text(FITTED)
    return inputs


def test_preprocessors_of_parts_are_fitted_on_training_rows_saved_and_exported(table, capsys):
    assert main(["run", "table.toml", "--quiet"]) == 0
    (run,) = Path("runs").iterdir()
    model = load(run)
    rows = model.trainer.data["training"]
    training = np.concatenate([rows.block(i)["inputs"] for i in range(rows.blocks)])
    assert len(training) == 40
    state = model.inference().preprocessors
    assert [*state] == ["inputs_whole", "targets_whole"]
    fitted = state["inputs_whole"][1]
    theirs = [training.mean(axis=0, dtype=np.float64), training.std(axis=0, dtype=np.float64)]
    for value in theirs:
        assert any(each.shape == value.shape and np.allclose(each, value, rtol=1e-5) for each in fitted.values())
    predictions = model.predict(table[:4])
    assert predictions.min() > 50  # in the units of the data
    np.save("new.npy", table[:4])
    capsys.readouterr()
    assert main(["predict", str(run), "new.npy", "--output", "out.npy"]) == 0
    np.testing.assert_array_equal(np.load("out.npy"), predictions)
    assert main(["evaluate", str(run), "--json"]) == 0
    losses = json.loads(capsys.readouterr().out)
    assert str(model.evaluate("validation")["loss"])[:8] in json.dumps(losses)


def test_preprocessors_of_parts_are_those_of_the_trainer_to_the_bit(table):
    text = FITTED.replace('preprocessors.whole = { type = "standardise" }\n', "")
    text = text.replace('preprocessors.whole = { type = "standardise", section = "targets" }\n', "")
    steps = """
    [data.preprocessors]
    x = { type = "standardise" }
    y = { type = "standardise", section = "targets" }
    [network]"""
    Path("other.toml").write_text(text.replace("[network]", steps, 1))
    assert main(["run", "table.toml", "--quiet", "--set", "run.folder=a"]) == 0
    assert main(["run", "other.toml", "--quiet", "--set", "run.folder=b"]) == 0
    first, second = (load(next(Path(folder).iterdir())).predict(table) for folder in "ab")
    np.testing.assert_array_equal(first, second)


def test_a_preprocessor_of_the_trainer_with_the_name_of_one_of_a_part_is_refused(table, capsys):
    steps = '[data.preprocessors]\ninputs_whole = { type = "robust" }\n[network]'
    Path("table.toml").write_text(FITTED.replace("[network]", steps, 1))
    assert main(["run", "table.toml", "--quiet"]) == 2
    message = "preprocessors: the data set has one of the name 'inputs_whole'. Rename one of them."
    assert message in capsys.readouterr().err
