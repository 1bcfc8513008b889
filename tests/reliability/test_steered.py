"""Two trainers that three threads steer at random, and that are killed, resume and replay to the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 250 if os.environ.get("SIGMA_LONG") else 1
pytestmark = [
    pytest.mark.rooms,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]


def test_a_run_that_is_steered_at_random_and_killed_is_resumed_and_replayed_bit_for_bit() -> None:
    script = Path(__file__).parent / "steered.py"
    done = subprocess.run([sys.executable, script, str(ROUNDS)], capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["runs"], found["different"]) == (2 * ROUNDS, 0)
    assert any(name in found for name in ("set", "rewind", "pause"))  # a slow machine may not come to all of them
