"""The inspector of texts: which data it takes, what it shows, and the configurations that it drafts."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sigma_data.profiling.inspectors import TableInspector
from sigma_kernel import Inspector, SigmaConfigError, SigmaDataError
from sigma_testing import InspectorSuite
from sigma_text.datasets.texts import Texts
from sigma_text.profiling.inspector import TextInspector

TEXTS = [f"the {'good' if i % 2 else 'bad'} film number {i}" for i in range(40)]
WISHES = {"text": "review", "target": "mood"}


def write_table(folder: Path, rows: int = 40, **columns: object) -> Path:
    texts = [TEXTS[i % 40] for i in range(rows)]
    table = {"id": [*range(rows)], "review": texts, "mood": [text.split()[1] for text in texts]}
    pq.write_table(pa.table(table | columns), folder / "reviews.parquet")
    return folder / "reviews.parquet"


def write_folder(root: Path, depth: tuple[str, ...] = ()) -> Path:
    for number, text in enumerate(TEXTS):
        part = (depth[number % 4 // 2],) if depth else ()
        place = root.joinpath("films", *part, text.split()[1], f"{number}.txt")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root / "films"


class TestTextsInATable(InspectorSuite):
    wishes: Mapping[str, str] = WISHES

    def make(self) -> Inspector:
        return TextInspector()

    def place(self, folder: Path) -> Path:
        return write_table(folder)


class TestTextsInAFolder(InspectorSuite):
    def make(self) -> Inspector:
        return TextInspector()

    def place(self, folder: Path) -> Path:
        return write_folder(folder)


def read_draft(place: Path, wishes: Mapping[str, str] | None = None) -> dict:
    return tomllib.loads(TextInspector().draft(place, place.name, wishes or {}).text)


# -- which data --------------------------------------------------------------------------------------------------------
def test_folders_of_text_files_are_texts_and_parts_of_tables_are_not(tmp_path: Path) -> None:
    films = write_folder(tmp_path)
    assert TextInspector().takes(films)
    assert not TableInspector().takes(films)
    (tmp_path / "parts" / "year=2024").mkdir(parents=True)
    (tmp_path / "parts" / "year=2024" / "a.txt").write_text("a,b\n1,2\n")
    assert TableInspector().takes(tmp_path / "parts")
    assert not TextInspector().takes(tmp_path / "parts")


def test_captions_beside_pictures_are_no_folder_of_texts(tmp_path: Path) -> None:
    films = write_folder(tmp_path)
    (films / "good" / "a.png").write_bytes(b"")
    assert not TextInspector().takes(films)


# -- what they hold ----------------------------------------------------------------------------------------------------
def test_an_inspection_counts_texts_and_words_by_class(tmp_path: Path) -> None:
    films = write_folder(tmp_path)
    (films / "bad" / "0.txt").write_text("")
    (films / "good" / "x.md").write_text("x")
    inspection = TextInspector().inspect(films)
    assert "40 texts in 2 classes, of 0 to 5 words, half of them at most 5; 44 different words" in inspection.head
    assert [row[:3] for row in inspection.table[1:]] == [["bad", "20", "0 … 5 … 5"], ["good", "20", "5 … 5 … 5"]]
    assert inspection.document["classes"] == {"bad": 20, "good": 20}
    assert {**inspection.document["lengths"]} == {"shortest": 0, "median": 5, "longest": 5, "usual": 5}
    assert [*inspection.findings] == ["1 files are no texts, and left out: 'good/x.md'.", "1 row is without a word."]


# -- drafts ------------------------------------------------------------------------------------------------------------
def test_few_texts_get_a_bag_of_words_and_many_get_embeddings(tmp_path: Path) -> None:
    few = read_draft(write_table(tmp_path), WISHES)
    assert few["data"]["columns"] == {"review": {"type": "bag_of_words", "most": 200}, "id": "exclude"}
    assert few["data"]["split_by"] == "stratified"
    assert "output(2) + softmax_cross_entropy()" in few["network"]["architecture"]
    many = read_draft(write_table(tmp_path, 6000), WISHES)
    assert many["data"]["columns"]["review"] == {"type": "tokens", "most": 202, "length": 5}
    assert "embedding(202, 32, padding=0)" in many["network"]["architecture"]
    assert many["data"]["batch_size"] > few["data"]["batch_size"]


def test_stars_are_classes_and_other_numbers_are_predicted_in_their_units(tmp_path: Path) -> None:
    stars = TextInspector().draft(write_table(tmp_path, mood=[1 + i % 5 for i in range(40)]), "x", WISHES)
    assert 'targets = "classes"' in stars.text
    assert "output(5) + softmax_cross_entropy()" in stars.text
    assert "5 whole numbers, which are taken for classes" in stars.notes[0]
    numbers = read_draft(write_table(tmp_path, mood=[i / 7 for i in range(40)]), WISHES)
    assert numbers["data"]["targets"] == "numbers"
    assert numbers["data"]["preprocessors"]["target"]["type"] == "standardise"
    assert "output(1) + squared_difference()" in numbers["network"]["architecture"]
    assert numbers["hooks"]["score"]["type"] == "r_squared"


def test_rows_without_a_target_are_dropped_and_equal_texts_named(tmp_path: Path) -> None:
    place = write_table(tmp_path, 42, mood=[None, None, *["good", "bad"] * 20])
    draft = TextInspector().draft(place, "x", WISHES)
    assert 'missing_targets = "drop"        # 2 rows have none' in draft.text
    assert "for 40 texts" in draft.text
    assert "other columns were left out: id." in draft.notes
    assert not any("equal" in note for note in draft.notes)
    assert any("2 rows are equal to an earlier text" in n for n in _draft_notes(write_table(tmp_path, 42)))


def _draft_notes(place: Path) -> list[str]:
    return [*TextInspector().draft(place, "x", WISHES).notes]


def test_folders_may_be_splits(tmp_path: Path) -> None:
    data = read_draft(write_folder(tmp_path, ("training", "validation")))["data"]
    assert {"split", "split_by"} & {*data} == set()
    assert data["dataset"] == "texts"


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"target": "mood"}, r"which column holds the texts\? Name it: --text 'mood'\. There are: id, review, mood"),
        ({"text": "review"}, r"which column is to be predicted\? Name it: --target"),
        ({"text": "id", "target": "mood"}, "--text 'id': is the target, or holds no texts"),
        ({"text": "mood", "target": "mood"}, "--text 'mood': is the target, or holds no texts"),
    ],
)
def test_columns_that_are_not_named_or_hold_no_texts_are_refused(tmp_path: Path, wishes: dict, message: str) -> None:
    with pytest.raises(SigmaConfigError, match=message):
        TextInspector().draft(write_table(tmp_path), "x", wishes)


def test_long_names_of_columns_are_cut_off_in_a_question(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"mood,{'long ' * 100}\n" + "good,1\nbad,2\n" * 20)
    with pytest.raises(
        SigmaConfigError, match=r"holds the texts\? Name it: --text 'mood'\. There.*: mood, long long .*…"
    ) as e:
        TextInspector().draft(tmp_path / "x.csv", "x", {"target": "mood"})
    assert len(str(e.value)) < 400


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SigmaDataError, match=r"there is no column 'revew'\. Did you mean 'review'\?"):
        TextInspector().draft(write_table(tmp_path), "x", {"text": "revew", "target": "mood"})


def test_columns_of_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SigmaConfigError, match=r"--target: is for tables; folders in .*films are the classes"):
        TextInspector().draft(write_folder(tmp_path), "x", {"target": "mood"})


def test_a_data_set_of_texts_has_the_profile_of_its_folder(tmp_path: Path) -> None:
    for name, words in (("good", "fine"), ("bad", "poor")):
        (tmp_path / name).mkdir()
        for i in range(4):
            (tmp_path / name / f"{i}.txt").write_text(f"{words} " * (i + 2))
    profile = Texts(tmp_path).profile()
    assert str(profile) == str(TextInspector().inspect(tmp_path))
    assert profile.document["classes"] == {"bad": 4, "good": 4}
    assert profile.document["lengths"] == {"shortest": 2, "median": 3, "longest": 5, "usual": 5}


# -- running text ------------------------------------------------------------------------------------------------------
PROSE = "It was a dark night and the rain fell hard.\nNobody was out; the wind howled, howled and howled.\n"


class TestRunningText(InspectorSuite):
    def make(self) -> Inspector:
        return TextInspector()

    def place(self, folder: Path) -> Path:
        return write_running(folder)


def write_running(folder: Path, times: int = 20) -> Path:
    (folder / "novel.txt").write_text(PROSE * times)
    return folder / "novel.txt"


def test_running_text_is_told_from_tables(tmp_path: Path) -> None:
    novel = write_running(tmp_path)
    assert TextInspector().takes(novel)
    assert TextInspector().takes(tmp_path)
    assert not TableInspector().takes(novel)
    assert not TableInspector().takes(tmp_path)
    tables = (
        "city,mood\nOld York,quite good\nNew York,rather bad\n",
        "1.5 2.5 3\n4 5 6\n",
        "name\nAnna\nBen\n",
        "the city\tthe mood\nOld York\tvery good\n",
        "a b c\nd e f\ng h i\nj k l\n",
        "city\nNew York\nBern\nOld York\nRome\n",
        "Anna Smith\nBen Miller\nCarl Jones\n",
        "city,mood,\nOld York at night,quite good today,\nNew York at noon,rather bad today,\n",
        "full name\thome town\tremark\nMary Ann Lee\tSalt Lake City\t\nMary Ann Lee\tLos Angeles\tpays late\n",
        "city name,country name\nParis town,\nLondon town,United Kingdom\n",
        "",
    )
    for number, table in enumerate(tables):
        place = tmp_path / f"{number}.txt"
        place.write_text(table)
        assert TableInspector().takes(place), table
    assert TableInspector().takes(tmp_path)  # some of its files are tables


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "line", ["\u4ed6\u8d70\u4e86\u3002\n\u6211\u6ca1\u6709\u3002\n", "The cat sat down.\nThe dog ran off!\n"]
)
def test_lines_without_blanks_or_of_equal_words_are_running_text_if_they_end_sentences(
    tmp_path: Path, line: str, encoding: str
) -> None:
    (tmp_path / "x.txt").write_text(line * 20, encoding=encoding)
    assert TextInspector().takes(tmp_path / "x.txt")
    assert not TableInspector().takes(tmp_path / "x.txt")


VERSE = (
    "so much depends\nupon\n\na red wheel\nbarrow\n\nglazed with rain\nwater\n\nbeside the white\nchickens\n",
    "Because I could not stop for Death,\nHe kindly stopped for me,\nThe carriage held but just ourselves,\n"
    "And immortality too,\n",
    "Where the bee sucks, there suck I,\nIn a cowslip's bell I lie,\n",
)


@pytest.mark.parametrize("verse", VERSE)
def test_verse_without_full_stops_is_running_text(tmp_path: Path, verse: str) -> None:
    (tmp_path / "x.txt").write_text(verse)
    assert TextInspector().takes(tmp_path / "x.txt")
    assert not TableInspector().takes(tmp_path / "x.txt")


def test_an_inspection_of_running_text_counts_characters(tmp_path: Path) -> None:
    inspection = TextInspector().inspect(write_running(tmp_path))
    assert inspection.head.endswith("1 text without classes, 1,920 characters, 17 different words")
    assert inspection.document["characters"] == 1920
    assert [row[0] for row in inspection.table] == ["texts", "1"]


def test_running_text_gets_a_model_of_characters_and_much_of_it_one_of_byte_pairs(tmp_path: Path) -> None:
    few = read_draft(write_running(tmp_path))
    assert few["data"]["encoder"] == {"type": "tokens", "by": "characters", "most": 2 + len({*PROSE}), "lower": False}
    assert few["data"]["split"] == {"training": 0.9, "validation": 0.1}
    assert few["hooks"]["score"] == {"type": "bits_per_character", "on": "validation", "every": "1 epoch"}
    assert few["hooks"]["writes"]["text"] == "It was a dark night and"
    many = read_draft(write_running(tmp_path, 12_000))
    assert many["data"]["encoder"] == {"type": "tokens", "by": "pairs", "most": 1000, "lower": False}
    assert "embedding(1000, 64)" in many["network"]["architecture"]
    assert many["hooks"]["score"]["characters"] == pytest.approx(len(PROSE) / 25)  # its words and marks
    assert many["data"]["context"] == 128


def test_folders_of_running_text_may_be_splits(tmp_path: Path) -> None:
    for part in ("training", "validation"):
        (tmp_path / "all" / part).mkdir(parents=True)
        write_running(tmp_path / "all" / part)
    assert TextInspector().takes(tmp_path / "all")
    draft = read_draft(tmp_path / "all")
    assert "split" not in draft["data"]
    with pytest.raises(SigmaConfigError, match=r"--target: is for tables; .*all is running text"):
        TextInspector().draft(tmp_path / "all", "x", {"target": "mood"})


# -- archives and rules ------------------------------------------------------------------------------------------------
def test_an_archive_of_texts_is_inspected_as_the_folder(tmp_path):
    folder = write_folder(tmp_path)
    place = Path(shutil.make_archive(str(tmp_path / "packed"), "gztar", tmp_path, "films"))
    assert TextInspector().takes(place)
    assert TextInspector().inspect(place).table == TextInspector().inspect(folder).table
    draft = TextInspector().draft(place, "packed.tar.gz", {})
    assert (draft.name, tomllib.loads(draft.text)["data"]["folder"]) == ("packed", "packed.tar.gz")


def test_an_archive_of_running_text_gets_the_draft_of_the_folder(tmp_path):
    for number, text in enumerate(TEXTS):
        (tmp_path / "flat").mkdir(exist_ok=True)
        (tmp_path / "flat" / f"{number}.txt").write_text(f"{text}, which nobody has seen.\n")
    place = Path(shutil.make_archive(str(tmp_path / "flat"), "zip", tmp_path / "flat"))
    assert TextInspector().takes(place)
    assert TextInspector().examine(place) == ()
    packed, folder = read_draft(place), read_draft(tmp_path / "flat")
    assert packed["data"] == folder["data"] | {"folder": "flat.zip"}
    assert packed["network"] == folder["network"]
    assert packed["run"]["name"] == "flat"


def test_equal_texts_of_two_splits_and_of_two_classes_are_found_by_their_files(tmp_path):
    folder = write_folder(tmp_path, ("train", "test"))
    assert TextInspector().examine(folder) == []
    for number in range(8):
        (folder / "test" / "good" / f"copy {number}.txt").write_text(TEXTS[4 * number + 1])
        (folder / "train" / "bad" / f"copy {number}.txt").write_text(TEXTS[4 * number + 1])
    findings = {finding.rule: finding for finding in TextInspector().examine(folder)}
    assert findings["shared-rows"].severity == "error"
    assert findings["shared-rows"].examples[0].startswith("test/good/copy 0.txt and train/")
    assert "8" in findings["conflicts"].text
