"""Pictures and sounds in tar archives, plain or compressed, which are not extracted."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sigma_data import ImageFolder, SoundFolder
from sigma_data.pictures import archive, tar
from sigma_data.profiling.inspectors import TableInspector
from sigma_data.profiling.picture_inspector import PictureInspector
from sigma_kernel import Dataset, SigmaDataError
from sigma_testing import DatasetSuite

Image = pytest.importorskip("PIL.Image")
SETTINGS = {"size": (6, 5), "split": {"training": 1.0}, "split_by": "block"}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": gzip.compress,
    ".tgz": gzip.compress,
    ".tar.bz2": bz2.compress,
    ".tar.xz": lzma.compress,
    ".tar.zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def picture(seed: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (8, 7, 3), np.uint8)).save(stream, "PNG")
    return stream.getvalue()


FILES = {f"{'cat' if row < 6 else 'dog'}/{row:02}.png": picture(row) for row in range(10)}


def entry(name: str, content: bytes = b"", **facts: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for fact, value in facts.items():
        setattr(info, fact, value)
    return info, content


def pack(path: Path, *entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> Path:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as file:
        for info, content in entries:
            file.addfile(info, io.BytesIO(content))
    end = next(end for end in sorted(COMPRESSIONS, key=len, reverse=True) if path.name.endswith(end))
    path.write_bytes(COMPRESSIONS[end](stream.getvalue()))
    return path


def pack_files(path: Path, files: dict[str, bytes] = FILES, before: str = "", **how: int) -> Path:
    return pack(path, *(entry(before + name, content) for name, content in files.items()), **how)


def rows(place: Path, **settings: object) -> dict[str, np.ndarray]:
    return {**ImageFolder(place, **{**SETTINGS, **settings})["training"].block(0)}


def refusal(place: Path, **settings: object) -> str:
    with pytest.raises(SigmaDataError) as caught:
        rows(place, **settings)
    return str(caught.value)


class TestPicturesInTarArchives(DatasetSuite):
    @pytest.fixture(autouse=True)
    def _packed(self, tmp_path: Path) -> None:
        self.place = pack_files(tmp_path / "pictures.tar.gz")

    def make(self) -> Dataset:
        return ImageFolder(self.place, size=(6, 5))["training"]


@pytest.mark.parametrize(
    ("end", "form", "before"),
    [
        *((end, tarfile.PAX_FORMAT, "") for end in COMPRESSIONS),
        (".tar", tarfile.GNU_FORMAT, "./"),
        (".tar", tarfile.USTAR_FORMAT, "my pictures/"),
        (".tar.gz", tarfile.PAX_FORMAT, "./all/"),
    ],
)
def test_an_archive_holds_the_same_rows_as_the_folder(end: str, form: int, before: str, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pictures" / name).write_bytes(content)
    expected = rows(tmp_path / "pictures")
    place = pack_files(tmp_path / f"p{end}", dict(reversed(FILES.items())), before, form=form)
    given = rows(place)
    assert {*given} == {"inputs", "targets"}
    for section, values in given.items():
        np.testing.assert_array_equal(values, expected[section])
    assert sorted(tmp_path.iterdir()) == sorted([place, tmp_path / "pictures"])  # nothing is extracted


def test_a_compressed_archive_is_unpacked_once_while_it_does_not_change(tmp_path: Path, monkeypatch) -> None:
    calls, unpack = [], tar._unpack
    monkeypatch.setattr(tar, "_unpack", lambda *about: calls.append(about) or unpack(*about))
    place = pack_files(tmp_path / "p.tar.gz")
    first = rows(place)
    np.testing.assert_array_equal(rows(place)["inputs"], first["inputs"])
    assert len(calls) == 1
    pack_files(place, {**FILES, "cat/00.png": picture(99)})
    assert not np.array_equal(rows(place)["inputs"], first["inputs"])
    assert len(calls) == 2


@pytest.mark.parametrize("end", [".tar", ".tar.gz"])
def test_folders_of_splits_are_splits_and_samples_are_predicted_from(end: str, tmp_path: Path) -> None:
    files = {f"{part}/{name}": content for part in ("train", "val") for name, content in FILES.items()}
    data = ImageFolder(pack_files(tmp_path / f"p{end}", files), size=(6, 5))
    assert {name: len(data[name].block(0)["targets"]) for name in data} == {"training": 10, "validation": 10}
    place = pack_files(tmp_path / f"q{end}")
    np.testing.assert_array_equal(data.samples(place, (3, 6, 5)), rows(place)["inputs"])
    assert [str(path.relative_to(place)) for path in data.files(place)] == [*FILES]


@pytest.mark.parametrize("end", [".tar", ".tar.gz"])
def test_an_archive_is_inspected_as_a_folder(end: str, tmp_path: Path) -> None:
    place = pack_files(tmp_path / f"pets{end}")
    assert PictureInspector().takes(place)
    assert not TableInspector().takes(place)
    assert PictureInspector().inspect(place).document["classes"] == {"cat": 6, "dog": 4}
    assert PictureInspector().draft(place, f"pets{end}", {}).name == "pets"
    assert TableInspector().takes(tmp_path / f"table.csv{end}")


def test_sounds_in_archives_are_those_of_the_folder(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    for name in ("a", "b"):
        (tmp_path / "sounds" / name).mkdir(parents=True)
        for i in range(4):
            wave = np.sin(np.arange(400) * (i + 1) / 9)
            soundfile.write(tmp_path / "sounds" / name / f"{i}.wav", wave, 8000)
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in (tmp_path / "sounds").rglob("*.wav")}
    how = {"seconds": 0.05, "rate": 8000, "features": "wave"}
    expected = SoundFolder(tmp_path / "sounds", **how)
    packed = SoundFolder(pack_files(tmp_path / "s.tar.xz", files), **how)
    for section, values in expected.all_rows()[0].block(0).items():
        np.testing.assert_array_equal(packed.all_rows()[0].block(0)[section], values)
    np.testing.assert_array_equal(
        packed.samples(tmp_path / "s.tar.xz", (400, 1)), expected.samples(tmp_path / "sounds", (400, 1))
    )


# -- hostile archives --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["../x.png", "cat/../../x.png", "/etc/x.png", "cat\\..\\x.png", "C:/x.png"])
@pytest.mark.parametrize("end", [".tar", ".tar.gz"])
def test_names_that_leave_an_archive_are_refused(name: str, end: str, tmp_path: Path) -> None:
    assert "leaves the archive. Pack it again." in refusal(pack(tmp_path / f"p{end}", entry(name, picture(0))))


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "is a link to '/etc/passwd'"),
        (tarfile.LNKTYPE, "is a link to '/etc/passwd'"),
        (tarfile.CHRTYPE, "is a device"),
        (tarfile.BLKTYPE, "is a device"),
        (tarfile.FIFOTYPE, "is a pipe"),
        (b"Z", "is no plain file"),
        (tarfile.GNUTYPE_SPARSE, "is no plain file"),
    ],
)
def test_links_devices_pipes_and_unknown_members_are_refused(kind: bytes, what: str, tmp_path: Path) -> None:
    member = entry("cat/link.png", type=kind, linkname="/etc/passwd")
    text = refusal(pack(tmp_path / "p.tar", member, *(entry(name, content) for name, content in FILES.items())))
    assert text.startswith(f"{tmp_path}/p.tar: 'cat/link.png' {what}")


def test_names_that_come_twice_or_are_no_text_are_refused(tmp_path: Path) -> None:
    twice = [entry("cat/0.png", picture(0)), entry("./cat/0.png", picture(1))]
    assert "holds 'cat/0.png' twice. Pack it again." in refusal(pack(tmp_path / "p.tar", *twice))
    assert "characters that are no text" in refusal(pack_files(tmp_path / "q.tar", {"cat/\x1b[2J.png": picture(0)}))


def test_an_archive_that_is_cut_off_is_refused_wherever_it_is(tmp_path: Path) -> None:
    whole = pack_files(tmp_path / "p.tar").read_bytes()
    used = len(whole.rstrip(b"\0"))
    for size in [*range(0, used, 700), *range(0, used, 1536), used]:
        (tmp_path / "p.tar").write_bytes(whole[:size])
        assert refusal(tmp_path / "p.tar").startswith(f"{tmp_path}/p.tar: is "), size
    for end, compress in COMPRESSIONS.items():
        packed = compress(whole)
        (tmp_path / f"q{end}").write_bytes(packed[: len(packed) // 2])
        assert refusal(tmp_path / f"q{end}").startswith(f"{tmp_path}/q{end}: "), end


def test_a_damaged_header_does_not_end_the_archive_before_its_end(tmp_path: Path) -> None:
    whole = bytearray(pack_files(tmp_path / "p.tar").read_bytes())
    whole[whole.index(b"cat/03.png")] ^= 1  # so that the checksum of the header is wrong
    (tmp_path / "p.tar").write_bytes(whole)
    assert "is no tar archive, or damaged: it ends at byte 3" in refusal(tmp_path / "p.tar")


@pytest.mark.long_cases(".tar.bz2", ".tar.gz", ".tar.xz")
@pytest.mark.parametrize("end", [".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"])
def test_a_bomb_is_refused_within_a_second_and_little_memory(end: str, tmp_path: Path) -> None:
    info = tarfile.TarInfo("cat/0.png")
    info.size = 1 << 30
    pieces = COMPRESSIONS[end](info.tobuf() + bytes(150 << 20))  # 150 MiB of the file
    (tmp_path / f"p{end}").write_bytes(pieces)
    tracemalloc.start()
    begin = time.perf_counter()
    text = refusal(tmp_path / f"p{end}")
    spent, (_, most) = time.perf_counter() - begin, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "unpacks to more than 128 MiB, 100 times its size. If that is right, unpack it yourself" in text
    assert most < 64e6
    assert spent < 10  # a second on a machine that does nothing else


@pytest.mark.parametrize("size", ["-1", str(-1 << 40), str(1 << 40), str(1 << 70)])
def test_sizes_that_headers_make_up_are_refused(size: str, tmp_path: Path) -> None:
    member = entry("cat/0.png", picture(0), pax_headers={"size": size})
    for end in (".tar", ".tar.gz"):
        text = refusal(pack(tmp_path / f"p{end}", member, *[entry(name, picture(1)) for name in FILES]))
        assert text.startswith(f"{tmp_path}/p{end}: is ")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE])
def test_headers_that_are_too_long_or_endless_are_refused(kind: bytes, tmp_path: Path) -> None:
    long = entry("././@LongLink", b"a" * (4 << 20), type=kind)
    assert "a header has 4,194,304 bytes" in refusal(pack(tmp_path / "p.tar", long, entry("cat/0.png", picture(0))))
    deep = [entry("././@LongLink", b"12 path=abc\n", type=kind)] * 3000
    assert "or damaged: " in refusal(pack(tmp_path / "q.tar", *deep, entry("cat/0.png", picture(0))))


def test_huge_members_are_broken_and_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = pack_files(tmp_path / "p.tar")
    monkeypatch.setattr(archive, "MOST", 100)
    assert "cat/01.png: cannot be read: it is longer than 0 MiB" in refusal(place)
    monkeypatch.setattr(tar, "MEMBERS", 5)
    assert "holds more than 5 files. Divide it." in refusal(pack_files(tmp_path / "q.tar"))


def test_a_full_disk_is_reported_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, content) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tar.tempfile, "TemporaryFile", Full)
    text = refusal(pack_files(tmp_path / "p.tgz"))
    assert "p.tgz: cannot be unpacked to " in text
    assert "No space left on device. Make room there, name another folder by TMPDIR, or give the .tar file." in text


@pytest.mark.parametrize("end", [".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"])
def test_mutated_archives_end_in_one_error(end: str, tmp_path: Path, told: Callable[..., str]) -> None:
    rng, place = np.random.default_rng(len(end)), pack_files(tmp_path / f"p{end}")
    whole, endings = place.read_bytes(), set()
    for _ in range(60):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), 3):
            content[at] = rng.integers(256)
        place.write_bytes(content)
        endings.add(told(lambda: rows(place, broken="skip")).startswith((str(place), "held: nothing")))
    assert endings == {True}
