"""Programs on disk: found by a second process, private, and never needed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sigma_backend_numba import NumbaBackend, cache
from sigma_kernel.graph.node import Graph, symbol

CODE = """
import numpy as np
from sigma_backend_numba import NumbaBackend
from sigma_kernel.graph.node import Graph, symbol
x = symbol((17,))
print(float(NumbaBackend().lower(Graph((x,), (x * 3.25 + 1.0,)), {})(np.ones(17, "f4"))[0].sum()))
import sys
print(int("sigma_backend_numba.compiler.translate" in sys.modules))
"""


def process(folder: Path) -> list[str]:
    environment = {**os.environ, cache.VARIABLE: str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


def result(factor: float) -> list[float]:
    x = symbol((3,))
    return NumbaBackend().lower(Graph((x,), (x * factor,)), {})(np.ones(3, "f4"))[0].tolist()


def test_a_second_process_finds_the_program_compiled(tmp_path):
    folder = tmp_path / "programs"
    assert process(folder) == ["72.25", "1"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert process(folder) == ["72.25", "0"]


def test_a_damaged_cache_is_passed_by(tmp_path):
    folder = tmp_path / "programs"
    process(folder)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert process(folder) == ["72.25", "1"]
    assert process(folder) == ["72.25", "0"]


def test_a_folder_that_is_a_file_is_no_hindrance(tmp_path, monkeypatch, caplog):
    path = tmp_path / "file"
    path.write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(path))
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        assert result(1.625) == [1.625] * 3
    assert "cannot be used" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path, monkeypatch, caplog):
    tmp_path.chmod(0o777)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    with caplog.at_level(logging.WARNING, logger="sigma.numba"):
        assert result(1.75) == [1.75] * 3
    assert "open to others" in caplog.text
    assert not list(tmp_path.iterdir())


def test_equal_graphs_are_compiled_once(programs):
    result(2.125)
    before = len(list(programs.glob("*.o")))
    result(2.125)
    assert len(list(programs.glob("*.o"))) == before


def test_the_oldest_programs_go(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(cache, "KEPT", 2)
    for factor in (3.125, 3.25, 3.375):
        result(factor)
    assert len(list(tmp_path.glob("sigma_*.o"))) == 2
