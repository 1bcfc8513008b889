"""Media in run folders: damaged and hostile lists of them, files, links, and what is packed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.contracts import StoredRun
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store import FolderStore, pack_run, unpack_run
from sigma_testing.stores import publish_media


def silent(text: str) -> None:
    """Log nothing."""


def write_run(parent: Path, *iterations: int) -> StoredRun:
    run = FolderStore().create(parent, "r", silent, lambda stored: "format = 1\n", lambda stored: None, exact=True)
    for iteration in iterations:
        publish_media(run, iteration)
    return run


def open_run(run: StoredRun) -> StoredRun:
    return FolderStore().open(Path(run.place), silent, lambda stored: None)


def list_path(run: StoredRun) -> Path:
    return Path(run.place) / "media.jsonl"


def iterations(run: StoredRun, log: Any = pytest.fail) -> list[int]:
    return [entry.iteration for entry in open_run(run).media(log=log)]


def test_a_run_without_media_has_no_files_of_them(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    assert not any(path.name.startswith("media") for path in Path(run.place).iterdir())
    assert (open_run(run).media(), open_run(run).version("media")) == ([], None)


def test_bytes_are_files_that_any_program_opens(tmp_path: Path) -> None:
    run = write_run(tmp_path, 1)
    (path,) = (Path(run.place) / "media").iterdir()
    assert (path.suffix, path.read_text()) == (".txt", "1")


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_was_cut_by_a_kill_is_no_damage_and_the_next_line_is_whole(tmp_path: Path, cut: int) -> None:
    run = write_run(tmp_path, 1, 2)
    os.truncate(list_path(run), list_path(run).stat().st_size - cut)
    assert iterations(run) == [1]
    again = open_run(run)
    again.lock()
    again.reopen(None, again.excerpt(["trainer"], silent))
    publish_media(again, 3, session=1, start=1)
    assert iterations(run) == [1, 3]


def test_a_file_without_its_line_is_never_listed(tmp_path: Path) -> None:
    run = write_run(tmp_path, 1)
    run.write("media/0123456789abcdef0123456789abcdef.txt", b"killed before its line")
    assert iterations(run) == [1]


HOSTILE = [
    "[]",
    "{",
    "null",
    '{"trainer": 3}',
    '{"trainer": "trainer", "removed": 3}',
    '{"trainer": "trainer", "removed": [["a.b", 0]]}',
    '{"trainer": "trainer", "removed": [[[], 0, 1]]}',
]


@pytest.mark.parametrize("line", HOSTILE)
def test_lines_that_are_no_rows_are_left_out_and_counted(tmp_path: Path, line: str) -> None:
    run, said = write_run(tmp_path, 1), list[str]()
    with list_path(run).open("a") as file:
        file.write(f"{line}\n")
    publish_media(run, 2)
    assert iterations(run, said.append) == [1, 2]
    assert said == [f"{list_path(run)}: 1 damaged line is left out."]


@pytest.mark.parametrize(
    "change",
    [
        {"key": "../../etc/passwd"}, {"key": "x.txt"}, {"key": f"{'0' * 32}.txt\n"}, {"kind": "film"},
        {"iteration": "1"}, {"facts": []}, {"branch": None}, {"name": {}},
    ],
)  # fmt: skip
def test_rows_with_other_fields_are_left_out(tmp_path: Path, change: dict[str, Any]) -> None:
    run, said = write_run(tmp_path, 1), list[str]()
    row = json.loads(list_path(run).read_text().splitlines()[-1])
    with list_path(run).open("a") as file:
        file.write(json.dumps({**row, "iteration": 2, **change}) + "\n")
    assert iterations(run, said.append) == [1]
    assert len(said) == 1


def test_a_link_in_place_of_the_list_or_a_value_is_not_followed(tmp_path: Path) -> None:
    run = write_run(tmp_path, 1)
    (path,) = (Path(run.place) / "media").iterdir()
    path.rename(tmp_path / "value.txt")
    path.symlink_to(tmp_path / "value.txt")
    reader = open_run(run)
    with pytest.raises(SigmaCheckpointError, match="not a regular file"):
        reader.medium(reader.media()[0])
    list_path(run).rename(tmp_path / "list.jsonl")
    list_path(run).symlink_to(tmp_path / "list.jsonl")
    with pytest.raises(SigmaCheckpointError, match="not a regular file"):
        open_run(run).media()


def test_a_file_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    run.write("media/a/b.txt", b"", durable=False)
    with pytest.raises(SigmaStateError, match=r"media/a: cannot be removed: .* Make its folder writable\."):
        run.remove("media/a")


def test_an_archive_has_the_media_of_a_run(tmp_path: Path) -> None:
    run = write_run(tmp_path, 1, 2)
    assert run.journal.durable() is None
    left = pack_run(Path(run.place), tmp_path / "r.zip", "r", {"config.toml": b"format = 1\n"}, str, (), silent)
    assert not any(name.startswith("media") for name in left)
    there = unpack_run(tmp_path / "r.zip", tmp_path / "there", lambda path: None, silent)
    again = FolderStore().open(there, silent, lambda stored: None)
    assert [again.medium(entry).encode() for entry in again.media()] == [b"1", b"2"]


def test_an_archive_does_not_hold_a_text_with_a_secret(tmp_path: Path) -> None:
    run = write_run(tmp_path, 12345)
    assert run.journal.durable() is None
    with pytest.raises(SigmaStateError, match=r"media\.jsonl: names a folder of this machine, and is not shared"):
        pack_run(Path(run.place), tmp_path / "r.zip", "r", {"config.toml": b"format = 1\n"}, str, [b"2345"], silent)
