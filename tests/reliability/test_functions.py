"""Random functions of nodes give the numbers of the same functions of arrays, or are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FUNCTIONS = 500 if os.environ.get("SIGMA_LONG") else 60


def test_random_functions_of_nodes_give_the_numbers_of_arrays() -> None:
    script = Path(__file__).parent / "functions.py"
    done = subprocess.run([sys.executable, script, str(FUNCTIONS)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["equal"] == FUNCTIONS
