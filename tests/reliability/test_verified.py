"""The verification of runs passes what is right by a wide margin, and finds nearly all that is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LONG = bool(os.environ.get("SIGMA_LONG"))
pytestmark = pytest.mark.rooms


def test_right_iterations_are_far_from_what_is_refused_and_planted_faults_are_refused() -> None:
    script, how = Path(__file__).parent / "verified.py", ["60"] if LONG else ["2", "iris"]
    done = subprocess.run([sys.executable, script, *how], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert all(row["off by at most"] < 8 for row in rows)
    planted, found = (sum(row[name] for row in rows) for name in ("planted", "found"))
    assert planted > 100
    assert found > 0.95 * planted
