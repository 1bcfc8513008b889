"""A process that is killed while it saves leaves the newest checkpoint, or the previous one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import SEED, amount

ROUNDS = amount(50, 100, 500)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_kill_while_saving_always_leaves_a_complete_checkpoint() -> None:
    script = Path(__file__).parent / "killed.py"
    command = [sys.executable, script, str(ROUNDS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] == ROUNDS
    assert found["amid_a_save"] > ROUNDS / 4  # otherwise the test would be void
