"""Commands in any order, from any thread: each is answered and has its effect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import SEED, amount

SEQUENCES = amount(40, 200, 10_000)
APPLIED = {"set", "pause", "go", "step", "stop", "save", "rewind", "reset", "attach", "detach", "swap", "undo"}
pytestmark = pytest.mark.rooms


@pytest.mark.long
def test_every_command_is_acknowledged_once_and_has_its_effect() -> None:
    script = Path(__file__).parent / "commands.py"
    command = [sys.executable, script, str(SEQUENCES), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["sequences"] >= SEQUENCES
    assert {*found["commands"]} == {*APPLIED, "refused"}  # each command was sent, and applied at least once
    assert found["bursts waited"]["pause"] <= 1
    assert found["bursts waited"]["end"] <= 2
