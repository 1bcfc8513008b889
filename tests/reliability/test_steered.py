"""Two trainers that three threads steer at random, and that are killed, resume and replay to the same bits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import SEED, amount

ROUNDS = amount(1, 5, 250)
pytestmark = [
    pytest.mark.rooms,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork"),
]


@pytest.mark.long
def test_a_run_that_is_steered_at_random_and_killed_is_resumed_and_replayed_bit_for_bit() -> None:
    script = Path(__file__).parent / "steered.py"
    command = [sys.executable, script, str(ROUNDS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["runs"], found["different"]) == (2 * ROUNDS, 0)
    assert any(name in found for name in ("set", "rewind", "pause"))  # a slow machine may not come to all of them
