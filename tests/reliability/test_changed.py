"""A changed byte of a run folder is refused, reported, or harmless."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHANGES = 1000 if os.environ.get("SIGMA_LONG") else 25
pytestmark = pytest.mark.rooms


def test_a_changed_byte_anywhere_in_a_run_folder_is_refused_reported_or_harmless() -> None:
    script = Path(__file__).parent / "changed.py"
    done = subprocess.run([sys.executable, script, str(CHANGES)], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["changes"], found["unnoticed"]) == (CHANGES, 0)
    for command in ("resume", "replay", "predict"):
        assert sum(count for what, count in found.items() if what.startswith(command)) == CHANGES
