"""A run that is stopped, interrupted or killed at any step resumes to the bits of an uninterrupted one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import SEED, amount

ROUNDS = amount(1, 3, 50)
pytestmark = [
    pytest.mark.rooms,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]


@pytest.mark.long
def test_a_run_interrupted_at_any_time_is_resumed_and_replayed_bit_for_bit() -> None:
    script = Path(__file__).parent / "resumed.py"
    command = [sys.executable, script, str(ROUNDS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("different") == 0
    found.pop("too late")  # was replayed
    assert sum(found.values()) == 6 * ROUNDS
    assert found["stop"]
