"""A changed byte of a run folder is refused, reported, or harmless."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import SEED, amount

CHANGES = amount(10, 100, 1000)
pytestmark = pytest.mark.rooms


def test_a_changed_byte_anywhere_in_a_run_folder_is_refused_reported_or_harmless() -> None:
    script = Path(__file__).parent / "changed.py"
    command = [sys.executable, script, str(CHANGES), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["changes"], found["unnoticed"]) == (CHANGES, 0)
    for command in ("resume", "replay", "predict"):
        assert sum(count for what, count in found.items() if what.startswith(command)) == CHANGES
