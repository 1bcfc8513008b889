"""A process that is killed while it saves leaves the newest checkpoint, or the one before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 500 if os.environ.get("SIGMA_LONG") else 50


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_whenever_saving_is_killed_a_whole_checkpoint_is_left() -> None:
    script = Path(__file__).parent / "killed.py"
    done = subprocess.run([sys.executable, script, str(ROUNDS)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["rounds"] == ROUNDS
    assert found["amid_a_save"] > ROUNDS / 2  # or it was not tested at all
