"""Folders of pictures, and tables of them, as data sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sigma_data import Digits, ImageFolder, Saved
from sigma_data.datasets.shares import Shares
from sigma_data.pictures import blocks, rows, sizes
from sigma_kernel import Environment, SigmaConfigError, SigmaDataError, SigmaPluginError
from sigma_kernel.contracts import Dataset
from sigma_testing import DatasetSuite

Image = pytest.importorskip("PIL.Image")
SIZE = {"size": (4, 4)}
ALL = {"split": {"training": 1.0}, "split_by": "block"}


def write(path, value=0, side=4):
    """Write a picture in which every pixel has a value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((side, side, 3), value, np.uint8)).save(path, "PNG")


@pytest.fixture
def root(tmp_path):
    """Return a folder of 12 cats and 8 dogs, whose pixels have the number of their row."""
    for row in range(20):
        write(tmp_path / "pictures" / ("cat" if row < 12 else "dog") / f"{row:02}.png", row)
    return tmp_path / "pictures"


def values(dataset):
    """Return the value of each picture in the order of the rows, as a whole number."""
    parts = [dataset.block(block)["inputs"][:, 0, 0, 0] for block in range(dataset.blocks)]
    return np.rint(np.concatenate(parts) * 255).astype(int).tolist()


def targets(dataset):
    return np.concatenate([dataset.block(block)["targets"] for block in range(dataset.blocks)]).tolist()


class TestImageFolder(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _written(self, root: Path) -> None:
        self.root = root

    def make(self) -> Dataset:
        return ImageFolder(self.root, size=(4, 4))["training"]


class TestImageFolderInBlocks(TestImageFolder):
    @pytest.fixture(autouse=True)
    def _small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(blocks, "PREPARED", 5 * 4 * 3 * 4 * 4)


# -- folders of classes ------------------------------------------------------------------------------------------------
def test_folders_are_classes_and_rows_are_in_the_order_of_paths(root):
    data = ImageFolder(root, **SIZE, **ALL)
    block = data["training"].block(0)
    assert data.classes == ("cat", "dog")
    assert data["training"].class_names("targets") == ("cat", "dog")
    assert block["inputs"].shape == (20, 3, 4, 4)
    assert block["inputs"].dtype == np.float32
    assert np.array_equal(block["inputs"][7], np.full((3, 4, 4), np.float32(7 / 255)))
    assert block["targets"].tolist() == [0] * 12 + [1] * 8
    assert not block["inputs"].flags.writeable


def test_a_scale_of_1_keeps_bytes(root):
    inputs = ImageFolder(root, **SIZE, **ALL, scale=1, colours="grey")["training"].block(0)["inputs"]
    assert inputs.dtype == np.uint8
    assert inputs[:, 0, 0, 0].tolist() == [*range(20)]


def test_pictures_below_the_folder_of_a_class_belong_to_it(root):
    write(root / "cat" / "indoors" / "sofa" / "x.png", 99)
    data = ImageFolder(root, **SIZE, **ALL)["training"]
    assert values(data)[12] == 99
    assert targets(data) == [0] * 13 + [1] * 8


def test_splits_are_cut_as_those_of_other_data_sets_and_cover_all_rows(root):
    for by, cats in (("record", None), ("stratified", 9), ("block", 12)):
        data = ImageFolder(root, **SIZE, split={"training": 0.75, "validation": 0.25}, split_by=by)
        parts = {name: values(data[name]) for name in data}
        assert sorted(parts["training"] + parts["validation"]) == [*range(20)]
        assert len(parts["training"]) == 15
        assert targets(data["training"]) == [int(row >= 12) for row in parts["training"]]
        assert cats is None or targets(data["training"]).count(0) == cats
    assert ImageFolder(root, **SIZE).names == ("training", "validation")
    assert len(ImageFolder(root, **SIZE)["validation"]) == 4


def test_pictures_of_a_group_stay_in_one_split(root):
    people = [f"{row % 5}" for row in range(20)]
    for row, person in enumerate(people):
        write(root / "bird" / f"person{person}-{row:02}.png", 100 + row)
    for path in [*root.glob("cat/*"), *root.glob("dog/*")]:
        path.unlink()
    (root / "cat").rmdir(), (root / "dog").rmdir()
    for seed in range(3):
        data = ImageFolder(root, **SIZE, group=r"person(\d)", split={"training": 0.6, "validation": 0.4}, seed=seed)
        groups = [{value % 5 for value in values(data[name])} for name in data]
        assert not groups[0] & groups[1]
        assert [*map(len, groups)] == [3, 2]
    assert "bird/person0-00.png: the group 'who' is not in this path" in refusal(root, group="who")
    with pytest.raises(SigmaConfigError, match=r"ImageFolder.group: '\(' is no regular expression: missing"):
        ImageFolder(root, **SIZE, group="(")


def test_parts_of_a_folder_can_be_divided_once_more(root):
    data = Shares(ImageFolder(root, **SIZE, group=r"(\d)\."), split={"training": 0.5, "validation": 0.5})
    assert sorted(values(data["training"]) + values(data["validation"])) == [*range(20)]
    assert not {v % 10 for v in values(data["training"])} & {v % 10 for v in values(data["validation"])}


def refusal(root, **settings):
    with pytest.raises((SigmaDataError, SigmaConfigError)) as caught:
        ImageFolder(root, **{**SIZE, **settings})["training"]
    return str(caught.value)


# -- folders of splits -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "names", [("training", "validation", "test"), ("train", "val", "test"), ("Train", "valid", "testing")]
)
def test_folders_of_splits_are_splits(tmp_path, names):
    for number, name in enumerate(names):
        for row in range(4):
            write(tmp_path / name / ("cat" if row % 2 else "dog") / f"{row}.png", 10 * number + row)
    data = ImageFolder(tmp_path, **SIZE)
    assert data.names == ("training", "validation", "test")
    assert [values(data[name]) for name in data] == [[1, 3, 0, 2], [11, 13, 10, 12], [21, 23, 20, 22]]
    assert [targets(data[name]) for name in data] == [[0, 0, 1, 1]] * 3
    divided = ImageFolder(tmp_path, **SIZE, split={"training": 0.5, "held": 0.5})
    assert divided.names == ("training", "held", "validation", "test")
    assert sorted(values(divided["training"]) + values(divided["held"])) == [0, 1, 2, 3]
    assert values(divided["test"]) == [21, 23, 20, 22]
    assert "split: 'validation' is a folder already" in refusal(tmp_path, split={"training": 0.5, "validation": 0.5})
    with pytest.raises(SigmaConfigError, match="its folders are splits already: training, validation, test"):
        ImageFolder(tmp_path, **SIZE).all_rows()


def test_a_class_that_a_folder_of_a_split_lacks_is_mentioned(tmp_path):
    for row in range(24):
        write(tmp_path / "train" / ("cat" if row % 2 else "dog") / f"{row}.png", row)
    write(tmp_path / "val" / "cat" / "0.png")
    data = ImageFolder(tmp_path, **SIZE)
    (text,) = data["training"].findings(["targets"], {"validation": data["validation"]})
    assert text.startswith("class 'dog' has no row in the split 'validation'")


# -- files that are left out, and errors -------------------------------------------------------------------------------
def test_hidden_files_and_clutter_are_left_out_and_other_files_mentioned(root):
    for name in (
        ".DS_Store",
        "cat/Thumbs.db",
        "cat/.hidden.png",
        "__MACOSX/cat/00.png",
        ".git/x.png",
        "dog/desktop.ini",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"nothing")
    data = ImageFolder(root, **SIZE, **ALL)["training"]
    assert len(data) == 20
    assert data.findings(["targets"], {}) == ()
    (root / "cat" / "notes.txt").write_text("a cat")
    findings = ImageFolder(root, **SIZE, **ALL)["training"].findings(["targets"], {})
    assert findings == ("1 file is left out, by the end of the name: 'cat/notes.txt'.",)


def test_broken_files_are_listed_in_one_error(root):
    for row in range(12):
        (root / "cat" / f"{row:02}.png").write_bytes(b"no picture")
    (root / "dog" / "12.png").write_bytes((root / "dog" / "13.png").read_bytes()[:45])
    lines = refusal(root).splitlines()
    assert lines[0] == f"{root}: 13 of 20 pictures cannot be used:"
    assert [line.split(":")[0] for line in lines[1:11]] == [f"  cat/{row:02}.png" for row in range(10)]
    assert "its format is not recognised" in lines[1]
    assert lines[11] == "  and 3 more"
    assert lines[12] == "Replace or delete them, or set broken = 'skip' to leave them out."


def test_broken_files_are_left_out_by_choice_and_mentioned(root):
    (root / "cat" / "03.png").write_bytes(b"no picture")
    data = ImageFolder(root, **SIZE, **ALL, broken="skip")["training"]
    assert values(data) == [row for row in range(20) if row != 3]
    assert targets(data) == [0] * 11 + [1] * 8
    (text,) = data.findings(["targets"], {})
    assert text.startswith("1 picture is left out: cat/03.png is no picture, or damaged: ")


def test_a_split_of_which_every_picture_is_broken_is_refused(root):
    for path in root.glob("*/*"):
        path.write_bytes(b"")
    assert "the split 'training' has no picture that can be used" in refusal(root, broken="skip")


def test_a_picture_beyond_the_limit_of_pixels_is_broken(root):
    write(root / "dog" / "large.png", side=9)
    assert "dog/large.png: is too large: 9 x 9, more than 80 pixels" in refusal(root, largest=80)


def test_a_file_that_cannot_be_opened_is_broken(root, monkeypatch):
    opening = os.open

    def refuse(path, *arguments):
        if str(path).endswith("05.png"):
            raise PermissionError(13, "Permission denied")
        return opening(path, *arguments)

    monkeypatch.setattr("os.open", refuse)
    assert "cat/05.png: cannot be read: Permission denied" in refusal(root)


def cut(path):
    """Cut a file off, as while it is still written."""
    os.truncate(path, 30)


def test_a_file_that_changes_while_the_folder_is_read_is_refused(root, monkeypatch):
    decode = blocks.PictureForm.decode

    def disturb(form, stream):
        write(root / "cat" / "05.png", 1, side=50)
        return decode(form, stream)

    monkeypatch.setattr(blocks.PictureForm, "decode", disturb)
    assert "cat/05.png: has changed while the folder was read" in refusal(root, broken="skip")
    monkeypatch.setattr(blocks.PictureForm, "decode", lambda form, stream: cut(stream.name) or decode(form, stream))
    assert "has changed while the folder was read" in refusal(root, broken="skip")


def test_links_out_of_the_folder_are_refused(root, tmp_path):
    write(tmp_path / "elsewhere" / "x.png")
    for target, said in (
        (tmp_path / "elsewhere" / "x.png", "is a link that leaves the folder"),
        (tmp_path / "elsewhere", "is a link that leaves the folder"),
        (root / "dog", "is a link to a folder. Copy its files"),
        (root, "is a link to a folder"),
        (root / "nothing", "is a link to nothing. Delete it"),
    ):
        (root / "cat" / "link.png").symlink_to(target)
        assert f"{root / 'cat' / 'link.png'}: {said}" in refusal(root)
        (root / "cat" / "link.png").unlink()
    (root / "cat" / "link.png").symlink_to(root / "dog" / "15.png")
    assert values(ImageFolder(root, **SIZE, **ALL)["training"])[12] == 15


def test_a_name_that_is_no_text_is_refused(root):
    for name in (b"\xff", b"a\nb", b"\x1b[2J"):
        os.mkdir(os.fsencode(root) + b"/" + name)
        assert "holds characters that are no text. Rename it." in refusal(root)
        os.rmdir(os.fsencode(root) + b"/" + name)
    write(root / "cat" / "9.41\u202fPM \N{CAT FACE}.png", 7)
    assert values(ImageFolder(root, **SIZE, **ALL)["training"])[12] == 7


def test_a_folder_that_cannot_be_listed_is_refused(root, monkeypatch):
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("dog"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr("sigma_data.pictures.folder.os.scandir", refuse)
    assert f"{root / 'dog'}: cannot be read: Permission denied. Check its rights." in refusal(root)


def test_a_pipe_is_no_picture(root):
    os.mkfifo(root / "cat" / "pipe.png")
    findings = ImageFolder(root, **SIZE, **ALL)["training"].findings([], {})
    assert findings == ("1 file is left out, by the end of the name: 'cat/pipe.png'.",)


def test_a_folder_without_pictures_of_a_class_is_refused(root, tmp_path):
    (root / "fish").mkdir()
    assert f"{root}: the class 'fish' has no pictures. Add some, or delete its folder." in refusal(root)
    (root / "fish").rmdir()
    write(root / "loose.png")
    assert f"{root}: 'loose.png' is not in the folder of a class. Move it to one" in refusal(root)
    (tmp_path / "empty").mkdir()
    assert "empty: has no pictures. Their names must end in .png" in refusal(tmp_path / "empty")
    assert "there is no such folder. Did you mean 'pictures'?" in refusal(tmp_path / "picture")
    assert "is not a folder" in refusal(root / "loose.png")


@pytest.mark.parametrize("size", [(4,), (4, 0), (4, 4, 3), (4, 2.5), (4, 1 << 15)])
def test_a_size_must_be_a_height_and_a_width(size):
    with pytest.raises(SigmaConfigError, match="ImageFolder.size: must be a height and a width in pixels"):
        ImageFolder("x", size=size)


def test_without_pillow_the_error_says_what_to_install(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(SigmaPluginError, match="pictures need Pillow. Install it"):
        ImageFolder(root, **SIZE)["training"]


def test_pillow_is_imported_only_to_decode():
    code = "import sys, sigma_data as d; d.ImageFolder('x', size=(4, 4)).names; print('PIL' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout == b"False\n"


# -- tables ------------------------------------------------------------------------------------------------------------
LISTED = [
    ("dog/19.png", "old", 0, 1, "big; tame", 7.5),
    ("cat/03.png", "young", 1, 0, "", 0.5),
    ("cat/11.png", "old", 1, 1, "tame", 9.0),
]
COLUMNS = ["path", "label", "furry", "loud", "words", "age"]


@pytest.fixture(params=["csv", "pandas", "arrow"])
def table(request, tmp_path):
    frame = pd.DataFrame(LISTED, columns=COLUMNS)
    if request.param == "csv":
        frame.to_csv(tmp_path / "labels.csv", index=False)
        return tmp_path / "labels.csv"
    return frame if request.param == "pandas" else pa.Table.from_pandas(frame)


def test_a_table_names_pictures_and_their_classes(root, table):
    data = ImageFolder(root, **SIZE, **ALL, table=table)
    assert data.classes == ("old", "young")
    assert values(data["training"]) == [3, 11, 19]
    assert targets(data["training"]) == [1, 0, 0]


def test_several_columns_are_several_labels(root, table):
    data = ImageFolder(root, **SIZE, **ALL, table=table, target=["furry", "loud"])
    assert targets(data["training"]) == [[1, 0], [1, 1], [0, 1]]
    assert data["training"].learned["targets"] == {"targets": ["furry", "loud"]}


def test_separated_words_are_several_labels(root, table):
    data = ImageFolder(root, **SIZE, **ALL, table=table, target="words", separator=";")
    assert targets(data["training"]) == [[0, 0], [0, 1], [1, 1]]
    assert data["training"].learned["targets"] == {"targets": ["big", "tame"]}


def test_a_column_of_numbers_is_a_target(root, table):
    data = ImageFolder(root, **SIZE, **ALL, table=table, target="age")["training"]
    assert targets(data.encode("targets", None)) == [[0.5], [9.0], [7.5]]
    whole = ImageFolder(root, **SIZE, **ALL, table=table, target="loud")["training"]
    assert targets(whole.encode("targets", 2)) == [0, 1, 1]
    assert targets(whole.encode("targets", None)) == [[0], [1], [1]]


def test_rows_of_a_table_are_stratified_by_its_labels(root):
    frame = pd.DataFrame(
        {"file": [f"{'cat' if row < 12 else 'dog'}/{row:02}.png" for row in range(20)], "y": [0, 1] * 10}
    )
    data = ImageFolder(
        root,
        **SIZE,
        table=frame,
        column="file",
        target="y",
        split_by="stratified",
        split={"training": 0.5, "validation": 0.5},
    )
    assert sorted(targets(data["training"].encode("targets", 2))) == [0] * 5 + [1] * 5


def listed(root, rows, **settings):
    return refusal(root, table=pd.DataFrame(rows, columns=["path", "label"]), **ALL, **settings)


def test_errors_of_tables_name_what_is_wrong(root, tmp_path):
    assert "'../x.png' leaves the folder" in listed(root, [("../x.png", "a")])
    assert f"'{tmp_path}/x.png' leaves the folder" in listed(root, [(f"{tmp_path}/x.png", "a")])
    assert "  cat/99.png: cannot be read: No such file or directory" in listed(root, [("cat/99.png", "a")])
    assert "  cat: cannot be read: " in listed(root, [("cat", "a")])
    assert "a\\x00b: cannot be read: embedded null byte" in listed(root, [("a\0b", "a")]).replace("\0", "\\x00")
    assert "table:1: there is no path" in listed(root, [("cat/00.png", "a"), ("", "b")])
    assert "table:1: a label is missing" in listed(root, [("cat/00.png", "a"), ("cat/01.png", None)])
    assert "table: there is no column 'label'; it has 'path'" in refusal(
        root, table=pd.DataFrame({"path": ["cat/00.png"]})
    )
    assert "a separator needs one `target`" in listed(root, [("cat/00.png", 1)], separator=";")
    assert "there is no label" in listed(root, [("cat/00.png", "")], separator=";")
    (tmp_path / "t.csv").write_text("path,label\ncat/00.png,\n")
    assert "t.csv:2: a label is missing" in refusal(root, table=tmp_path / "t.csv")
    assert "there is no such folder" in listed(tmp_path / "nowhere", [("cat/00.png", "a")])


# -- blocks, memory and the cache --------------------------------------------------------------------------------------
@pytest.fixture
def in_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "PREPARED", 6 * 4 * 3 * 4 * 4)  # six pictures


def everything(root, **settings):
    data = ImageFolder(root, **SIZE, **settings)
    return {
        (name, block): {key: (x.dtype, x.tobytes()) for key, x in data[name].block(block).items()}
        for name in data
        for block in range(data[name].blocks)
    }


def test_blocks_hold_at_most_as_much_as_they_may_and_a_share_of_every_class(root, in_blocks):
    data = ImageFolder(root, **SIZE, **ALL)["training"]
    assert [data.rows(block) for block in range(data.blocks)] == [5, 5, 5, 5]
    assert values(data) == [row for start in range(4) for row in range(start, 20, 4)]
    assert [targets_of.tolist().count(0) for targets_of in (data.block(b)["targets"] for b in range(4))] == [3] * 4
    assert data.column("targets").tolist() == targets(data)


@pytest.mark.parametrize("memory", [0, "0.5 KB", "2 GB"])
def test_rows_have_the_same_bits_whether_they_fit_into_memory_or_not(root, tmp_path, in_blocks, memory):
    whole = everything(root)
    settings = {"memory": memory, "cache": str(tmp_path / "cache")}
    assert everything(root, **settings) == whole
    files = sorted(path.name for path in (tmp_path / "cache").glob("*"))
    assert len(files) == (0 if memory == "2 GB" else 2 * len(whole))
    assert everything(root, **settings, threads=1) == whole
    data = ImageFolder(root, **SIZE, **settings)["training"]
    assert isinstance(data.pixels[0], np.memmap) == (memory != "2 GB")


def count_decoded(monkeypatch):
    decoded, decode = [], blocks.PictureForm.decode
    monkeypatch.setattr(
        blocks.PictureForm, "decode", lambda form, stream: decoded.append(stream.name) or decode(form, stream)
    )
    return decoded


def test_an_interrupted_preparation_is_continued(root, tmp_path, in_blocks, monkeypatch):
    settings = {**ALL, "memory": 0, "cache": tmp_path / "cache", "threads": 1}
    whole, decode, decoded = everything(root, **ALL), blocks.PictureForm.decode, []

    def interrupt(form, stream):
        decoded.append(stream.name)
        if len(decoded) == 13:
            raise KeyboardInterrupt
        return decode(form, stream)

    with monkeypatch.context() as patched:
        patched.setattr(blocks.PictureForm, "decode", interrupt)
        with pytest.raises(KeyboardInterrupt):
            everything(root, **settings)
    assert len([*(tmp_path / "cache").glob("*.json")]) == 2
    assert not [*(tmp_path / "cache").glob("*.part")]
    again = count_decoded(monkeypatch)
    assert everything(root, **settings) == whole
    assert len(again) == 10  # two blocks of four
    assert everything(root, **settings) == whole
    assert len(again) == 10


def test_a_picture_that_has_changed_is_decoded_again_with_its_block(root, tmp_path, in_blocks, monkeypatch):
    settings = {**ALL, "memory": 0, "cache": tmp_path / "cache"}
    everything(root, **settings)
    write(root / "cat" / "05.png", 77)
    decoded = count_decoded(monkeypatch)
    data = ImageFolder(root, **SIZE, **settings)["training"]
    assert 77 in values(data)
    assert 5 not in values(data)
    assert len(decoded) == 5
    for other in ({"colours": "grey"}, {"fit": "pad"}, {"background": 0}, {"size": (5, 4)}):
        del decoded[:]
        ImageFolder(root, **{**SIZE, **settings, **other})["training"]
        assert len(decoded) == 20, other
    del decoded[:]
    ImageFolder(root, **SIZE, **settings, scale=2.0)["training"]
    assert decoded == []


def test_a_damaged_file_of_the_cache_is_written_again(root, tmp_path, in_blocks):
    settings = {**ALL, "memory": 0, "cache": tmp_path / "cache"}
    whole = everything(root, **settings)
    for damage in (lambda x: x[:-1], lambda x: b"", lambda x: x[:20] + b"x" * 20, lambda x: b"{"):
        for end in ("npy", "json"):
            path = min((tmp_path / "cache").glob(f"*.{end}"))
            path.write_bytes(damage(path.read_bytes()))
            assert everything(root, **settings) == whole


def test_broken_files_are_remembered_in_the_cache(root, tmp_path, in_blocks, monkeypatch):
    (root / "cat" / "03.png").write_bytes(b"no picture")
    settings = {**ALL, "memory": 0, "cache": tmp_path / "cache"}
    said = refusal(root, **settings)
    decoded = count_decoded(monkeypatch)
    assert refusal(root, **settings) == said
    assert 3 not in values(ImageFolder(root, **SIZE, **settings, broken="skip")["training"])
    assert {Path(name).name for name in decoded} == {"03.png"}


def test_a_file_that_may_be_read_by_now_is_decoded_although_the_cache_has_it_as_broken(root, tmp_path, in_blocks):
    settings, opening = {**ALL, "memory": 0, "cache": tmp_path / "cache"}, os.open

    def refuse(path, *arguments):
        if str(path).endswith("05.png"):
            raise PermissionError(13, "Permission denied")
        return opening(path, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.open", refuse)
        assert "Permission denied" in refusal(root, **settings)
    assert 5 in values(ImageFolder(root, **SIZE, **settings)["training"])


def test_a_full_disk_is_an_error_that_says_what_to_do(root, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    said = refusal(root, memory=0, cache=tmp_path / "cache")
    assert "decoded pictures cannot be kept: No space left on device. Make room, set `cache`" in said
    assert [*(tmp_path / "cache").iterdir()] == []
    (tmp_path / "file").write_text("")
    assert "decoded pictures cannot be kept: File exists" in refusal(root, memory=0, cache=tmp_path / "file")


def test_the_cache_is_in_the_folder_of_the_environment_variable(root, tmp_path, monkeypatch):
    monkeypatch.setenv("SIGMA_CACHE", str(tmp_path / "own"))
    ImageFolder(root, **SIZE, memory=0)["training"]
    assert [*(tmp_path / "own" / "pictures").glob("*.npy")]
    monkeypatch.delenv("SIGMA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    ImageFolder(root, **SIZE, memory=0)["training"]
    assert [*tmp_path.glob("xdg/sigma/pictures/*.npy")]


def test_sizes_of_memory_are_written_with_a_unit(root):
    written = {"2 GB": 2 * 10**9, "512MiB": 2**29, "1.5 kb": 1500, "7 B": 7, 12: 12, None: None}
    assert {text: ImageFolder(root, **SIZE, memory=text).memory for text in written} == written
    for text in ("2", "much", "2 ib", "-1 GB", "1e9 B"):
        with pytest.raises(SigmaConfigError, match="is not a size. Write one such as '2 GB'"):
            ImageFolder(root, **SIZE, memory=text)
    with pytest.raises(SigmaConfigError, match="ImageFolder.memory: must be at least 0"):
        ImageFolder(root, **SIZE, memory=-1)


def test_free_memory_is_that_of_the_system_and_of_the_control_group(tmp_path):
    assert sizes.free_memory() > 2**20
    group = tmp_path / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    assert sizes.free_memory(tmp_path) == 4000 * 1024
    for name, text in (
        ("memory.current", "3000000"),
        ("memory.stat", "anon 5\ninactive_file 500000\n"),
        ("memory.max", "max"),
    ):
        (group / name).write_text(text)
    assert sizes.free_memory(tmp_path) == 4000 * 1024
    (group / "memory.max").write_text("4000000\n")
    assert sizes.free_memory(tmp_path) == 1_500_000
    (tmp_path / "proc" / "meminfo").unlink()
    assert sizes.free_memory(tmp_path) > 2**20  # half of all


def test_long_preparations_are_reported(root, monkeypatch, capfd):
    monkeypatch.setattr("sigma_data.pictures.progress.PAUSE", 0.0)
    ImageFolder(root, **SIZE)["training"]
    assert f"{root}: 20 of 20 pictures decoded." in capfd.readouterr().err
    monkeypatch.setattr("sigma_data.pictures.progress.PAUSE", 60.0)
    ImageFolder(root, **SIZE)["training"]
    assert capfd.readouterr().err == ""
    for said in (f"{root}: 0 MB of decoded pictures are written to {root.parent / 'cache'}, once.\n", ""):
        ImageFolder(root, **SIZE, memory=0, cache=root.parent / "cache")["training"]
        assert capfd.readouterr().err == said


# -- prediction --------------------------------------------------------------------------------------------------------
def test_samples_are_brought_to_the_same_size(root, tmp_path):
    data = ImageFolder(tmp_path / "deleted", size=(6, 3), fit="stretch")
    sample = data.samples(root / "dog" / "19.png", (3, 6, 3))
    assert sample.shape == (1, 3, 6, 3)
    assert (sample == np.float32(19 / 255)).all()
    assert data.samples(root, (3, 6, 3))[:, 0, 0, 0].tolist() == [np.float32(row / 255) for row in range(20)]
    assert (data.samples(root / "dog" / "19.png", (3, 6, 3), white=2.0) == np.float32(38 / 255)).all()
    np.save(tmp_path / "rows.npy", np.full((2, 3, 6, 3), 51, np.uint8))
    assert np.allclose(data.samples(tmp_path / "rows.npy", (3, 6, 3)), 0.2)


def test_samples_that_do_not_fit_are_refused(root, tmp_path, told):
    data = ImageFolder(tmp_path / "deleted", size=(6, 3))
    assert "pictures have shape (3, 6, 3); the network takes (3, 6, 4)" in told(data.samples, root, (3, 6, 4))
    assert "no.png: cannot be read: No such file" in told(data.samples, root / "no.png", (3, 6, 3))
    (tmp_path / "empty").mkdir()
    assert "empty: has no pictures" in told(data.samples, tmp_path / "empty", (3, 6, 3))
    (root / "cat" / "bad.png").write_bytes(b"")
    said = told(data.samples, root, (3, 6, 3))
    assert "1 of 21 pictures cannot be used:\n  cat/bad.png: is no picture" in said
    assert said.endswith("\nReplace them, or leave them out.")


def test_what_a_run_has_learned_is_enough_to_read_samples(root, tmp_path, told):
    data = ImageFolder(root, size=(6, 3), fit="pad", background=7, colours="grey", scale=0.5)
    learned = json.loads(json.dumps(data["training"].learned))
    kept = Saved(tmp_path / "rows.safetensors")
    write(tmp_path / "wide.png", 200, side=9)
    samples = kept.samples(tmp_path / "wide.png", (1, 6, 3), learned=learned)
    assert np.array_equal(samples, data.samples(tmp_path / "wide.png", (1, 6, 3)))
    assert samples[0, 0, :, 0].tolist() == [3.5, 100, 100, 100, 3.5, 3.5]
    for damage in ({"form": {**learned["pictures"]["form"], "width": "3"}}, {"form": {}}, {"scale": None}, []):
        damaged = {**learned["pictures"], **damage} if damage else damage
        said = told(partial(kept.samples, learned={"pictures": damaged}), tmp_path / "wide.png", (1, 6, 3))
        assert "wide.png: the form of the pictures is damaged in the checkpoint: " in said, damage


# -- in use ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("factor", [1 / 255, 1 / 3, 1 / 128, 0.1, 0.7, 2.5, 1e-40, 0.0, -1 / 255, -3.0])
def test_a_scaled_byte_is_the_byte_times_the_factor(factor):
    values = np.arange(256, dtype=np.uint8)
    assert np.array_equal(rows.scale_bytes(values, factor), (values * factor).astype(np.float32))


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Return a folder with the shipped digits as pictures, by class, of 16 x 16 pixels."""
    root = tmp_path_factory.mktemp("digits")
    block = Digits(split={"training": 1.0})["training"].block(0)
    for row, (pixels, label) in enumerate(zip(block["inputs"], block["targets"].tolist(), strict=True)):
        (root / str(label)).mkdir(exist_ok=True)
        large = np.kron(pixels * 255, np.ones((2, 2))).round().astype(np.uint8)
        Image.fromarray(large).save(root / str(label) / f"{row}.png")
    return root


@pytest.mark.rooms
def test_a_network_learns_digits_from_pictures_with_the_same_bits_for_any_memory(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "PREPARED", 400 * 4 * 64)
    learned = []
    for memory in ("1 GB", "10 KB", 0):
        settings = {"colours": "grey", "split_by": "stratified", "memory": memory, "cache": tmp_path / "cache"}
        with Environment("digits", seed=0) as sigma:
            trainer = sigma.create_trainer(
                data=ImageFolder(digits, size=(8, 8), **settings),
                batch_size=32,
                network="input(1, 8, 8) + flatten() + dense(48, 'relu') + output(10) + softmax_cross_entropy()",
                optimiser={"type": "adam", "learning_rate": 0.01},
            )
            trainer.fit(epochs=8)
            assert trainer.evaluate("validation", {"accuracy": "accuracy"})["accuracy"] > 0.9
            learned.append({name: np.asarray(x).tobytes() for name, x in trainer.parameters().items()})
    assert learned[0] == learned[1] == learned[2]
