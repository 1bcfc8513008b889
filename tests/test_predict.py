"""``sigma predict``: files in, predictions out."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from sigma_data import Digits
from sigma_kernel.plain import strict
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run import load
from sigma_run.config import build, load as read
from sigma_run.launcher.group import main
from sigma_run.launcher.predictions import Predictions
from sigma_store.checkpoints.store import write
from sigma_testing.checkpoints import newest_checkpoint

END = """
[trainer]
optimiser = "adam"
[hooks.finish]
type = "stop"
when = "epoch reaches 2"
"""
DIGITS = """
format = 1
[data]
dataset = "digits"
preprocessors.scale = "standardise"
[network]
architecture = 'input(8, 8) + flatten() + dense(16, activation="relu") + output(10) + softmax_cross_entropy()'
"""
FLOWERS = """
format = 1
[data]
dataset = "csv"
path = "flowers.csv"
target = "{target}"
split = {{ training = 1.0 }}
[network]
architecture = 'input(2) + output({units}) + {cost}()'
"""
TABLE = "length,kind,width,price\n" + "".join(f"{i}.5,{'ab'[i % 2]},{i % 3},{i}.25\n" for i in range(12))
PICTURES = """
format = 1
[data]
dataset = "mnist"
folder = "idx"
[network]
architecture = 'input(28, 28) + flatten() + output(10) + softmax_cross_entropy()'
"""


@pytest.fixture
def sigma(capsys, tmp_path, monkeypatch):
    """Return a function that runs the command in an empty folder, and returns its exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        capsys.readouterr()
        code = main(list(map(str, arguments)))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert "bug in Sigma" not in said.err
        return code, said.out, said.err

    return run


def ran(text, folder):
    with build(read(text + END), catalogue(), folder) as environment:
        environment.run()
    return environment.run_folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return ran(DIGITS, tmp_path_factory.mktemp("runs"))


def images(count=7):
    return Digits()["validation"].block(0)["inputs"][:count]


def refused(sigma, *arguments):
    """Return the error message of a refusal."""
    code, out, err = sigma("predict", *arguments)
    assert (code, out) == (2, "")
    return [line for line in err.splitlines() if "/checkpoints/" not in line][-1]


# -- valid samples -----------------------------------------------------------------------------------------------------
def test_predictions_of_the_digits_equal_the_trainers_bit_for_bit(digits, sigma):
    with build(read(digits / "config.toml"), catalogue()) as environment:
        trainer = environment.trainers["trainer"]
        trainer.session.restore(load(digits).checkpoint)
        expected = trainer.predict(images(200))
    np.save("x.npy", images(200))
    assert sigma("predict", digits, "x.npy", "--output", "found.npy")[0] == 0
    assert np.array_equal(np.load("found.npy"), expected)
    np.savetxt("x.csv", images(200).reshape(-1, 64), delimiter=",")
    assert sigma("predict", digits, "x.csv", "--output", "found.npy")[0] == 0
    assert np.array_equal(np.load("found.npy"), expected)


def test_rows_of_a_batch_of_one_have_the_bits_of_each_row_alone(digits):
    model, rows = load(digits), images(5)
    alone = np.concatenate([model.predict(rows[i : i + 1]) for i in range(5)])
    assert np.array_equal(model.predict(rows, batch_size=1), alone)
    assert np.array_equal(model.predict(rows[::-1], batch_size=1), alone[::-1])
    assert model.predict(rows[:0], batch_size=1).shape == (0, 10)


def test_the_samples_of_a_file_and_of_arrays_are_those_that_predictions_read(digits, tmp_path):
    model = load(digits)
    np.save(tmp_path / "some.npy", images(3))
    assert np.array_equal(model.read(tmp_path / "some.npy"), images(3))
    arrays = model.arrays(images(3).tolist())
    assert [*arrays] == ["inputs"]
    assert np.array_equal(model.predict(arrays), model.predict(images(3)))


def test_classes_come_with_their_probabilities_as_json(digits, sigma):
    np.save("x.npy", images(3))
    np.save("one.npy", images(4)[3])
    code, out, err = sigma("predict", digits, "x.npy", "one.npy", "--json", "--top", "2")
    found = json.loads(out)
    expected = load(digits).predict(images(4))
    assert code == 0
    assert str(found["checkpoint"]) in err
    assert [(row["input"], row["row"]) for row in found["predictions"]] == [
        ("x.npy", 0), ("x.npy", 1), ("x.npy", 2), ("one.npy", 0),
    ]  # fmt: skip
    for row, values in zip(found["predictions"], expected, strict=True):
        best, second = np.argsort(-values)[:2]
        assert (row["class"], row["label"], row["probability"]) == (best, best, values[best])
        assert [one["class"] for one in row["top"]] == [best, second]
        assert np.array_equal(np.float32(row["probabilities"]), values)


def test_predictions_print_as_a_table_most_probable_first(digits, sigma):
    np.save("x.npy", images(2))
    code, out, _ = sigma("predict", digits, "x.npy", "--top", "3")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert lines[0] == ["input", "row", *["class", "probability"] * 3]
    assert len(lines) == 3
    assert float(lines[1][3]) >= float(lines[1][5]) >= float(lines[1][7])


def test_a_written_table_has_the_class_its_label_and_every_probability(digits, sigma):
    np.save("x.npy", images(5))
    assert sigma("predict", digits, "x.npy", "--output", "found.csv")[:2] == (0, "")
    rows = list(csv.DictReader(Path("found.csv").read_text().splitlines()))
    expected = load(digits).predict(images(5))
    assert [int(row["class"]) for row in rows] == expected.argmax(axis=1).tolist()
    assert np.array_equal(np.float32([[row[f"probability_{i}"] for i in range(10)] for row in rows]), expected)


def test_a_table_without_its_target_is_predicted_with_the_names_of_its_classes(sigma, tmp_path):
    Path("flowers.csv").write_text(TABLE)
    classes = FLOWERS.format(target="kind", units=2, cost="softmax_cross_entropy").replace("input(2)", "input(3)")
    run = ran(classes, tmp_path)
    Path("flowers.csv").rename("gone.csv")
    Path("new.csv").write_text("length,width,price\n0.5,1,3\n")
    rows = [json.loads(sigma("predict", run, name, "--json")[1])["predictions"] for name in ("new.csv", "gone.csv")]
    assert [len(found) for found in rows] == [1, 12]
    assert rows[0][0]["label"] == "ab"[rows[0][0]["class"]]


@pytest.mark.parametrize("gone", [False, True])
def test_categorical_columns_are_encoded_as_in_training(sigma, tmp_path, gone):
    """Encoded columns keep their positions if a new file lacks a category; the training data may have been deleted."""
    Path("flowers.csv").write_text(TABLE)
    text = FLOWERS.format(target="price", units=1, cost="squared_difference").replace("input(2)", "input(4)")
    run = ran(text.replace("split", 'encode = "kind"\nsplit'), tmp_path)
    if gone:
        Path("flowers.csv").unlink()
    Path("new.csv").write_text("length,kind,width\n0.5,b,1\n2.5,b,0\n")
    code, out, err = sigma("predict", run, "new.csv", "--json")
    assert code == 0, err
    expected = load(run).predict([[0.5, 0, 1, 1], [2.5, 0, 1, 0]])
    assert [row["values"] for row in json.loads(out)["predictions"]] == expected.tolist()
    Path("new.csv").write_text("length,kind,width\n0.5,b,1\n2.5,c,0\n")
    text = refused(sigma, run, "new.csv")
    assert "new.csv:3: column 'kind': 'c' is not one of the 2 categories of the training data: 'a', 'b'" in text


@pytest.mark.parametrize(
    "learned",
    [{}, {"categories": 3}, {"categories": {"1": ["b", "a"]}}, {"categories": {"1": [*map(str, range(50_000))]}}],
    ids=["missing", "wrong", "swapped", "huge"],
)
def test_damaged_categories_in_a_checkpoint_are_refused_and_a_resume_restores_them(sigma, tmp_path, learned):
    Path("flowers.csv").write_text(TABLE)
    text = FLOWERS.format(target="price", units=1, cost="squared_difference").replace("input(2)", "input(4)")
    run = ran(text.replace("split", 'encode = "kind"\nsplit'), tmp_path)
    Path("new.csv").write_text("length,kind,width\n0.5,b,1\n2.5,b,0\n")
    path, found = newest_checkpoint(run)
    write(path, evolve(found, values={**found.values, "learned": learned}))
    assert "flowers.csv: the categories of its 1 encoded columns are damaged in the checkpoint" in refused(
        sigma, run, "new.csv"
    )
    assert sigma("resume", run, "--set", "hooks.finish.when=epoch reaches 3")[0] == 0
    assert sigma("predict", run, "new.csv")[0] == 0


@pytest.mark.parametrize("frames", [3, {"inputs": 3}, {"inputs": {"columns": [1]}}, {"inputs": {"rows": []}}])
def test_damaged_names_of_columns_in_a_checkpoint_are_refused(sigma, tmp_path, frames):
    Path("flowers.csv").write_text(TABLE)
    run = ran(
        FLOWERS.format(target="price", units=1, cost="squared_difference").replace(
            "split", 'inputs = ["width", "length"]\nsplit'
        ),
        tmp_path,
    )
    Path("new.csv").write_text("length,width\n0.5,1\n")
    path, found = newest_checkpoint(run)
    write(path, evolve(found, values={**found.values, "learned": {"frames": frames}}))
    assert "flowers.csv: the names of its columns are damaged in the checkpoint" in refused(sigma, run, "new.csv")


def test_columns_are_found_by_name_after_the_training_data_was_deleted(sigma, tmp_path):
    Path("flowers.csv").write_text(TABLE)
    text = FLOWERS.format(target="kind", units=2, cost="softmax_cross_entropy").replace("input(2)", "input(3)")
    run = ran(text, tmp_path)
    Path("flowers.csv").unlink()
    Path("new.csv").write_text("price,width,length\n3,1,0.5\n")
    found = json.loads(sigma("predict", run, "new.csv", "--json")[1])["predictions"]
    names = load(run).checkpoint.values["learned"]["frames"]["inputs"]["columns"]
    expected = load(run).predict([[{"price": 3, "width": 1, "length": 0.5}[name] for name in names]])
    assert [row["probabilities"] for row in found] == expected.tolist()


def test_numbers_are_predicted_as_plain_numbers(sigma, tmp_path):
    Path("flowers.csv").write_text(TABLE)
    text = FLOWERS.format(target="price", units=1, cost="squared_difference")
    run = ran(text.replace("split", 'inputs = ["width", "length"]\nsplit'), tmp_path)
    Path("new.csv").write_text("length,width\n0.5,1\n2.5,0\n")
    found = json.loads(sigma("predict", run, "new.csv", "--json")[1])["predictions"]
    expected = load(run).predict([[1, 0.5], [0, 2.5]])
    assert [row["values"] for row in found] == expected.tolist()
    assert sigma("predict", run, "new.csv")[1].splitlines()[0].split() == ["input", "row", "price"]
    assert sigma("predict", run, "new.csv", "--output", "found.csv")[0] == 0
    assert Path("found.csv").read_text().splitlines()[0] == "input,row,price"


def test_a_saved_image_is_predicted_like_its_array(sigma, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    Path("idx").mkdir()
    pixels = random.integers(0, 256, (20, 28, 28), np.uint8)
    for name in ("train", "t10k"):  # LeCun, Cortes, Burges: the magic number, the sides, the bytes
        Path(f"idx/{name}-images-idx3-ubyte").write_bytes(struct.pack(">4I", 2051, 20, 28, 28) + pixels.tobytes())
        labels = struct.pack(">2I", 2049, 20) + random.integers(0, 10, 20, np.uint8).tobytes()
        Path(f"idx/{name}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    run = ran(PICTURES, tmp_path)
    expected = load(run).predict(pixels[:3].astype(np.float32) / np.float32(255))
    for i in range(3):
        pillow.fromarray(pixels[i]).save(f"{i}.png")
    for name in Path("idx").iterdir():
        name.unlink()  # no training data is read
    assert sigma("predict", run, "0.png", "1.png", "2.png", "--output", "found.npy")[0] == 0
    assert np.array_equal(np.load("found.npy"), expected)


def test_samples_are_read_for_data_sets_without_their_own_reader(digits, sigma, monkeypatch):
    monkeypatch.delattr("sigma_data.datasets.splits.Splits.samples")
    np.savetxt("x.csv", images(3).reshape(-1, 64), delimiter=",")
    assert sigma("predict", digits, "x.csv", "--output", "found.npy")[0] == 0
    assert np.array_equal(np.load("found.npy"), load(digits).predict(images(3)))
    assert "none.csv: there is no such file" in refused(sigma, digits, "none.csv")


def test_the_white_level_of_an_image_can_be_set(sigma, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    Path("flowers.csv").write_text(TABLE)
    run = ran(FLOWERS.format(target="kind", units=2, cost="softmax_cross_entropy").replace("(2)", "(3)", 1), tmp_path)
    pillow.fromarray(np.array([[0, 100, 200]], np.uint8)).save("a.png")
    assert "the value of a white pixel in the training data is unknown. Set it with --white," in refused(
        sigma, run, "a.png"
    )
    assert sigma("predict", run, "a.png", "--white", "255", "--output", "found.npy")[0] == 0
    assert np.array_equal(np.load("found.npy"), load(run).predict([[0, 100, 200]]))


# -- invalid samples ---------------------------------------------------------------------------------------------------
def test_invalid_input_is_reported_in_one_clear_sentence(digits, sigma):
    np.save("nan.npy", np.full((1, 8, 8), np.nan))
    np.save("flat.npy", np.zeros((1, 64)))
    np.save("large.npy", np.array([np.zeros((8, 8)), np.full((8, 8), 1e300)]))
    np.save("object.npy", np.array([{"a": 1}]), allow_pickle=True)
    Path("pickle.npy").write_bytes(pickle.dumps(np.zeros((1, 8, 8))))
    Path("text.csv").write_text("not a table\n")
    Path("bytes.csv").write_bytes(bytes(range(256)))
    Path("narrow.csv").write_text("1,2\n3,4\n")
    Path("words.csv").write_text(",".join(["0"] * 63 + ["x"]) + "\n" + ",".join(["0"] * 63 + ["many"]) + "\n")
    Path("folder.csv").mkdir()
    for name, wrong in {
        "none.npy": "there is no such file",
        "nan.npy": "row 0: nan is not a finite number",
        "large.npy": "large.npy: section 'inputs', row 1, at (0, 0): 1e+300 is too large for float32. Scale the values",
        "flat.npy": "has shape (1, 64); expected ('n', 8, 8)",
        "object.npy": "holds '|O', which is not supported",
        "pickle.npy": "is not an .npy file",
        "text.csv": "columns to predict from; a sample of shape (8, 8) has 64 numbers",
        "bytes.csv": "not valid utf-8",
        "narrow.csv": "2 columns to predict from",
        "words.csv": "words.csv:1: column '63': 'x' is not a number. Correct it, or leave the column out",
        "folder.csv": "is not a regular file",
        "what.exe": "there is no such file",
    }.items():
        found = refused(sigma, digits, name)
        assert found.startswith(name), found
        assert wrong in found, found


def test_the_wrong_one_of_several_files_is_named(digits, sigma):
    np.save("good.npy", images(2))
    np.save("large.npy", np.full((1, 8, 8), 1e300))
    assert refused(sigma, digits, "good.npy", "large.npy").startswith(
        "large.npy: section 'inputs', row 0, at (0, 0): 1e+300"
    )


@pytest.mark.long
def test_invalid_images_are_reported_in_one_clear_sentence(digits, sigma):
    pillow = pytest.importorskip("PIL.Image")
    pillow.new("L", (9, 8)).save("wide.png")
    pillow.new("1", (40_000, 40_000)).save("huge.png")
    Path("text.png").write_text("no picture")
    assert "has 9 x 8 pixels; expected 8 x 8. Resize it." in refused(sigma, digits, "wide.png")
    assert "huge.png: is too large an image" in refused(sigma, digits, "huge.png")
    assert "text.png: not a PNG or JPEG image" in refused(sigma, digits, "text.png")


def test_an_invalid_command_is_refused_before_anything_is_computed(digits, sigma):
    np.save("x.npy", images(1))
    assert "must be a .csv or .npy file" in refused(sigma, digits, "x.npy", "--output", "x.txt")
    assert "'nowhere' is not a directory" in refused(sigma, digits, "x.npy", "--output", "nowhere/x.csv")
    assert "nowhere: not a run folder" in refused(sigma, "nowhere", "x.npy")
    assert "trainer 'other': no such trainer. There is trainer" in refused(sigma, digits, "x.npy", "--trainer", "other")
    assert sigma("predict", digits)[0] == 2
    assert sigma("predict", digits, "x.npy", "--top", "0")[0] == 2
    code, _, err = sigma("predict", digits, "x.npy", "--checkpoint", "3")
    assert (code, "has no checkpoint 3" in err) == (1, True)
    code, _, err = sigma("predict", digits, "x.npy", "--backend", "nump")
    assert (code, "Did you mean 'numpy'?" in err) == (2, True)
    Path("taken.csv").mkdir()
    assert "taken.csv: cannot be written" in refused(sigma, digits, "x.npy", "--output", "taken.csv")


def test_a_network_with_several_inputs_can_only_predict_from_python(sigma, tmp_path):
    Path("flowers.csv").write_text(TABLE)
    text = FLOWERS.format(target="price", units=1, cost="squared_difference")
    text = text.replace("input(2)", 'concat(input(2), input(1, section="targets"))')
    run = ran(text.replace("split", 'inputs = ["width", "length"]\nsplit'), tmp_path)
    assert "the network reads several sections: inputs, targets. Files hold one" in refused(sigma, run, "flowers.csv")
    assert load(run).predict({"inputs": [[1, 2]], "targets": [[3]]}).shape == (1, 1)


# -- several outputs ---------------------------------------------------------------------------------------------------
def test_each_output_of_a_row_has_its_name():
    outputs = {"0-a": np.array([[0.25, 0.75]]), "1-b": np.array([[[1.0, np.inf]]])}
    found = Predictions(outputs, ("0-a",), {"0-a": ("no", "yes")}, [("x.npy", 4)], top=5)
    (row,) = found.rows()
    assert row["0-a"]["label"] == "yes"
    assert [one["label"] for one in row["0-a"]["top"]] == ["yes", "no"]
    assert row["1-b"] == {"values": [[1.0, np.inf]]}
    assert strict(row)["1-b"] == {"values": [[1.0, None]]}  # as JSON
    assert list(found.columns()) == [
        "input", "row", "0-a.class", "0-a.label", "0-a.probability_no", "0-a.probability_yes", "1-b.value_0",
        "1-b.value_1",
    ]  # fmt: skip
    head, line = found.table()
    assert head == ["input", "row", *["0-a.class", "0-a.probability"] * 2, "1-b.values"]
    assert line == ["x.npy", "4", "yes", "0.7500", "no", "0.2500", "1 inf"]
