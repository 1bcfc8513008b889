"""A process that is killed while it saves leaves the newest checkpoint, or the previous one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 500 if os.environ.get("SIGMA_LONG") else 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_kill_while_saving_always_leaves_a_complete_checkpoint() -> None:
    script = Path(__file__).parent / "killed.py"
    done = subprocess.run([sys.executable, script, str(ROUNDS)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] == ROUNDS
    assert found["amid_a_save"] > ROUNDS / 4  # otherwise the test would be void
