"""Data that are given again end in the same numbers, or in a refusal by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.amount import SEED, amount

ROUNDS = amount(8, 80, 2000)
pytestmark = pytest.mark.rooms


@pytest.mark.long
def test_data_that_are_given_again_in_another_way_end_in_the_same_numbers_or_are_refused_by_name() -> None:
    script = Path(__file__).parent / "given_again.py"
    command = [sys.executable, script, str(ROUNDS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sum(count for how, count in found.items() if how != "rounds") == found["rounds"] == ROUNDS
