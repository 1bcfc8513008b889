"""A run of very many iterations that nobody saves ends with its network saved, in limited memory and files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import amount

STEPS = amount(20_000, 20_000, 10**7)
pytestmark = [pytest.mark.rooms, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]


def test_a_long_run_is_saved_and_resumed_in_limited_memory_and_files() -> None:
    script = Path(__file__).parent / "soak.py"
    done = subprocess.run([sys.executable, script, str(STEPS)], capture_output=True, text=True, timeout=7200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["iterations"], len(found["memory"])) == (STEPS, 8)
