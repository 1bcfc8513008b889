"""Acknowledged commands survive a kill on a disk that fills and empties."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import join

import pytest

from tests.reliability.amount import SEED, amount

ROUNDS = amount(3, 10, 200)
UNSHARE = ("unshare", "--map-root-user", "--mount", "sh", "-c")


def test_no_acknowledged_command_is_lost_when_the_disk_fills_and_the_run_is_killed(tmp_path: Path) -> None:
    mounted = join(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(tmp_path)])
    if not shutil.which("unshare") or subprocess.run([*UNSHARE, mounted], capture_output=True).returncode:
        pytest.skip("cannot mount a tmpfs")
    script = join([sys.executable, str(Path(__file__).parent / "crowded.py"), str(tmp_path), str(ROUNDS), str(SEED)])
    done = subprocess.run([*UNSHARE, f"{mounted} && {script}"], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["runs"], found["lost"]) == (ROUNDS, 0)
    assert found["answered"] > 0
