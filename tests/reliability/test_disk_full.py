"""On a full disk, nothing is lost but the checkpoints for which there was no space."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import join
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "filled.py"
UNSHARE = ("unshare", "--map-root-user", "--mount", "sh", "-c")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a tmpfs or RLIMIT_FSIZE")


def mounted(folder: Path) -> str:
    """Return the shell command that mounts a small disk, visible only to that shell and its children."""
    return join(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(folder)])


def may_mount(folder: Path) -> bool:
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run([*UNSHARE, mounted(folder)], capture_output=True).returncode
    )


def trained(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def expect(found: dict[str, Any], reason: str, *growing: str) -> None:
    assert found["epochs"] == 8  # training continued
    alarms = [text for text in found["alarms"] if text.startswith("ALARM: ")]
    assert all(reason in text for text in alarms)
    for what in ("checkpoint 15", "journal.jsonl", *growing):
        assert sum(f"{what}: " in text for text in alarms) == 1, what  # once; further failures are counted
    assert "checkpoint 30: written; 3 before it failed." in found["alarms"]
    assert sum("can be written again; " in text for text in found["alarms"]) == len(alarms) - 1
    assert [found["whole"][n] for n in ("2", "3", "4", "5")] == [["5", "10"]] * 4  # the old ones are intact
    assert found["whole"]["6"] == ["5", "10", "30"]  # the next save succeeds once there is space
    assert found["left"] == ["10", "30", "35", "40", "5"]  # and no partial file is left
    assert found["differs"] == {}  # the journal is complete


def test_training_continues_on_a_full_disk(tmp_path: Path) -> None:
    if not may_mount(tmp_path):
        pytest.skip("cannot mount a tmpfs")
    script = join([sys.executable, str(SCRIPT), "tmpfs", str(tmp_path)])
    expect(trained(*UNSHARE, f"{mounted(tmp_path)} && {script}"), "No space left on device")


def test_training_continues_if_files_must_not_grow(tmp_path: Path) -> None:
    expect(trained(sys.executable, str(SCRIPT), "limit", str(tmp_path)), "File too large", "curves.bin")
