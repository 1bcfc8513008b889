"""The examiner describes data sets of any form: columns, classes of splits, pictures, and what is read of others."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from sigma_data import Arrays, Csv, ImageFolder, Series, Tabular
from sigma_data.examining.inspecting import DataInspector
from sigma_data.profiling import sections
from sigma_data.profiling.profile import profile_table
from sigma_kernel import Dataset, Inspection
from sigma_kernel.graph import Spec

RANDOM = np.random.default_rng(5)


def describe(data: Any, splits: dict[str, Dataset]) -> Inspection:
    inspection = DataInspector().describe(data, splits)
    assert json.loads(json.dumps(inspection.document, allow_nan=False)) == inspection.document
    return inspection


def halves(**arrays: Any) -> dict[str, Dataset]:
    parts = {"training": slice(0, 40), "validation": slice(40, 60)}
    whole = {name: Arrays(**{key: values[part] for key, values in arrays.items()}) for name, part in parts.items()}
    return {name: data.encode("targets", 0, whole["training"].class_names("targets")) for name, data in whole.items()}


def test_numbers_and_classes_are_columns() -> None:
    x = RANDOM.normal(size=(60, 3)).astype("float32")
    kinds = np.array(["red", "green", "blue"])[RANDOM.integers(0, 3, 60)]
    splits = halves(inputs=x, targets=kinds)
    document = describe(splits["training"], splits).document
    columns = {column["name"]: column for column in document["columns"]}
    assert [*columns] == ["inputs[0]", "inputs[1]", "inputs[2]", "targets"]
    assert columns["inputs[1]"]["figures"]["mean"] == pytest.approx(x[:40, 1].mean(dtype=float))
    assert dict(columns["targets"]["counts"]) == Counter(kinds[:40].tolist())
    assert document["parts"] == {"training": 40, "validation": 20}
    classes = document["classes_of_parts"]
    assert classes["names"] == ["blue", "green", "red"]
    for name, part in (("training", kinds[:40]), ("validation", kinds[40:])):
        assert dict(zip(classes["names"], classes["counts"][name], strict=True)) == Counter(part.tolist())


def test_pictures_are_shown_by_class_from_black_to_white() -> None:
    pictures = np.zeros((60, 8, 8), np.float32)
    pictures[:, 2, 3] = 16.0
    splits = halves(inputs=pictures, targets=np.array(["a", "b"] * 30))
    inspection = describe(splits["training"], splits)
    assert [*inspection.samples] == ["a", "b"]
    for values in inspection.samples.values():
        assert (values.dtype, values.shape[1:]) == (np.uint8, (3, 8, 8))
        assert (values[:, :, 2, 3] == 255).all()
        assert values.sum() == 255 * 3 * len(values)
    [column] = inspection.document["columns"]
    assert column["name"] == "targets"


def test_whole_numbers_that_are_targets_are_classes() -> None:
    pictures = RANDOM.random((60, 8, 8)).astype("float32")
    numbers = RANDOM.integers(0, 4, 60).astype("int32")
    inspection = describe(None, {"training": Arrays(inputs=pictures[:40], targets=numbers[:40]),
                                 "validation": Arrays(inputs=pictures[40:], targets=numbers[40:])})  # fmt: skip
    classes = inspection.document["classes_of_parts"]
    assert classes["names"] == ["0", "1", "2", "3"]
    assert classes["counts"]["validation"] == [int((numbers[40:] == i).sum()) for i in range(4)]
    assert [*inspection.samples] == ["0", "1", "2", "3"]
    [column] = inspection.document["columns"]
    assert (column["kind"], column["reason"], column["unsure"]) == ("category", "4 classes", "")


def test_what_is_no_column_is_described_by_its_shape_and_its_range() -> None:
    waves = RANDOM.normal(size=(60, 2, 5)).astype("float32")
    waves[3, 1, 2] = 9.0
    splits = halves(inputs=waves, targets=waves[:, 0, :1])
    about = {one["name"]: one for one in describe(splits["training"], splits).document["sections"]}
    assert about["inputs"] == {
        "name": "inputs", "shape": [2, 5], "type": "float32", "missing": 0, "maximum": 9.0,
        "minimum": pytest.approx(waves[:40].min()), "mean": pytest.approx(waves[:40].mean(dtype=float)),
    }  # fmt: skip


class Blocks(Dataset):
    """Two blocks with gaps, with indices of words, and with an ignored class."""

    @property
    def sections(self) -> dict[str, Spec]:
        return {"inputs": Spec((2,), "float32"), "words": Spec((4,), "int32"), "targets": Spec((), "int32")}

    @property
    def blocks(self) -> int:
        return 2

    def rows(self, block: int) -> int:
        return 3

    def block(self, block: int) -> dict[str, np.ndarray]:
        inputs = np.array([[1, np.nan], [2, np.inf], [3, 4]], np.float32) + block
        return {"inputs": inputs, "words": np.ones((3, 4), np.int32), "targets": np.array([0, -1, 1], np.int32)}

    def class_names(self, section: str) -> tuple[str, ...]:
        return ("no", "yes") if section == "targets" else ()


def test_blocks_gaps_and_ignored_classes_are_read() -> None:
    document = describe(Blocks(), {"training": Blocks()}).document
    columns = {column["name"]: column for column in document["columns"]}
    assert [*columns] == ["inputs[0]", "inputs[1]", "targets"], "indices of words are no columns"
    assert (columns["inputs[1]"]["missing"], columns["targets"]["missing"]) == (4, 2)
    assert document["sections"][0]["missing"] == 4
    assert document["classes_of_parts"]["counts"] == {"training": [2, 2]}


def test_of_many_rows_the_first_are_described_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "MOST", 28)  # numbers, of which a row has 7
    inspection = describe(Blocks(), {"training": Blocks()})
    assert inspection.findings == ["the first 4 of 6 rows of 'training' were looked at."]
    assert (inspection.document["rows"], inspection.document["columns"][0]["rows"]) == (6, 4)


def test_a_table_has_the_profile_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("size,town,price\n" + "".join(f"{i},{'ab'[i % 2]},{i * 2.5}\n" for i in range(60)))
    data = Tabular(tmp_path / "t.csv", target="price")
    parts, _ = data.load()
    document = describe(data, dict(parts)).document
    assert document["columns"] == data.profile().document["columns"]
    assert document["samples"][0] == ["0", "a", "0"]
    assert document["samples"][-1] == ["59", "b", "147.5"]
    assert document["classes_of_parts"] == {}


def test_data_sets_of_files_have_the_profile_of_the_file(tmp_path: Path) -> None:
    lines = [f"2024-01-{i + 1:02d};{i * 1.5:.1f}".replace(".", ",") for i in range(28)]
    (tmp_path / "load.csv").write_text("\n".join(["date;load", *lines, ""]))
    form = {"delimiter": ";", "decimal": ","}
    some = {"training": Arrays(inputs=np.zeros((2, 1)))}
    for data in (
        Csv(tmp_path / "load.csv", "load", inputs=("date",), encode="date", **form),
        Series(tmp_path / "load.csv", time="date", target="load", past=3, format=form),
    ):
        profile = describe(data, some)
        columns = {column["name"]: column for column in profile.document["columns"]}
        assert {name: column["kind"] for name, column in columns.items()} == {"date": "date", "load": "number"}
        assert columns["load"]["figures"]["maximum"] == 40.5


def test_a_folder_of_pictures_has_the_profile_of_its_files(tmp_path: Path) -> None:
    for name in ("cats", "dogs"):
        (tmp_path / name).mkdir()
        for i in range(5):
            Image.fromarray(RANDOM.integers(0, 255, (20, 30, 3)).astype("uint8")).save(tmp_path / name / f"{i}.png")
    data = ImageFolder(tmp_path, size=(16, 16))
    splits, names = data.load()
    encoded = {name: split.encode("targets", 0, names) for name, split in splits.items()}
    inspection = describe(data, encoded)
    assert inspection.document["classes"] == {"cats": 5, "dogs": 5}
    assert [*inspection.samples] == ["cats", "dogs"]
    counts = inspection.document["classes_of_parts"]["counts"]
    assert np.sum([*counts.values()], axis=0).tolist() == [5, 5]


def test_texts_have_the_lengths_of_their_cells() -> None:
    texts = [" ".join(["word"] * (4 + i % 5)) + f" {i}" for i in range(60)]
    column = profile_table(pa.table({"text": [*texts, None]}), "t")["text"]
    words = np.array([len(text.split()) for text in texts])
    assert column.kind == "text"
    assert column.lengths["median"] == np.median(words)
    assert column.lengths["mean"] == pytest.approx(words.mean())
    assert sum(column.histogram) == 60
    assert column.content == "5 … 7 … 9 words"


def test_rows_in_memory_are_called_so_and_words_that_cannot_be_written_are_escaped() -> None:
    names = np.array(["good", "b\ud800d"])
    data = Arrays(inputs=np.full((4, 2), 1e308), targets=names[[0, 1, 1, 0]])
    profile = DataInspector().describe({"training": data}, {"training": data})
    assert profile.head.startswith("rows in memory: 4 rows of 'training'")
    assert "duplicates" not in profile.document
    assert profile.document["sections"][0]["mean"] == pytest.approx(1e308)
    text = json.dumps(profile.document, allow_nan=False)
    text.encode()
    assert r"b\\ud800d" in text
