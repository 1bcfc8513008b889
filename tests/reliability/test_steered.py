"""A run that three people steered, that was killed and resumed, is replayed to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 10 if os.environ.get("SIGMA_LONG") else 1
pytestmark = [
    pytest.mark.rooms,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here"),
]


def test_what_three_people_did_to_a_run_is_done_again_to_the_bit() -> None:
    script = Path(__file__).parent / "steered.py"
    done = subprocess.run([sys.executable, script, str(ROUNDS)], capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["different"] == 0
    assert min(found[command] for command in ("set", "pause", "go", "save", "rewind", "step")) > 0
