"""Random functions of nodes give the numbers of the same functions of arrays, or are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.reliability.amount import SEED, amount

FUNCTIONS = amount(60, 60, 500)


def test_random_functions_of_nodes_give_the_numbers_of_arrays() -> None:
    script = Path(__file__).parent / "functions.py"
    command = [sys.executable, script, str(FUNCTIONS), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["equal"] == FUNCTIONS
