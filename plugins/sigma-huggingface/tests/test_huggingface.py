from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pytest

from sigma_huggingface import HuggingFace
from sigma_huggingface.folder import open_saved
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite

datasets.disable_progress_bars()
ROWS = {
    "size": [i / 3 for i in range(40)],
    "town": [["Bern", "Thun", None][i % 3] for i in range(40)],
    "label": [i % 2 for i in range(40)],
}


def make_rows(first: int = 0, count: int = 40) -> datasets.Dataset:
    rows = datasets.Dataset.from_dict({name: values[first : first + count] for name, values in ROWS.items()})
    return rows.cast_column("label", datasets.ClassLabel(names=["negative", "a positive one"]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_rows().save_to_disk(tmp_path / "one", num_shards=3)
    parts = {"train": make_rows(0, 30), "validation": make_rows(30, 6), "extra": make_rows(36)}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "parts")
    return tmp_path


class TestHuggingFace(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _write(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> Dataset:
        return HuggingFace(self.folder / "one", "label")["training"]


def test_rows_are_those_that_the_library_loads(folder):
    loaded, table = datasets.load_from_disk(folder / "one"), open_saved(folder / "one")
    names = loaded.features["label"].names
    assert table.read().to_pylist() == [{**row, "label": names[row["label"]]} for row in loaded]
    assert table.read(["town"]).column("town").to_pylist() == loaded["town"][:]
    assert table.place(39).startswith(f"{folder}/one/data-00002-of-00003.arrow: row ")


def test_a_dataset_is_divided_and_classes_have_names(folder):
    data = HuggingFace(folder / "one", "label", split={"training": 0.75, "validation": 0.25})
    assert data.names == ("training", "validation")
    assert data.classes == ("a positive one", "negative")
    block = data["training"].block(0)
    assert {name: len(values) for name, values in block.items()} == {"inputs": 30, "targets": 30}
    folds = HuggingFace(folder / "one", "label", fold={"number": 1, "of": 4})
    assert {name: len(part) for name, part in folds.items()} == {"training": 30, "validation": 10}


def test_the_datasets_of_a_dictionary_are_splits_encoded_by_the_training(folder):
    data = HuggingFace(folder / "parts", "label")
    assert data.names == ("training", "validation", "extra")
    blocks = {name: part.block(0)["inputs"] for name, part in data.items()}
    assert {name: len(values) for name, values in blocks.items()} == {"training": 30, "validation": 6, "extra": 4}
    scaled = (np.array(ROWS["size"]) - np.mean(ROWS["size"][:30])) / np.std(ROWS["size"][:30])
    np.testing.assert_allclose(blocks["training"][:, 0], scaled[:30], atol=1e-6)
    np.testing.assert_allclose(blocks["validation"][:, 0], scaled[30:36], atol=1e-6)
    np.testing.assert_allclose(data.samples(folder / "parts" / "extra", blocks["extra"].shape[1:]), blocks["extra"])


def test_the_training_is_divided_if_there_is_no_validation(folder, tmp_path):
    datasets.DatasetDict({"train": make_rows(0, 30), "test": make_rows(30, 10)}).save_to_disk(tmp_path / "two")
    data = HuggingFace(tmp_path / "two", "label", split={"training": 0.8, "validation": 0.2})
    assert data.names == ("training", "validation", "test")
    blocks = {name: part.block(0)["inputs"] for name, part in data.items()}
    assert {name: len(values) for name, values in blocks.items()} == {"training": 24, "validation": 6, "test": 10}
    size = np.array(ROWS["size"])
    training = blocks["training"][:, 0]
    assert abs(training.mean()) < 1e-6  # the encoder was fitted on these rows alone
    mean, deviation = np.mean(inside := size[:30][_rows_of(data)]), np.std(inside)
    np.testing.assert_allclose(blocks["test"][:, 0], (size[30:] - mean) / deviation, atol=1e-5)
    with pytest.raises(SigmaConfigError, match="the data have a split 'test' already"):
        HuggingFace(tmp_path / "two", "label", split={"training": 0.8, "test": 0.2}).names  # noqa: B018


def _rows_of(data: HuggingFace) -> np.ndarray:
    return data["training"].rows_of_dataset


def test_another_table_is_read_with_the_columns_of_the_training(folder, tmp_path):
    (tmp_path / "x.csv").write_text("town,size\nBern,1\nBasel,2\n")
    data = HuggingFace(folder / "one", "label")
    width = data["training"].block(0)["inputs"].shape[1]
    assert data.samples(tmp_path / "x.csv", (width,)).shape == (2, width)
    assert data.samples(folder / "one", (width,)).shape == (40, width)
    assert (data.claims(folder / "one"), data.claims(tmp_path / "x.csv")) == (True, False)  # the others are streamed


def test_splits_that_are_there_are_not_divided_again(folder):
    with pytest.raises(SigmaConfigError, match="has splits already: training, validation, extra"):
        HuggingFace(folder / "parts", "label").all_rows()
    with pytest.raises(SigmaConfigError, match="has splits already"):
        HuggingFace(folder / "parts", "label", fold={"number": 0, "of": 2}).load()


def test_rows_without_a_class_are_refused_or_dropped(tmp_path):
    rows = make_rows().map(lambda row, i: {"label": -1 if i == 3 else row["label"]}, with_indices=True)
    rows.save_to_disk(tmp_path / "x")
    with pytest.raises(SigmaDataError, match=r"data-00000-of-00001\.arrow: row 3: the target.*missing, in 1 of 40"):
        HuggingFace(tmp_path / "x", "label").all_rows()
    assert len(HuggingFace(tmp_path / "x", "label", missing_targets="drop").all_rows()[0]) == 39


# -- hostile folders ---------------------------------------------------------------------------------------------------
def change(path: Path, **values) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("name", ["../one/state.json", "/etc/passwd", "a/b", "..", "x\0"])
def test_files_outside_of_the_folder_are_not_read(folder, name):
    change(folder / "one" / "state.json", _data_files=[{"filename": name}])
    with pytest.raises(SigmaDataError, match=r"leaves the folder\. Save the dataset again"):
        HuggingFace(folder / "one", "label").all_rows()
    change(folder / "parts" / "dataset_dict.json", splits=["train", name])
    with pytest.raises(SigmaDataError, match=r"leaves the folder\. Save the dataset again"):
        HuggingFace(folder / "parts", "label").load()


def test_links_out_of_the_folder_are_refused(folder):
    file = folder / "one" / "data-00001-of-00003.arrow"
    os.replace(file, folder / "outside.arrow")
    file.symlink_to(folder / "outside.arrow")
    with pytest.raises(SigmaDataError, match=r"'data-00001-of-00003\.arrow' leaves the folder"):
        HuggingFace(folder / "one", "label").all_rows()


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("state.json", "{", r"state\.json: is not JSON"),
        ("state.json", "[" * 100_000, r"state\.json: is not JSON"),
        ("state.json", "[]", r"state\.json: is no object of JSON"),
        ("state.json", "{}", r"state\.json: names no files"),
        ("state.json", '{"_data_files": [3]}', r"state\.json: names no files"),
        ("state.json", '{"_data_files": [{"filename": "none.arrow"}]}', r"none\.arrow: there is no such file"),
        ("state.json", '{"_indices_files": [{"filename": "x"}]}', "selects rows by a file of indices"),
        ("dataset_info.json", '{"features": {"label": {"_type": "ClassLabel"}}}', "'label' have no names"),
        ("dataset_info.json", '{"features": {"label": {"_type": "ClassLabel", "names": ["a"]}}}', "row 1: column 'la"),
        ("data-00001-of-00003.arrow", "x" * 100, r"data-00001-of-00003\.arrow: cannot be read"),
    ],
)
def test_damaged_folders_are_refused_with_their_place(folder, file, text, reason):
    (folder / "one" / file).write_text(text)
    with pytest.raises(SigmaDataError, match=reason) as error:
        HuggingFace(folder / "one", "label").all_rows()
    assert str(error.value).startswith(str(folder / "one"))


def test_folders_without_a_dataset_or_without_training_are_refused(folder):
    with pytest.raises(SigmaDataError, match=r"holds no dataset, as it has no state\.json"):
        HuggingFace(folder, "label").all_rows()
    with pytest.raises(SigmaDataError, match="there is no such folder"):
        HuggingFace(folder / "none", "label").all_rows()
    change(folder / "parts" / "dataset_dict.json", splits=["validation"])
    with pytest.raises(SigmaDataError, match="has no split 'train', only validation"):
        HuggingFace(folder / "parts", "label").names  # noqa: B018
    change(folder / "parts" / "dataset_dict.json", splits=["train", "valid", "dev"])
    with pytest.raises(SigmaDataError, match="several splits are 'validation'"):
        HuggingFace(folder / "parts", "label").names  # noqa: B018
    change(folder / "parts" / "dataset_dict.json", splits=3)
    with pytest.raises(SigmaDataError, match=r"dataset_dict\.json: names no splits"):
        HuggingFace(folder / "parts", "label").names  # noqa: B018


def test_a_dataset_that_changes_while_it_is_read_is_refused(folder):
    table = open_saved(folder / "one")
    os.utime(folder / "one" / "data-00001-of-00003.arrow", (1, 1))
    with pytest.raises(SigmaDataError, match="has changed while it was read"):
        table.read()


def test_the_library_is_not_imported(folder):
    code = (
        "import sys; from sigma_huggingface import HuggingFace; "
        f"HuggingFace({str(folder / 'one')!r}, 'label').load(); assert 'datasets' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
