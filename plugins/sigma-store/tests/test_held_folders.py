"""Checkpoints while somebody puts a link in place of a folder: nothing outside is written or removed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store.checkpoints import store, writer
from sigma_store.folders import open_folder
from sigma_store.journal import Lines

ACTS: dict[str, Callable[[Path], Any]] = {
    "write": lambda folder: store.write(folder, Checkpoint({}, {"number": 7})),
    "remove": store.remove,
    "recover": lambda folder: store.recover(folder.parents[2], pytest.fail),
    "set aside": lambda folder: writer.Saver(folder.parent, pytest.fail).set_aside(6, 0),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a checkpoint; `outside` has folders of the same names, which belong to somebody else."""
    folder = tmp_path / "run" / "checkpoints" / "trainer" / "7"
    store.write(folder, Checkpoint({}, {"number": 1}))
    (folder.parent / ".8.part").mkdir()
    for name in ("7", ".7.part", ".7.old", ".8.part"):
        (tmp_path / "outside" / name).mkdir(parents=True)
        (tmp_path / "outside" / name / "theirs").touch()
    return folder


def replace_by_link(home: Path) -> None:
    os.rename(home, home.with_name("moved"))
    home.symlink_to(home.parents[2] / "outside")


def outside(saved: Path) -> list[str]:
    return sorted(str(path.relative_to(saved.parents[3])) for path in (saved.parents[3] / "outside").rglob("*"))


@pytest.mark.parametrize("act", list(ACTS))
def test_a_link_that_appears_after_the_check_is_not_followed(
    saved: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    before, opened = outside(saved), open_folder

    def late(folder: Path, *given: Any, **settings: Any) -> Any:
        replace_by_link(saved.parent)
        return opened(folder, *given, **settings)

    for module in (store, writer):
        monkeypatch.setattr(module, "open_folder", late)
    with pytest.raises((SigmaCheckpointError, OSError, pytest.fail.Exception), match="Not a directory"):
        ACTS[act](saved)  # an alarm of the saver fails
    assert outside(saved) == before


@pytest.mark.parametrize("act", list(ACTS))
def test_a_link_that_appears_once_the_folder_is_open_changes_nothing(
    saved: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    before, moved = outside(saved), saved.parent.with_name("moved")

    def swapped(function: Any) -> Any:
        def first(*given: Any, **settings: Any) -> Any:
            if not os.path.lexists(moved):
                replace_by_link(saved.parent)
            return function(*given, **settings)

        return first

    where, name = (Path, "rename") if act == "set aside" else (shutil, "rmtree")
    monkeypatch.setattr(where, name, swapped(getattr(where, name)))
    ACTS[act](saved)
    assert outside(saved) == before
    left = {
        "write": {"7", ".8.part"},
        "remove": {".8.part"},
        "recover": {"7"},
        "set aside": {"7.branch-0", ".8.part"},
    }
    assert {*os.listdir(moved)} == left[act]
    if act == "write":
        assert store.read(moved / "7").values == {"number": 7}


def test_an_error_names_the_folder_and_not_the_path_by_which_it_is_held(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(source))

    monkeypatch.setattr(store, "replace", full)
    place = re.escape(f"No space left on device: '{saved.parent / '.7.part'}'. Earlier checkpoints are intact.")
    with pytest.raises(SigmaCheckpointError, match=place):
        ACTS["write"](saved)
    assert not (saved.parent / ".7.part").exists()
    assert store.read(saved).values == {"number": 1}


def test_a_link_in_place_of_a_file_of_lines_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "outside").write_bytes(b"theirs")
    (tmp_path / "journal.jsonl").symlink_to(tmp_path / "outside")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # when it was looked at
    with pytest.raises(OSError, match="symbolic links"):
        Lines(tmp_path / "journal.jsonl")
    assert (tmp_path / "outside").read_bytes() == b"theirs"
