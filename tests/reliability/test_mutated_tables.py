"""A file that is damaged in any way ends in rows or in one error, and never in a crash, whatever its format."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sigma_data.tables import open_table
from tests.reliability import mutated_tables
from tests.reliability.amount import SEED, amount

FILES = amount(150, 500, 5_000)
ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.rooms, pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory")]


@pytest.mark.long
def test_mutated_files_of_every_format_are_read_or_refused():
    command = [sys.executable, "-m", "tests.reliability.mutated_tables", str(FILES), str(SEED)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    last = ended.stderr.splitlines()[-1:]
    assert (ended.returncode, last) == (0, [f"flac: file {SEED + FILES - 1}"]), ended.stdout + ended.stderr[-2000:]
    assert mutated_tables.open_table is open_table  # what is read is read as users read it
    results = json.loads(ended.stdout)
    assert len(results) == 35
    assert all(result["refused"] > FILES // 10 for result in results.values())


def test_what_is_odd_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(mutated_tables, "count_rows", lambda path: 0)
    monkeypatch.setattr(mutated_tables, "read", lambda path: "no place: x")
    assert mutated_tables.read_mutated("csv", 3, 2, tmp_path) == {
        "no place": 2, "odd": {"3": "no place: x", "4": "no place: x"},
    }  # fmt: skip
