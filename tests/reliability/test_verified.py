"""Verification accepts correct iterations by a wide margin, and finds nearly all faults."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import LONG

pytestmark = pytest.mark.rooms


@pytest.mark.long
def test_correct_iterations_pass_by_a_wide_margin_and_planted_faults_are_found() -> None:
    script, how = Path(__file__).parent / "verified.py", ["60"] if LONG else ["2", "iris"]
    done = subprocess.run([sys.executable, script, *how], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["off by at most"] < 8 for row in rows)
    planted, found = (sum(row[name] for row in rows) for name in ("planted", "found"))
    assert planted > 100
    assert found > 0.95 * planted
