"""Pictures, sounds and lists in saved datasets, which the library ``datasets`` writes."""

from __future__ import annotations

import io
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest
import soundfile
from PIL import Image

from sigma_data import ImageFolder, SoundFolder
from sigma_data.sound.decoding import SoundForm
from sigma_huggingface import HuggingFace, HuggingFacePictures, HuggingFaceSequences, HuggingFaceSounds
from sigma_huggingface.folder import open_saved
from sigma_huggingface.inspector import HuggingFaceInspector
from sigma_kernel import Dataset, Inspector, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite, InspectorSuite

datasets.disable_progress_bars()
RANDOM = np.random.default_rng(0)
NAMES = datasets.ClassLabel(names=["round", "a square"])
COUNT = 24
LABELS = [i % 2 for i in range(COUNT)]
PICTURES = [RANDOM.integers(0, 255, (20 + i % 3, 24, 3), dtype=np.uint8) for i in range(COUNT)]
LISTS = [RANDOM.integers(0, 9, 2 + i % 4).tolist() for i in range(COUNT)]


def png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def wav(seconds: float, pitch: float) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.sin(pitch * np.arange(int(8000 * seconds)) / 8000), 8000, format="WAV")
    return file.getvalue()


SOUNDS = [wav(0.05 * (1 + i % 3), 3000 + 100 * i) for i in range(COUNT)]


def label(rows: Mapping[str, list], **kinds) -> datasets.Dataset:
    whole = datasets.Dataset.from_dict({**rows, "label": LABELS}).cast_column("label", NAMES)
    for column, kind in kinds.items():
        whole = whole.cast_column(column, kind)  # as to encode sounds needs another library
    return whole


def pictures() -> datasets.Dataset:
    files = [{"bytes": png(pixels), "path": f"{i}.png"} for i, pixels in enumerate(PICTURES)]
    people = [f"person {i // 4}" for i in range(COUNT)]
    return label({"image": files, "person": people}, image=datasets.Image())


def sounds() -> datasets.Dataset:
    return label({"audio": [{"bytes": sound, "path": None} for sound in SOUNDS]}, audio=datasets.Audio())


def divide(rows: datasets.Dataset, **counts: int) -> datasets.DatasetDict:
    starts = np.cumsum([0, *counts.values()])
    parts = {name: rows.select(range(starts[i], starts[i + 1])) for i, name in enumerate(counts)}
    return datasets.DatasetDict(parts)


def rows_of(data: Mapping[str, Dataset], section: str = "inputs") -> dict[str, np.ndarray]:
    return {name: part.block(0)[section] for name, part in data.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "set"


class TestPictures(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _write(self, folder: Path) -> None:
        pictures().save_to_disk(folder)
        self.folder = folder

    def make(self) -> Dataset:
        return HuggingFacePictures(self.folder, size=(8, 8))["training"]


class TestSounds(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _write(self, folder: Path) -> None:
        sounds().save_to_disk(folder)
        self.folder = folder

    def make(self) -> Dataset:
        return HuggingFaceSounds(self.folder, seconds=0.1)["training"]


class TestSequences(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _write(self, folder: Path) -> None:
        label({"list": LISTS}).save_to_disk(folder)
        self.folder = folder

    def make(self) -> Dataset:
        return HuggingFaceSequences(self.folder, "list")["training"]


class SavedInspectorSuite(InspectorSuite):
    rows = staticmethod(pictures)

    def make(self) -> Inspector:
        return HuggingFaceInspector()

    def place(self, folder: Path) -> Path:
        self.rows().save_to_disk(folder / "set")
        return folder / "set"


class TestInspectorOfPictures(SavedInspectorSuite):
    pass


class TestInspectorOfSounds(SavedInspectorSuite):
    rows = staticmethod(sounds)


class TestInspectorOfLists(SavedInspectorSuite):
    rows = staticmethod(lambda: label({"list": LISTS}))


class TestInspectorOfTexts(SavedInspectorSuite):
    rows = staticmethod(lambda: label({"text": [f"one film of {i} nights out" for i in range(COUNT)]}))


class TestInspectorOfTables(SavedInspectorSuite):
    rows = staticmethod(lambda: label({"size": [*map(float, range(COUNT))], "town": ["a", "b", "c"] * 8}))


# -- pictures ----------------------------------------------------------------------------------------------------------
def test_pictures_are_those_of_the_same_files_in_a_folder(folder, tmp_path):
    pictures().save_to_disk(folder, num_shards=3)
    for i, (pixels, name) in enumerate(zip(PICTURES, LABELS, strict=True)):
        (tmp_path / "files" / NAMES.names[name]).mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / NAMES.names[name] / f"{i:02}.png").write_bytes(png(pixels))
    saved = HuggingFacePictures(folder, size=(8, 10), split={"training": 1.0})
    files = ImageFolder(tmp_path / "files", size=(8, 10), split={"training": 1.0})
    order = [int(path.split("/")[1][:2]) for path in files.paths]
    (given,), (expected,) = ([*rows_of(data).values()] for data in (saved, files))
    rows, _ = saved.all_rows()
    listed = np.empty_like(expected)
    listed[order] = files.all_rows()[0].block(0)["inputs"]
    np.testing.assert_array_equal(rows.block(0)["inputs"], listed)
    assert given.shape == expected.shape
    assert saved.classes == ("a square", "round")
    assert rows.block(0)["targets"].tolist() == [1 - name for name in LABELS]
    assert saved.paths[-1] == "data-00002-of-00003.arrow: row 7"


def test_datasets_are_splits_and_the_training_is_divided_if_there_is_no_validation(folder, tmp_path):
    divide(pictures(), train=12, validation=6, test=6).save_to_disk(folder)
    whole = HuggingFacePictures(folder, size=(8, 8))
    assert {name: len(part) for name, part in whole.items()} == {"training": 12, "validation": 6, "test": 6}
    divide(pictures(), train=16, test=8).save_to_disk(tmp_path / "two")
    two = HuggingFacePictures(tmp_path / "two", size=(8, 8), split={"training": 0.75, "validation": 0.25})
    assert {name: len(part) for name, part in two.items()} == {"training": 12, "validation": 4, "test": 8}
    np.testing.assert_array_equal(rows_of(two)["test"][:2], rows_of(whole)["validation"][4:])  # rows 16 and 17
    default = HuggingFacePictures(tmp_path / "two", size=(8, 8))
    assert {name: len(part) for name, part in default.items()} == {"training": 13, "validation": 3, "test": 8}


def test_groups_stay_together(folder):
    pictures().save_to_disk(folder)
    data = HuggingFacePictures(folder, size=(8, 8), group="person", split={"training": 0.5, "validation": 0.5})
    rows = [np.concatenate(part.rows_of_labels) // 4 for part in data.values()]
    assert not {*rows[0].tolist()} & {*rows[1].tolist()}


def test_files_below_the_folder_are_read_and_no_others(folder, tmp_path):
    pictures().save_to_disk(folder)
    outside = tmp_path / "outside.png"
    outside.write_bytes(png(PICTURES[0]))
    (folder / "in.png").write_bytes(png(PICTURES[1]))

    def write(path: str | None) -> HuggingFacePictures:
        file = folder / "data-00000-of-00001.arrow"
        table = pa.ipc.open_stream(file.read_bytes()).read_all()
        rows = table.to_pylist()
        rows[5]["image"] = {"bytes": None, "path": path}
        changed = pa.Table.from_pylist(rows, table.schema)
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(changed)
        return HuggingFacePictures(folder, size=(8, 8))

    inside = write("in.png").all_rows()[0].block(0)["inputs"]
    np.testing.assert_array_equal(inside[5], inside[1])
    for path in (str(outside), "../outside.png", "/etc/passwd"):
        with pytest.raises(SigmaDataError, match=r"leaves the folder\. Give paths below it"):
            write(path).all_rows()
    with pytest.raises(SigmaDataError, match=r"row 5: cannot be read: the row holds no file"):
        write(None).all_rows()
    with pytest.raises(SigmaDataError, match=r"row 5: cannot be read: "):
        write("none.png").all_rows()


def test_damaged_pictures_are_listed_or_left_out(folder):
    files = [{"bytes": b"\x89PNG" if i == 3 else png(pixels), "path": None} for i, pixels in enumerate(PICTURES)]
    label({"image": files}, image=datasets.Image()).save_to_disk(folder)
    with pytest.raises(SigmaDataError, match=r"1 of 24 pictures cannot be used:\n  data-.*row 3: is no picture"):
        HuggingFacePictures(folder, size=(8, 8)).all_rows()
    assert len(HuggingFacePictures(folder, size=(8, 8), broken="skip").all_rows()[0]) == 23


def test_a_table_has_no_columns_of_files(folder):
    pictures().save_to_disk(folder)
    table = open_saved(folder)
    assert table.schema.names == table.read().column_names == ["person", "label"]
    assert table.read(["label"]).num_rows == COUNT


def test_which_column_is_meant_must_be_clear(folder):
    label({"size": [*range(COUNT)]}).save_to_disk(folder)
    with pytest.raises(SigmaConfigError, match=r"has no column of pictures\. Name one as `column`"):
        HuggingFacePictures(folder, size=(8, 8)).all_rows()
    with pytest.raises(SigmaDataError, match="column 'size' holds no pictures, but int64"):
        HuggingFacePictures(folder, column="size", size=(8, 8)).all_rows()
    with pytest.raises(SigmaDataError, match="column 'none' holds no sounds, but null"):
        HuggingFaceSounds(folder, column="none", seconds=1).all_rows()


def test_offsets_outside_of_a_file_are_refused(folder):
    pictures().save_to_disk(folder)
    file = folder / "data-00000-of-00001.arrow"
    whole = bytearray(file.read_bytes())
    lengths = np.cumsum([0, *(len(png(p)) for p in PICTURES)]).astype(np.int32).tobytes()
    at = whole.index(lengths)
    whole[at + 4 : at + 8] = np.int32(1 << 30).tobytes()
    file.write_bytes(whole)
    with pytest.raises(SigmaDataError, match=r"data-00000-of-00001\.arrow: cannot be read"):
        HuggingFacePictures(folder, size=(8, 8)).all_rows()


def test_a_dataset_that_changes_is_refused(folder):
    pictures().save_to_disk(folder)
    data = HuggingFacePictures(folder, size=(8, 8))
    first = data.list_files().pictures[0]
    with data.open_files() as open_picture:
        os.utime(folder / "data-00000-of-00001.arrow", (1, 1))
        with pytest.raises(SigmaDataError, match="has changed while it was read"), open_picture(first):
            pass


# -- sounds ------------------------------------------------------------------------------------------------------------
def test_sounds_are_those_of_the_same_files_in_a_folder(folder, tmp_path):
    divide(sounds(), train=12, validation=12).save_to_disk(folder)
    for i, (sound, name) in enumerate(zip(SOUNDS, LABELS, strict=True)):
        home = tmp_path / "files" / ("train" if i < 12 else "val") / NAMES.names[name]
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{i:02}.wav").write_bytes(sound)
    how = {"seconds": 0.1, "rate": 8000, "window": 128, "hop": 64, "mels": 8}
    saved, files = HuggingFaceSounds(folder, **how), SoundFolder(tmp_path / "files", **how)
    assert saved.names == files.names == ("training", "validation")
    for section in ("inputs", "lengths", "mask", "targets"):
        given, expected = rows_of(saved, section), rows_of(files, section)
        order = np.array([*range(1, 12, 2), *range(0, 12, 2)])  # by folder
        for name in saved:
            np.testing.assert_array_equal(given[name][order], expected[name])
    assert saved.classes == files.classes == ("a square", "round")
    assert saved.samples(folder / "validation", rows_of(saved)["training"].shape[1:]).shape[0] == 12


def test_damaged_sounds_are_listed(folder):
    files = [{"bytes": b"RIFF" if i == 2 else sound, "path": None} for i, sound in enumerate(SOUNDS)]
    label({"audio": files}, audio=datasets.Audio()).save_to_disk(folder)
    with pytest.raises(SigmaDataError, match=r"1 of 24 sounds cannot be used:\n  data-.*row 2: is no WAV or FLAC"):
        HuggingFaceSounds(folder, seconds=0.1).all_rows()
    assert SoundForm(16_000, 1600, "mel", 400, 160, 40).shape == (8, 40)


# -- lists -------------------------------------------------------------------------------------------------------------
def test_lists_are_padded_with_lengths_and_masks(folder):
    label({"list": LISTS}).save_to_disk(folder)
    block = HuggingFaceSequences(folder, "list").all_rows()[0].block(0)
    assert block["inputs"].tolist() == [row + [0] * (5 - len(row)) for row in LISTS]
    assert block["lengths"].tolist() == [len(row) for row in LISTS]
    assert block["mask"].tolist() == [[int(i < len(row)) for i in range(5)] for row in LISTS]
    short = HuggingFaceSequences(folder, "list", length=3).all_rows()[0].block(0)
    assert short["inputs"].tolist() == [(row + [0] * 3)[:3] for row in LISTS]


def test_lists_of_one_length_are_arrays_of_their_shape(folder):
    values = RANDOM.normal(size=(COUNT, 2, 3)).astype(np.float32)
    kinds = {"array": datasets.Array2D((2, 3), "float32"), "fixed": datasets.Sequence(datasets.Value("float32"), 6)}
    rows = {"array": values, "fixed": values.reshape(COUNT, 6), "label": LABELS}
    datasets.Dataset.from_dict(rows, datasets.Features({**kinds, "label": NAMES})).save_to_disk(folder)
    for column, shape in (("array", (2, 3)), ("fixed", (6,))):
        block = HuggingFaceSequences(folder, column).all_rows()[0].block(0)
        assert {*block} == {"inputs", "targets"}
        np.testing.assert_array_equal(block["inputs"], values.reshape(COUNT, *shape))


def test_lists_of_a_dictionary_are_divided_and_predicted_from(folder):
    divide(label({"list": LISTS}), train=16, test=8).save_to_disk(folder)
    data = HuggingFaceSequences(folder, "list", split={"training": 0.5, "validation": 0.5})
    assert {name: len(part) for name, part in data.items()} == {"training": 8, "validation": 8, "test": 8}
    assert data.samples(folder / "test", (3,)).tolist() == [(row + [0] * 3)[:3] for row in LISTS[16:]]
    with pytest.raises(SigmaConfigError, match="the data have a split 'test' already"):
        HuggingFaceSequences(folder, "list", split={"training": 0.5, "test": 0.5}).names  # noqa: B018
    with pytest.raises(SigmaConfigError, match="has splits already"):
        HuggingFaceSequences(folder, "list").all_rows()
    assert (data.claims(folder / "test"), data.claims(folder / "none")) == (True, False)


@pytest.mark.parametrize(
    ("rows", "data"),
    [
        (pictures, lambda folder: HuggingFacePictures(folder, size=(8, 8))),
        (sounds, lambda folder: HuggingFaceSounds(folder, seconds=0.1)),
        (lambda: label({"list": LISTS}), lambda folder: HuggingFaceSequences(folder, "list")),
        (lambda: label({"size": [*map(float, range(COUNT))]}), lambda folder: HuggingFace(folder, "label")),
    ],
)
def test_one_of_several_datasets_is_to_be_named_for_predictions(folder, rows, data):
    divide(rows(), train=16, test=8).save_to_disk(folder)
    trained = data(folder)
    assert trained.claims(folder)
    assert not getattr(trained, "files", lambda path: [])(folder)
    shape = rows_of(trained)["training"].shape[1:]
    with pytest.raises(SigmaDataError, match=r"datasets: train, test\. Predict from one.*, such as .*/set/test\."):
        trained.samples(folder, shape)


@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_a_column_of_empty_lists_is_refused_before_anything_is_drafted(folder, kind):
    features = datasets.Features({"list": datasets.Sequence(datasets.Value(kind)), "label": NAMES})
    datasets.Dataset.from_dict({"list": [[]] * COUNT, "label": LABELS}, features).save_to_disk(folder)
    with pytest.raises(SigmaDataError, match=r"set: all lists of column 'list' are empty\. Name another column"):
        HuggingFaceInspector().draft(folder, "set", {})
    with pytest.raises(SigmaDataError, match=r"set: all lists of column 'list' are empty\. Name another column"):
        HuggingFaceSequences(folder, "list").all_rows()


def test_rows_without_a_class_are_dropped_with_their_lists(folder):
    rows = label({"list": LISTS}).map(lambda row, i: {"label": -1 if i == 3 else row["label"]}, with_indices=True)
    rows.save_to_disk(folder)
    with pytest.raises(SigmaDataError, match=r"row 3: the target or the group is missing, in 1 of 24 rows"):
        HuggingFaceSequences(folder, "list").all_rows()
    block = HuggingFaceSequences(folder, "list", missing_targets="drop", length=5).all_rows()[0].block(0)
    assert block["inputs"].tolist() == [row + [0] * (5 - len(row)) for i, row in enumerate(LISTS) if i != 3]


# -- inspection --------------------------------------------------------------------------------------------------------
def draft(rows: datasets.Dataset | datasets.DatasetDict, folder: Path, **wishes: str) -> dict:
    rows.save_to_disk(folder)
    return tomllib.loads(HuggingFaceInspector().draft(folder, "somewhere/set", wishes).text)


def test_an_inspection_shows_pictures_lists_and_splits(folder):
    rows = pictures().add_column("list", LISTS)
    divide(rows, train=20, test=4).save_to_disk(folder)
    shown = HuggingFaceInspector().inspect(folder)
    table = {row[0]: row for row in shown.table}
    assert shown.head == f"{folder}: 24 rows, 4 columns; training 20, test 4"
    assert table["image"][1:] == ["picture", "", "", "", f"20 pictures, 2 classes, {table['image'][-1][24:]}"]
    assert (table["list"][1], table["list"][-1]) == ("list", "2 … 4 … 5 values")
    assert {*shown.samples} == {"round", "a square"}
    assert json.loads(json.dumps(shown.document))["splits"] == {"training": 20, "test": 4}


def test_a_draft_suits_the_inputs(folder, tmp_path):
    data = draft(pictures(), folder)["data"]
    assert (data["dataset"], data["folder"], data["column"]) == ("huggingface_pictures", "somewhere/set", "image")
    data = draft(sounds(), tmp_path / "a")["data"]
    assert (data["dataset"], data["seconds"]) == ("huggingface_sounds", 0.15)
    data = draft(divide(label({"list": LISTS}), train=16, test=8), tmp_path / "b")["data"]
    assert (data["dataset"], data["split"]) == ("huggingface_sequences", {"training": 0.85, "validation": 0.15})
    texts = {"review": [f"one film of {i} nights out" for i in range(COUNT)]}
    data = draft(label(texts), tmp_path / "c")["data"]
    assert data["columns"]["review"]["type"] == "bag_of_words"
    data = draft(label({"size": [i / 3 for i in range(COUNT)]}), tmp_path / "d", target="size")["data"]
    assert (data["dataset"], data["folder"], data["targets"]) == ("huggingface", "somewhere/set", "numbers")


def test_which_column_is_predicted_must_be_clear(tmp_path):
    datasets.Dataset.from_dict({"a": [1.0, 2.0], "b": [1.0, 2.0]}).save_to_disk(tmp_path / "x")
    with pytest.raises(SigmaConfigError, match=r"which column is to be predicted\? Name it: --target. There are: a, b"):
        HuggingFaceInspector().draft(tmp_path / "x", "x", {})


def test_equal_rows_and_pictures_of_two_splits_are_found(folder, tmp_path):
    table = label({"size": [i / 3 for i in range(18)] + [i / 3 for i in range(6)]})
    divide(table, train=18, test=6).save_to_disk(folder)
    (finding,) = (x for x in HuggingFaceInspector().examine(folder) if x.severity == "error")
    assert "6 of 6 rows of 'test'" in finding.text
    copies = [
        {"bytes": png(np.kron(PICTURES[i % 20][:20], np.ones((4, 4, 1), np.uint8))), "path": None} for i in range(24)
    ]
    divide(label({"image": copies}, image=datasets.Image()), train=20, test=4).save_to_disk(tmp_path / "p")
    findings = [one.text for one in HuggingFaceInspector().examine(tmp_path / "p")]
    assert any("4 of 4 pictures of 'test' are nearly the same as one of 'training'" in text for text in findings)
    divide(sounds(), train=20, validation=4).save_to_disk(tmp_path / "s")
    assert not [x.text for x in HuggingFaceInspector().examine(tmp_path / "s") if "picture" in x.text]
