"""Pictures in zip archives, which are not extracted."""

from __future__ import annotations

import io
import stat
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sigma_data import ImageFolder
from sigma_data.pictures import archive
from sigma_data.profiling.inspectors import TableInspector
from sigma_data.profiling.picture_inspector import PictureInspector
from sigma_kernel import Dataset, SigmaDataError
from sigma_testing import DatasetSuite

Image = pytest.importorskip("PIL.Image")
SETTINGS = {"size": (6, 5), "split": {"training": 1.0}, "split_by": "block"}


def picture(seed: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (8, 7, 3), np.uint8)).save(stream, "PNG")
    return stream.getvalue()


FILES = {f"{'cat' if row < 6 else 'dog'}/{row:02}.png": picture(row) for row in range(10)}


def pack(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return pack(tmp_path / "pictures.zip", FILES)


def rows(place: Path, **settings: object) -> dict[str, np.ndarray]:
    return {**ImageFolder(place, **{**SETTINGS, **settings})["training"].block(0)}


def refusal(place: Path, **settings: object) -> str:
    with pytest.raises(SigmaDataError) as caught:
        rows(place, **settings)
    return str(caught.value)


class TestPicturesInArchives(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _packed(self, packed: Path) -> None:
        self.place = packed

    def make(self) -> Dataset:
        return ImageFolder(self.place, size=(6, 5))["training"]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_holds_the_same_rows_as_the_folder(method: int, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pictures" / name).write_bytes(content)
    expected = rows(tmp_path / "pictures")
    given = rows(pack(tmp_path / "pictures.zip", dict(reversed(FILES.items())), method))
    assert {*given} == {"inputs", "targets"}
    for section, values in given.items():
        np.testing.assert_array_equal(values, expected[section])


def test_a_folder_around_all_classes_hidden_files_and_clutter_do_not_matter(tmp_path: Path, packed: Path) -> None:
    files = {f"my pictures/{name}": content for name, content in FILES.items()}
    files |= {"__MACOSX/my pictures/cat/._00.png": b"x", "my pictures/cat/.hidden.png": b"x", "README.md": b"x"}
    wrapped = pack(tmp_path / "wrapped.zip", files)
    for section, values in rows(wrapped).items():
        np.testing.assert_array_equal(values, rows(packed)[section])
    findings = ImageFolder(wrapped, **SETTINGS)["training"].findings([], {})
    assert findings == ("1 file is left out, by the end of the name: 'README.md'.",)


def test_the_folder_of_an_only_class_is_the_class(tmp_path: Path) -> None:
    place = pack(tmp_path / "p.zip", {name: content for name, content in FILES.items() if name.startswith("cat")})
    assert ImageFolder(place, **SETTINGS).classes == ("cat",)


def test_links_in_an_archive_are_left_out(packed: Path) -> None:
    link = zipfile.ZipInfo("cat/link.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(packed, "a") as file:
        file.writestr(link, "/etc/passwd")
    assert len(rows(packed)["targets"]) == 10


def test_folders_of_splits_in_an_archive_are_splits(tmp_path: Path) -> None:
    place = pack(
        tmp_path / "p.zip", {f"{part}/{name}": text for part in ("train", "val") for name, text in FILES.items()}
    )
    data = ImageFolder(place, size=(6, 5))
    assert {name: len(data[name].block(0)["targets"]) for name in data} == {"training": 10, "validation": 10}


def test_decoded_pictures_of_an_archive_are_cached_by_their_contents(tmp_path: Path, packed: Path) -> None:
    settings = {"memory": 0, "cache": tmp_path / "cache"}
    first = rows(packed, **settings)["inputs"]
    assert len([*(tmp_path / "cache").glob("*.npy")]) == 1
    np.testing.assert_array_equal(rows(packed, **settings)["inputs"], first)
    pack(packed, {**FILES, "cat/00.png": picture(99)})
    assert not np.array_equal(rows(packed, **settings)["inputs"], first)


def test_a_table_names_pictures_in_an_archive(tmp_path: Path, packed: Path) -> None:
    (tmp_path / "labels.csv").write_text("path,label\ndog/09.png,b\ncat/00.png,a\ncat/77.png,a\n")
    settings = {"table": tmp_path / "labels.csv"}
    assert "cat/77.png: cannot be read: there is no such file in pictures.zip" in refusal(packed, **settings)
    assert rows(packed, broken="skip", **settings)["targets"].tolist() == [0, 1]


def test_samples_of_an_archive_are_read_to_predict_from(packed: Path) -> None:
    data = ImageFolder(packed, **SETTINGS)
    np.testing.assert_array_equal(data.samples(packed, (3, 6, 5)), rows(packed)["inputs"])
    assert [str(path.relative_to(packed)) for path in data.files(packed)] == [*FILES]


def test_an_archive_is_inspected_as_a_folder(tmp_path: Path, packed: Path) -> None:
    assert PictureInspector().takes(packed)
    assert not TableInspector().takes(packed)
    assert not PictureInspector().takes(pack(tmp_path / "table.csv.zip", {"table.csv": b"a,b\n1,2\n"}))
    assert PictureInspector().inspect(packed).document["classes"] == {"cat": 6, "dog": 4}
    draft = PictureInspector().draft(packed, "data/pictures.zip", {})
    assert (draft.name, tomllib.loads(draft.text)["data"]["folder"]) == ("pictures", "data/pictures.zip")


# -- hostile archives --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["../x.png", "cat/../../x.png", "/etc/x.png", "cat\\..\\x.png", "C:/x.png"])
def test_names_that_leave_an_archive_are_refused(name: str, tmp_path: Path) -> None:
    place = tmp_path / "p.zip"
    with zipfile.ZipFile(place, "w") as file:
        about = zipfile.ZipInfo("x")
        about.filename = name
        file.writestr(about, picture(0))
    assert "leaves the archive. Pack it again." in refusal(place)


def test_names_that_come_twice_or_are_no_text_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as file:
        file.writestr("cat/0.png", picture(0))
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("cat/0.png", picture(1))
    assert "holds 'cat/0.png' twice. Pack it again." in refusal(tmp_path / "p.zip")
    assert "characters that are no text" in refusal(pack(tmp_path / "q.zip", {"cat/\x1b[2J.png": picture(0)}))


def test_a_damaged_archive_is_refused_and_a_damaged_member_is_broken(tmp_path: Path, packed: Path) -> None:
    whole = pack(packed, FILES, zipfile.ZIP_STORED).read_bytes()
    place = whole.index(FILES["cat/03.png"]) + 40
    packed.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    assert "1 of 10 pictures cannot be used:\n  cat/03.png: cannot be read: Bad CRC-32" in refusal(packed)
    assert len(rows(packed, broken="skip")["targets"]) == 9
    for content in (b"", b"PK\x03\x04", whole[:-30], whole[: len(whole) // 2]):
        packed.write_bytes(content)
        assert f"{packed}: is no zip archive, or damaged: " in refusal(packed)


def test_encrypted_and_huge_members_are_broken(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bytearray(packed.read_bytes())
    central, local = whole.index(b"PK\x01\x02"), whole.index(b"PK\x03\x04")
    whole[central + 8] |= 1
    whole[local + 6] |= 1
    packed.write_bytes(whole)
    text = refusal(packed)
    assert "1 of 10 pictures cannot be used" in text
    assert "is encrypted" in text
    monkeypatch.setattr(archive, "MOST", 100)
    assert "cat/01.png: cannot be read: it is longer than 0 MiB" in refusal(packed)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_mutated_archives_end_in_one_error(method: int, packed: Path, told: Callable[..., str]) -> None:
    rng, whole = np.random.default_rng(method), pack(packed, FILES, method).read_bytes()
    endings = set()
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), 3):
            content[place] = rng.integers(256)
        packed.write_bytes(content)
        endings.add(told(lambda: rows(packed, broken="skip")).startswith((str(packed), "held: nothing")))
    assert endings == {True}
