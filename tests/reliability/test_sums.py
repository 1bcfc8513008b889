"""Sums of many numbers are off by few roundings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import amount

POWER = amount(19, 19, 25)
pytestmark = pytest.mark.rooms


def test_sums_of_many_numbers_are_off_by_few_roundings() -> None:
    script = Path(__file__).parent / "sums.py"
    done = subprocess.run([sys.executable, script, str(POWER)], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(done.stdout)
    assert {row["backend"] for row in rows} == {"numpy", "numba"}
    assert all(row["mean of ones"] == 1 for row in rows)
    assert max(row["roundings"] for row in rows if row["dtype"] == "float32") < 500
