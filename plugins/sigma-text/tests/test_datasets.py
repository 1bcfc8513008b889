"""Characters of a text: windows with the next character as target, splits, vocabularies, encodings."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from sigma_kernel import Environment, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite
from sigma_text import Shakespeare, Text
from sigma_text.windows import TextWindows, indices

POEM = "Tyger Tyger, burning bright,\nIn the forests of the night;\n" * 5


def spelt(dataset, section="inputs"):
    names = dataset.class_names(section)
    return ["".join(names[i] for i in row) for row in dataset.block(0)[section]]


@pytest.fixture
def poem(tmp_path):
    path = tmp_path / "poem.txt"
    path.write_text(POEM)
    return path


class TestShakespeare(DatasetSuite):
    def make(self):
        return Shakespeare(length=500)["validation"]


class TestText(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _poem(self, poem):
        self.path = poem

    def make(self):
        return Text(self.path, length=7)["training"]


class TestTextWindows(DatasetSuite):
    def make(self):
        return TextWindows("here", indices("banana bandana", "abdn ", "here", ""), "abdn ", 3)


# -- windows -----------------------------------------------------------------------------------------------------------
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=2, max_size=60), st.integers(1, 12))
def test_windows_are_the_text_and_targets_are_one_character_ahead(text, length):
    known = "".join(sorted(set(text)))
    assume(len(text) > length)
    windows = TextWindows("here", indices(text, known, "here", ""), known, length)
    count = len(windows) * length
    assert "".join(spelt(windows)) == text[:count]
    assert "".join(spelt(windows, "targets")) == text[1 : count + 1]
    assert len(text) - 1 - length < count <= len(text) - 1


def test_the_text_is_cut_before_the_windows_so_that_no_window_reaches_into_another_split(poem):
    data = Text(poem, length=7, split={"training": 0.5, "validation": 0.2, "test": 0.2})
    ends = {"training": (0, 145), "validation": (145, 203), "test": (203, 261)}
    for name, (start, end) in ends.items():
        part, (inputs, targets) = POEM[start:end], (spelt(data[name], s) for s in ("inputs", "targets"))
        assert "".join(inputs) == part[: len(inputs) * 7]
        assert targets[-1][-1] == part[len(inputs) * 7]
        assert (len(part) - 1) // 7 == len(inputs)


def test_the_default_split_keeps_the_last_tenth_for_validation(poem):
    data = Text(poem, length=4)
    assert spelt(data["training"])[0] == "Tyge"
    assert spelt(data["validation"])[0] == POEM[261:265]


def test_characters_are_those_of_the_whole_text_in_the_order_of_their_code_points(tmp_path):
    (tmp_path / "x.txt").write_text("zebra apple \u00e9\U0001f600" + "b" * 20 + "!", encoding="utf-8")
    data = Text(tmp_path / "x.txt", length=2)
    assert data.classes == tuple(" !abelprz\u00e9\U0001f600")
    assert data["training"].class_names("inputs") == data["validation"].class_names("targets") == data.classes
    assert data["training"].learned == {"characters": " !abelprz\u00e9\U0001f600"}


def test_given_characters_are_the_indices(poem):
    known = "".join(sorted({*POEM, "Q"}, reverse=True))
    data = Text(poem, length=4, characters=known)
    assert "".join(data.classes) == known
    assert spelt(data["training"])[0] == "Tyge"


@pytest.mark.parametrize("wrong", ["", "abca", 3])
def test_given_characters_must_be_there_once(poem, wrong):
    with pytest.raises(SigmaConfigError, match=r"Text.characters: must be a text with each character once"):
        Text(poem, characters=wrong)


# -- files -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (POEM.encode("utf-8-sig"), "utf-8-sig"),
        (POEM.replace("\n", "\r\n").encode(), "utf-8-sig"),
        (POEM.replace("\n", "\r").encode(), "utf-8-sig"),
        (POEM.encode("utf-16"), "utf-16"),
        (gzip.compress(POEM.encode(), mtime=0), "utf-8-sig"),
    ],
)
def test_a_text_is_the_same_in_any_encoding_with_any_line_ends_and_compressed(tmp_path, content, encoding):
    (tmp_path / "x.txt").write_bytes(content)
    data = Text(tmp_path / "x.txt", length=5, encoding=encoding)
    assert "".join(spelt(data["training"])) == POEM[: 5 * len(data["training"])]
    assert set(data.classes) == set(POEM)


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (b"", {}, r"x\.txt: is empty\. Give a file with text"),
        ("gr\u00fcn".encode("latin-1") * 99, {}, r"x\.txt:1: .*not valid utf-8 .*'latin-1'"),
        (b"one\ntwo\n\xff" * 99, {}, r"x\.txt:1: in or soon after this line, the text is not valid utf-8"),
        (POEM.encode("utf-16-le"), {}, r"x\.txt:1: there is a NUL.*such as 'utf-16'"),
        (b"text" * 99, {"encoding": "utf-9"}, "encoding: there is no 'utf-9'"),
        (b"abc" * 20, {"length": 50}, r"split 'validation': has 6 characters; a window with length = 50 takes 51"),
        (b"abc" * 20, {"length": 60}, r"split 'training': has 54 characters; a window with length = 60 takes 61"),
        (b"ab\nce\x01d" * 20, {"characters": "abc"}, r"x\.txt:1: '\\x01', '\\n', 'd', 'e': not among the 3 char"),
        (bytes(range(65, 90)) * 9, {"characters": "AB"}, r"'C', .*'J' and 15 more: not among .* leave out the setting"),
    ],
)
def test_what_is_wrong_with_a_text_is_said_with_the_remedy(tmp_path, content, settings, message):
    (tmp_path / "x.txt").write_bytes(content)
    with pytest.raises(SigmaDataError, match=message):
        Text(tmp_path / "x.txt", **settings)["training"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SigmaDataError, match="there is no such file"):
        Text(tmp_path / "nowhere.txt")["training"]


@pytest.mark.parametrize("wrong", [{"length": 0}, {"split": {"validation": 1.0}}])
def test_wrong_settings_are_refused(poem, wrong):
    with pytest.raises(SigmaConfigError, match=r"Text.length: must be at least 1|there is no 'training'"):
        Text(poem, **wrong)


# -- other texts -------------------------------------------------------------------------------------------------------
def test_a_text_is_encoded_with_the_characters_of_another(poem, tmp_path):
    (tmp_path / "other.txt").write_text("things in the night\n" * 4)
    first, other = Text(poem, length=4)["training"], Text(tmp_path / "other.txt", length=4)["training"]
    encoded = other.encode("targets", 0, first.class_names("targets"))
    assert encoded.class_names("inputs") == first.class_names("inputs") != other.class_names("inputs")
    for section in ("inputs", "targets"):
        assert spelt(encoded, section) == spelt(other, section)
    assert first.encode("targets", 0, first.class_names("targets")) is first


def test_characters_that_another_text_lacks_are_named(poem, tmp_path):
    (tmp_path / "other.txt").write_text("quiz? " * 9)
    other = Text(tmp_path / "other.txt", length=4)["training"]
    with pytest.raises(SigmaDataError, match=r"other.txt: split 'training': '\?', 'q', 'z': not among the 19 char"):
        other.encode("targets", 0, Text(poem, length=4)["training"].class_names("targets"))


def test_characters_that_are_not_in_a_split_need_not_be_known(tmp_path):
    (tmp_path / "x.txt").write_text("ab" * 45 + "zz" * 5)
    data = Text(tmp_path / "x.txt", length=3)
    assert spelt(data["training"].encode("targets", 0, "ab")) == spelt(data["training"])
    with pytest.raises(SigmaDataError, match="'z': not among the 2 characters"):
        data["validation"].encode("targets", 0, "ab")


def test_a_network_with_too_few_outputs_is_refused_with_the_number_of_characters(poem):
    network = "input(none, dtype='int32') + embedding(9, 4) + output(9) + softmax_cross_entropy()"
    trainer = Environment("poem", seed=0).create_trainer(
        data=Text(poem, length=8), network=network, optimiser="adam", backend="numpy"
    )
    with pytest.raises(
        SigmaDataError, match=r"has 19 different characters.*predicts 9. Write embedding\(19, ...\) and"
    ):
        trainer.fit(epochs=1)


def test_samples_are_windows_of_another_text_in_the_characters_of_the_run(poem, tmp_path):
    (tmp_path / "new.txt").write_text("the night in the")
    data, known = Text(poem, length=5), "".join(sorted(set(POEM)))
    found = data.samples(tmp_path / "new.txt", (5,), None, {"characters": known})
    assert ["".join(known[i] for i in row) for row in found] == ["the n", "ight ", "in th"]
    np.testing.assert_array_equal(data.samples(tmp_path / "new.txt", (5,)), found)
    np.save(tmp_path / "new.npy", found)
    np.testing.assert_array_equal(data.samples(tmp_path / "new.npy", (5,)), found)
    with pytest.raises(SigmaDataError, match=r"new.npy: has shape \(3, 5\); expected \('n', 20\)"):
        data.samples(tmp_path / "new.npy", (20,))
    with pytest.raises(SigmaDataError, match="has 16 characters; a sample takes 20"):
        data.samples(tmp_path / "new.txt", (20,))
    (tmp_path / "new.txt").write_text("quiz the")
    with pytest.raises(SigmaDataError, match=r"new.txt:1: 'q', 'z': not among .* The network has not learned them"):
        data.samples(tmp_path / "new.txt", (5,))


# -- Shakespeare -------------------------------------------------------------------------------------------------------
def test_the_plays_begin_and_end_as_printed():
    data = Shakespeare()
    assert spelt(data["training"])[0].startswith("GLOUCESTER:\nNow is the winter of our discontent\nMade glorious")
    assert data.read()[1].endswith("For never was a story of more woe\nThan this of Juliet and her Romeo.\n")
    assert len(data.classes) == 62


def test_the_entropy_of_single_characters_is_the_documented_one():
    codes = np.concatenate([part.block(0)["targets"].ravel() for part in Shakespeare(length=1).values()])
    shares = np.bincount(codes) / len(codes)
    assert -(shares * np.log2(shares)).sum() == pytest.approx(4.784, abs=0.001)
