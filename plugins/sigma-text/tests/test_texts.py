"""Folders of text files, and speeches, by encoders: splits, classes, predictions, files that are no texts."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from sigma_data import TargetMeanEncoder
from sigma_kernel import SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite
from sigma_text import BagOfWordsEncoder, Speeches, Texts, TokensEncoder

BIRDS, FISH = ("a bird sings", "the bird flies high", "birds have a beak"), ("a fish swims", "the fish dives deep")


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


@pytest.fixture
def animals(tmp_path):
    files = {f"bird/{i}.txt": text for i, text in enumerate(BIRDS * 4)}
    return write(tmp_path / "animals", files | {f"fish/{i}.txt": text for i, text in enumerate(FISH * 4)})


class TestTexts(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _animals(self, animals):
        self.folder = animals

    def make(self):
        return Texts(self.folder)["training"]


class TestSpeeches(DatasetSuite):
    def make(self):
        return Speeches(encoder=BagOfWordsEncoder(most=50))["validation"]


def read_state(data):
    return data.learned["frames"]["inputs"]["columns"][0]["state"]


# -- rows --------------------------------------------------------------------------------------------------------------
def test_folders_are_classes_and_rows_are_in_the_order_of_paths(animals):
    data = Texts(animals, split={"training": 1.0}, encoder=TokensEncoder(length=4))["training"]
    assert data.class_names("targets") == ("bird", "fish")
    assert data.block(0)["targets"].tolist() == [0] * 12 + [1] * 8
    words = ["", "", *read_state(data)["tokens"]]
    order = sorted(map(str, range(12)))  # "10" before "2"
    rows = data.block(0)["inputs"]
    assert [" ".join(words[i] for i in row if i) for row in rows[:12]] == [(BIRDS * 4)[int(i)] for i in order]
    assert rows.dtype == np.int32


def test_the_encoder_learns_from_the_training_split_alone(animals):
    data = Texts(animals, split={"training": 0.5, "validation": 0.5}, split_by="block")
    assert set(data) == {"training", "validation"}
    assert "fish" not in read_state(data["training"])["tokens"]
    write(animals, {"fish/7.txt": "quiz"})
    again = Texts(animals, split={"training": 0.5, "validation": 0.5}, split_by="block")
    assert again["training"].learned == data["training"].learned
    assert (again["validation"].block(0)["inputs"][-1].tolist()) == [1, 0, 0, 0]


def test_training_rows_are_encoded_as_such(animals):
    encoder = TargetMeanEncoder(smoothing=1.0)  # which leaves a row's own target out
    data = Texts(animals, split={"training": 0.8, "validation": 0.2}, encoder=encoder)
    usual = {data.encode_texts([text])[0, 0] for text in (*BIRDS, *FISH)}
    assert {*data["validation"].block(0)["inputs"][:, 0]} <= usual
    assert not {*data["training"].block(0)["inputs"][:, 0]} <= usual


def test_folders_may_be_splits(tmp_path):
    root = write(
        tmp_path, {"train/a/1.txt": "x y", "train/b/1.txt": "z", "val/a/1.txt": "x q", "test/b/2.txt": "z", ".x/1": ""}
    )
    data = Texts(root)
    assert data.names == ("training", "validation", "test")
    assert [len(part) for part in data.values()] == [2, 1, 1]
    assert read_state(data["training"])["tokens"] == ["x", "y", "z"]
    assert data["validation"].block(0)["inputs"].tolist() == [[2, 1]]
    assert data["test"].block(0)["targets"].tolist() == [1]
    (root / "test/b/2.txt").rename(root / "test/b/2.md")
    with pytest.raises(SigmaDataError, match="the split 'test' has no texts"):
        Texts(root, ends=[".txt"])["training"]


def test_all_rows_are_encoded_as_if_for_training(animals):
    rows, classes = Texts(animals, split={"training": 0.5, "validation": 0.5}).all_rows()
    whole = Texts(animals, split={"training": 1.0}, split_by="block")
    assert classes == whole.classes
    assert len(rows) == 20
    assert rows.learned == whole["training"].learned
    assert np.array_equal(rows.block(0)["inputs"], whole["training"].block(0)["inputs"])


def test_each_text_is_held_out_in_one_fold(animals):
    held = []
    for number in range(4):
        data = Texts(animals, split={"training": 0.8, "validation": 0.2}, fold={"number": number, "of": 4})
        assert data.names == ("training", "validation")
        rows = [set(data[name].rows_of_dataset.tolist()) for name in data.names]
        assert rows[0] | rows[1] == set(range(20))
        assert not rows[0] & rows[1]
        held += rows[1]
    assert sorted(held) == [*range(20)]


def test_folders_that_are_splits_have_no_folds(tmp_path):
    root = write(tmp_path, {"train/a/1.txt": "x y", "val/a/1.txt": "x q"})
    with pytest.raises(SigmaConfigError, match="fold: the texts have splits already: training, validation"):
        Texts(root, fold={"number": 0, "of": 2}).load()


def test_hidden_files_are_left_out_and_others_with_a_warning(animals):
    write(animals, {"bird/.DS_Store": b"\xff", ".git/x.txt": "x", "README.md": "# Animals", "fish/a.png": b""})
    data = Texts(animals)["training"]
    assert data.findings((), {}) == ("2 files are no texts, and left out: 'README.md', 'fish/a.png'.",)
    assert len(Texts(animals, split={"training": 1.0})["training"]) == 20


def test_line_ends_marks_of_encodings_and_compression_do_not_matter(tmp_path):
    contents = ["a\nb", "a\r\nb", "a\rb", b"\xef\xbb\xbfa\nb", gzip.compress(b"a\nb")]
    root = write(tmp_path, {f"{'xy'[i % 2]}/{i}.txt": content for i, content in enumerate(contents)})
    encoder = TokensEncoder(by="characters")
    rows = Texts(root, split={"training": 1.0}, encoder=encoder)["training"].block(0)["inputs"]
    assert len(np.unique(rows, axis=0)) == 1


def test_other_ends_and_encodings(tmp_path):
    root = write(tmp_path, {"x/1": "gr\u00fcn".encode("latin-1"), "y/2": "rot"})
    data = Texts(root, ends=[""], encoding="latin-1", split={"training": 1.0})["training"]
    assert read_state(data)["tokens"] == ["gr\u00fcn", "rot"]


# -- what is wrong -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("files", "settings", "message"),
    [
        ({"a/1.md": "x"}, {}, r"has no texts\. Their names must end in \.txt"),
        (
            {"a/1.txt": "x", "2.txt": "x"},
            {},
            r"'2\.txt' is not in the folder of a class, and 'a' is the only folder\. Move",
        ),
        (
            {"a/1.txt": "x", "b/1.txt": "x", "2.txt": "x"},
            {},
            r"'2\.txt' is not in the folder of a class\. Move it to one",
        ),
        ({"a/1.txt": "x", "b/1.md": "x"}, {}, "the class 'b' has no texts. Add some, or delete its folder"),
        ({"a/1.txt": b"good \xff"}, {}, r"1\.txt: byte 5: the text is not valid utf-8 \(invalid start byte\).*latin-1"),
        ({"a/1.txt": "\u00e9 \0".encode()}, {}, r"1\.txt: byte 3: there is a NUL.*'utf-16'"),
        ({"a/1.txt": "\u00e9 \0".encode("utf-8-sig")}, {}, r"1\.txt: byte 6: there is a NUL.*'utf-16'"),
        ({"a/1.txt": "x"}, {"encoding": "utf-9"}, "encoding: there is no 'utf-9'"),
        ({"a/1.txt": "long"}, {"largest": 3}, r"1\.txt: has more than 3 bytes\. Raise `largest`"),
        ({"a/1.txt": " ", "b/2.txt": ""}, {"split": {"training": 1.0}}, "no row has a text"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said_with_the_remedy(tmp_path, files, settings, message):
    with pytest.raises(SigmaDataError, match=message):
        Texts(write(tmp_path, files), **settings)["training"]


def test_a_missing_folder_links_out_of_it_and_pipes_are_not_read(animals, tmp_path):
    with pytest.raises(SigmaDataError, match="there is no such folder. Did you mean 'animals'"):
        Texts(tmp_path / "animal")["training"]
    (tmp_path / "secret.txt").write_text("secret")
    (animals / "bird" / "link.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(SigmaDataError, match=r"link\.txt: is a link that leaves the folder"):
        Texts(animals)["training"]
    (animals / "bird" / "link.txt").unlink()
    os.mkfifo(animals / "bird" / "pipe.txt")
    assert "'bird/pipe.txt'" in Texts(animals)["training"].findings((), {})[0]  # left out: reading it might never end
    with pytest.raises(SigmaDataError, match=r"pipe\.txt: is not a regular file"):
        Texts(animals).samples(animals / "bird" / "pipe.txt", (9,))


def test_wrong_settings_are_refused(animals):
    with pytest.raises(SigmaConfigError, match="largest: must be at least 1"):
        Texts(animals, largest=0)
    with pytest.raises(SigmaConfigError, match=r"Texts.encoder: its section is that of the classes. Set another"):
        Texts(animals, encoder=TokensEncoder(section="targets"))


# -- prediction --------------------------------------------------------------------------------------------------------
def test_texts_of_another_length_and_folders_without_any_are_refused(animals, tmp_path):
    data = Texts(animals, encoder=TokensEncoder(length=5))
    with pytest.raises(SigmaDataError, match=r"0\.txt: texts have shape \(5,\); the network takes \(6,\)"):
        data.samples(animals / "bird" / "0.txt", (6,))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SigmaDataError, match="empty: has no text files"):
        data.samples(tmp_path / "empty", (5,))
    np.save(tmp_path / "x.npy", np.ones((2, 5), np.int32))
    assert data.samples(tmp_path / "x.npy", (5,)).tolist() == [[1] * 5] * 2


@pytest.mark.parametrize("state", [{}, {"tokens": ["a"]}, {"tokens": [3], "length": 2}, {"tokens": 5, "length": 2}, 7])
def test_a_damaged_state_is_refused(animals, state):
    column = {"name": "text", "encoder": {"type": "sigma-text:tokens"}, "state": state}
    with pytest.raises(SigmaDataError, match="damaged in the checkpoint"):
        Texts(animals).encode_texts(["a"], {"frames": {"inputs": {"columns": [column]}}})
    with pytest.raises(SigmaDataError, match="damaged in the checkpoint"):
        Texts(animals).encode_texts(["a"], {"frames": {"inputs": state}})


@pytest.mark.parametrize("texts", ["a text", [3]])
def test_what_is_no_list_of_texts_is_refused(animals, texts):
    with pytest.raises(SigmaDataError, match="texts: must be a list of strings"):
        Texts(animals).encode_texts(texts)


# -- speeches ----------------------------------------------------------------------------------------------------------
def test_the_speeches_are_those_of_the_plays():
    listed = Speeches().read()
    assert len(listed.texts) == 2448
    assert listed.texts[0].startswith("Now is the winter of our discontent")
    assert listed.texts[-1].endswith("Than this of Juliet and her Romeo.")
    shares = {play: listed.classes.count(play) / 2448 for play in {*listed.classes}}
    assert shares == pytest.approx({"Richard III": 0.437, "Richard II": 0.225, "Romeo and Juliet": 0.338}, abs=1e-3)


# -- archives ----------------------------------------------------------------------------------------------------------
def pack(folder, kind):
    return Path(shutil.make_archive(str(folder), kind, folder.parent, folder.name))


@pytest.mark.parametrize("kind", ["zip", "tar", "gztar", "xztar"])
def test_texts_in_an_archive_are_those_of_the_folder(animals, kind):
    expected, packed = Texts(animals), Texts(pack(animals, kind))
    for name, part in expected.items():
        for section, values in part.block(0).items():
            np.testing.assert_array_equal(packed[name].block(0)[section], values)
    given = packed.samples(packed.folder, expected["training"].block(0)["inputs"].shape[1:])
    np.testing.assert_array_equal(given, expected.samples(animals, given.shape[1:]))
    assert (packed.claims(packed.folder), packed.files(packed.folder)[0]) == (True, packed.folder / "bird/0.txt")


def test_texts_in_an_archive_are_refused_with_their_place(animals):
    (animals / "fish" / "0.txt").write_bytes(b"a \xff fish")
    place = pack(animals, "gztar")
    with pytest.raises(SigmaDataError, match=r"animals\.tar\.gz/fish/0\.txt: byte 2: the text is not valid utf-8"):
        Texts(place).all_rows()
    with pytest.raises(SigmaDataError, match=r"has no text files\. Their names must end in \.md"):
        Texts(animals, ends=(".md",)).samples(place, (3,))
