"""Runs on folders of pictures: from a configuration to predictions of files and folders."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest

from sigma_data import ImageFolder
from sigma_kernel import Environment
from sigma_run import load
from sigma_run.launcher.group import main

Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.rooms
TEXT = """
format = 1
[run]
name = "shades"
[data]
dataset = "image_folder"
folder = "pictures"
size = [6, 5]
fit = "pad"
memory = "1 MB"
cache = "cache"
batch_size = 8
[network]
architecture = "input(3, 6, 5) + conv2d(4, 3, activation='relu') + flatten() + output(2) + softmax_cross_entropy()"
[trainer]
epochs = 8
optimiser = { type = "adam", learning_rate = 0.03 }
"""


def write(path, shade, height, width):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((height, width, 3), shade, np.uint8)).save(path)


@pytest.fixture
def sigma(capsys, tmp_path, monkeypatch):
    """Return a function that runs the command in a folder with pictures, and returns its exit code and output."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for i in range(30):
        shade = int(rng.integers(0, 120)) + (135 if i % 2 else 0)
        write(tmp_path / "pictures" / ("bright" if i % 2 else "dark") / f"{i}.png", shade, *rng.integers(5, 40, 2))
    (tmp_path / "shades.toml").write_text(TEXT)

    def run(*arguments):
        capsys.readouterr()
        code = main(list(map(str, arguments)))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


def test_a_run_on_pictures_predicts_files_and_folders_of_any_size(sigma, tmp_path):
    assert sigma("check", "shades.toml")[0] == 0
    code, out, _ = sigma("run", "shades.toml", "--json")
    assert code == 0
    folder = json.loads(out)["folder"]
    write(tmp_path / "new" / "b.png", 250, 90, 30)
    write(tmp_path / "new" / "deep" / "a.jpg", 10, 30, 90)
    shutil.rmtree(tmp_path / "pictures")  # predictions do not read the training data
    code, out, _ = sigma("predict", folder, "new", "new/deep/a.jpg", "--json")
    assert code == 0
    rows = json.loads(out)["predictions"]
    assert [(row["input"], row["row"], row["label"]) for row in rows] == [
        ("new/b.png", 0, "bright"), ("new/deep/a.jpg", 0, "dark"), ("new/deep/a.jpg", 0, "dark"),
    ]  # fmt: skip
    samples = ImageFolder("gone", size=(6, 5), fit="pad").samples(tmp_path / "new", (3, 6, 5))
    assert np.array_equal(np.float32([row["probabilities"] for row in rows[:2]]), load(folder).predict(samples))
    assert sigma("predict", folder, "new", "--save", "out.csv")[0] == 0
    with open("out.csv", newline="") as file:
        table = [*csv.DictReader(file)]
    assert [(row["file"], row["predicted"]) for row in table] == [("new/b.png", "bright"), ("new/deep/a.jpg", "dark")]
    assert [float(row["probability_dark"]) for row in table] == pytest.approx(
        [row["probabilities"][1] for row in rows[:2]], abs=1e-6
    )
    code, _, err = sigma("predict", folder, "pictures")
    assert code == 2
    assert "pictures: " in err


def test_mistakes_in_a_configuration_are_reported_with_their_place(sigma, tmp_path):
    for old, new, said in (
        ("size = [6, 5]", "size = [6]", "data.size"),
        ('fit = "pad"', 'fit = "zoom"', "data.fit"),
        ('memory = "1 MB"', 'memory = "much"', "memory: 'much' is not a size"),
        ('folder = "pictures"', 'folder = "picture"', "there is no such folder. Did you mean 'pictures'?"),
    ):
        (tmp_path / "wrong.toml").write_text(TEXT.replace(old, new))
        code, _, err = sigma("check", "wrong.toml")
        assert code == 2, new
        assert said in err, err


def test_rows_that_have_changed_are_noticed_when_a_run_is_evaluated(sigma, tmp_path):
    folder = json.loads(sigma("run", "shades.toml", "--json")[1])["folder"]
    assert sigma("evaluate", folder)[0] == 0
    (tmp_path / "pictures" / "dark" / "0.png").unlink()
    code, _, err = sigma("evaluate", folder)
    assert code == 1
    assert "have changed since the training" in err


def test_a_network_is_evaluated_on_another_folder(sigma, tmp_path):
    folder = json.loads(sigma("run", "shades.toml", "--json")[1])["folder"]
    for i in range(10):
        write(tmp_path / "new" / ("bright" if i % 2 else "dark") / f"{i}.png", 255 * (i % 2), 9, 9)
    code, out, _ = sigma("evaluate", folder, "new", "--json")
    assert code == 0
    assert json.loads(out)["metrics"]["loss"] < 0.1
    write(tmp_path / "new" / "grey" / "0.png", 100, 9, 9)
    code, _, err = sigma("evaluate", folder, "new")
    assert code != 0
    assert "holds the class 'grey', which the training split does not have" in err


def test_a_table_in_a_configuration_starts_in_its_folder(sigma, tmp_path, monkeypatch):
    rows = [f"bright/{i}.png,1,{i}" if i % 2 else f"dark/{i}.png,0,{i}" for i in range(30)]
    (tmp_path / "labels.csv").write_text("\n".join(["path,light,number", *rows]))
    table = 'size = [6, 5]\ntable = "labels.csv"\ntarget = "light"'
    (tmp_path / "shades.toml").write_text(TEXT.replace("size = [6, 5]", table))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, out, err = sigma("run", "../shades.toml", "--json")
    assert code == 0, err
    folder = json.loads(out)["folder"]
    (tmp_path / "labels.csv").unlink()
    write(tmp_path / "a.jpg", 250, 30, 90)
    assert json.loads(sigma("predict", folder, tmp_path / "a.jpg", "--json")[1])["predictions"][0]["label"] == 1


def test_a_run_on_a_frame_of_paths_predicts_pictures_of_any_size(sigma, tmp_path):
    frame = {"path": [f"bright/{i}.png" if i % 2 else f"dark/{i}.png" for i in range(30)], "label": [*"ab"] * 15}
    with Environment("frame", seed=0, folder=tmp_path / "runs") as environment:  # the rows are kept, not the files
        environment.create_trainer(
            data=ImageFolder("pictures", size=(6, 5), table=frame),
            batch_size=8,
            network="input(3, 6, 5) + flatten() + output(2) + softmax_cross_entropy()",
            optimiser={"type": "adam", "learning_rate": 0.03},
            epochs=8,
        )
        environment.run()
    write(tmp_path / "new" / "a.jpg", 250, 30, 90)
    _, out, _ = sigma("predict", environment.run_folder, "new", "--json")
    assert [(row["input"], row["label"]) for row in json.loads(out)["predictions"]] == [("new/a.jpg", "b")]


def test_rare_classes_of_pictures_are_weighed_and_balanced(sigma, tmp_path):
    for i in range(30):
        write(tmp_path / "pictures" / "dark" / f"more{i}.png", 4 * i, 9, 9)
    data = ImageFolder("pictures", size=(6, 5), split={"training": 0.5, "validation": 0.5}, class_weights="balanced")
    block = data["training"].block(0)
    counts = np.bincount(block["targets"])
    assert counts[0] < counts[1]  # bright, dark
    assert np.array_equal(block["weights"], np.float32(counts.sum() / (2 * counts))[block["targets"]])
    text = TEXT.replace("batch_size = 8", 'batch_size = 8\niterator = "balanced"\nclass_weights = { bright = 2.0 }')
    (tmp_path / "balanced.toml").write_text(text)
    folder = json.loads(sigma("run", "balanced.toml", "--json")[1])["folder"]
    assert sigma("replay", folder)[0] == 0
    assert load(folder).evaluate("validation", {"accuracy": "accuracy"})["accuracy"] > 0.7
