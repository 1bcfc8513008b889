"""Run folders as one file: what is packed, chained anew, left out, and verified when it is unpacked."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sigma_kernel.contracts import Checkpoint
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_store import FolderStore, pack_run, unpack_run

TEXT = 'format = 1\npath = "/srv/jane/x.csv"\n'
CLEAN = {"config.toml": b'format = 1\npath = "x.csv"\n'}
ROW = {"trainer": "trainer", "epoch": 0, "command": "set", "pattern": "x"}


def silent(text: str) -> None:
    """Log nothing."""


def remove_home(text: str) -> str:
    return text.replace("/srv/jane/", "")


def write_run(parent: Path, rows: int = 20, path: str = "/srv/jane/") -> Path:
    """Write a run with rows before, between and after two checkpoints, each of which names the end of the journal."""
    run = FolderStore().create(parent, "r", silent, lambda stored: TEXT, lambda stored: None, exact=True)
    checkpoints = run.checkpoints("trainer")
    for number in range(rows):
        run.journal.append({**ROW, "iteration": number, "value": number / 3, "why": f"{path}{'x' * number}.csv"})
        if number in (5, 15):
            values = {"trainer": "trainer", "clock": {"iteration": number, "epoch": 0}, "journal": number}
            chain = run.journal.chain("trainer", number)
            arrays = {"w": np.full(3, number, np.float32)}
            checkpoints.write(str(number), Checkpoint(arrays, values, chain=chain))
    assert run.journal.durable() is None
    (parent / "r" / "curves.bin").write_bytes(b"any bytes")
    (parent / "r" / "report.html").write_text("/srv/jane")
    return parent / "r"


def pack(run: Path, file: Path) -> list[str]:
    return pack_run(run, file, "r", CLEAN, remove_home, [b"/srv/jane"], silent)


def rows_of(run: Path, whole: bool = True) -> list[dict[str, object]]:
    stored = FolderStore().open(run, silent, lambda stored: None)
    return stored.excerpt(["trainer"], pytest.fail, whole).rows("trainer")


@pytest.mark.parametrize("size", [1 << 20, 200])
def test_a_run_is_the_same_in_another_place_but_for_what_was_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr("sigma_store.journal.EVERY", size)  # checkpoints hold bookmarks inside the journal, or none
    run = write_run(tmp_path / "ours")
    assert pack(run, tmp_path / "r.zip") == [".lock", "report.html"]
    shutil.move(tmp_path / "ours", tmp_path / "gone")
    theirs = unpack_run(tmp_path / "r.zip", tmp_path / "theirs", lambda run: None, silent)
    ours, other = rows_of(tmp_path / "gone" / "r"), rows_of(theirs)
    assert [{**row, "why": remove_home(str(row["why"]))} for row in ours] == other
    assert [row["why"] for row in rows_of(theirs, whole=False)] == [row["why"] for row in other][
        -len(rows_of(theirs, whole=False)) :
    ]
    assert not any(b"/srv/jane" in path.read_bytes() for path in theirs.rglob("*") if path.is_file())
    for label in ("5", "15"):
        one, two = (
            FolderStore().open(path, silent, lambda stored: None).checkpoints("trainer").read(label, silent)
            for path in (tmp_path / "gone" / "r", theirs)
        )
        assert (one.arrays["w"] == two.arrays["w"]).all()
        assert one.values == two.values


def test_lines_that_are_lost_are_restored_from_the_checkpoints_of_a_bundle(tmp_path: Path) -> None:
    run = write_run(tmp_path / "ours", rows=16)  # the last row is before the last checkpoint
    pack(run, tmp_path / "r.zip")
    theirs = unpack_run(tmp_path / "r.zip", tmp_path / "theirs", lambda run: None, silent)
    whole, journal = rows_of(theirs), theirs / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-3]))
    stored = FolderStore().open(theirs, silent, lambda stored: None)
    said: list[str] = []
    restored = stored.excerpt(["trainer"], said.append).rows("trainer")
    assert restored == whole
    assert "has lost its last 3 lines, which a checkpoint still holds" in said[0]


def test_a_run_with_nothing_to_clear_keeps_its_journal(tmp_path: Path) -> None:
    run = write_run(tmp_path / "ours", path="")
    pack_run(run, tmp_path / "r.zip", "r", {"config.toml": TEXT.encode()}, remove_home, [], silent)
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        assert archive.read("journal.jsonl") == (run / "journal.jsonl").read_bytes()
        for name in ("checkpoints/trainer/15/manifest.json", "checkpoints/trainer/15/manifest.sha256"):
            assert archive.read(name) == (run / name).read_bytes()


def test_a_copied_file_with_a_private_folder_is_refused_wherever_it_is(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    for before in (0, (1 << 20) - 5):  # across two pieces
        (run / "curves.bin").write_bytes(b"x" * before + b"/srv/jane/secret")
        with pytest.raises(SigmaStateError, match="names a folder of this machine, and is not shared"):
            pack(run, tmp_path / "r.zip")
        assert not (tmp_path / "r.zip").exists()
        assert not [*tmp_path.glob(".*.part")]


def test_a_damaged_run_is_not_packed(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    (run / "journal.jsonl").write_text((run / "journal.jsonl").read_text().replace('"iteration": 3', '"iteration": 4'))
    with pytest.raises(SigmaCheckpointError, match="does not follow from the lines before it"):
        pack(run, tmp_path / "r.zip")
    (run / "journal.jsonl").unlink()
    with pytest.raises(SigmaCheckpointError, match="has no journal to resume or replay from"):
        pack(run, tmp_path / "r.zip")
    assert not (tmp_path / "r.zip").exists()


def test_links_in_a_run_are_not_followed(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    (tmp_path / "secret").mkdir()
    (run / "checkpoints" / "trainer" / "99").symlink_to(tmp_path / "secret")
    pack(run, tmp_path / "r.zip")
    (run / "curves.bin").unlink()
    (run / "curves.bin").symlink_to(tmp_path / "r.zip")
    with pytest.raises(SigmaStateError, match="cannot be written: not a regular file"):
        pack(run, tmp_path / "s.zip")


def test_what_a_check_refuses_is_not_kept(tmp_path: Path) -> None:
    pack(write_run(tmp_path / "ours"), tmp_path / "r.zip")

    def refuse(run: Path) -> None:
        assert (run / "config.toml").read_bytes() == CLEAN["config.toml"]
        raise SigmaStateError("not this one.")

    with pytest.raises(SigmaStateError, match="not this one"):
        unpack_run(tmp_path / "r.zip", tmp_path / "theirs", refuse, silent)
    assert [*(tmp_path / "theirs").iterdir()] == []
