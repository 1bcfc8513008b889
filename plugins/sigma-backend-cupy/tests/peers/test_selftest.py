"""The self-test: loud without a GPU, and the table that it writes with one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigma_backend_cupy import selftest
from sigma_backend_cupy.devices import cuda
from sigma_kernel.errors import SigmaConfigError

ROOT = Path(__file__).parents[4]


def absent(number: int, tf32: bool) -> Any:
    raise SigmaConfigError("backend 'cupy': there is no GPU that CUDA can use here.")


def test_without_a_gpu_it_says_so_and_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.setattr(cuda, "device", absent)
    assert selftest.main([]) == 1
    assert capsys.readouterr().err.startswith("NO GPU: nothing was tested and nothing was measured.\nbackend 'cupy'")


def test_it_tests_trains_and_measures_and_writes_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **settings: Any) -> Any:
        commands.append(command[1:])
        failed = "bench-cnn" in command or "xor" in command
        contestants = {"contestants": [{"name": "cupy", "median_s": 1e-4}, {"name": "torch", "median_s": 4e-4}]}
        said = {"recipes": [{"name": "iris"}, {"name": "xor"}]} if "recipes" in command else contestants
        return SimpleNamespace(returncode=int(failed), stdout=json.dumps(said), stderr="it failed")

    monkeypatch.setattr(selftest, "CupyBackend", lambda: SimpleNamespace(runtime={"CuPy": "14.2", "device": "a GPU"}))
    page = tmp_path / "page.md"
    page.write_text(f"before\n{selftest.BEGIN}\nold\n{selftest.END}\nafter\n")
    assert selftest.main(["--peers", "torch", "--write", str(page)], run) == 1
    assert ["-m", "sigma_run", "run", "iris", "--backend", "cupy", "--quiet"] in commands
    lines = page.read_text().splitlines()
    assert lines[:2] == ["before", selftest.BEGIN]
    assert lines[-2:] == [selftest.END, "after"]
    assert "CuPy 14.2, device a GPU." in lines[2]
    assert "| `mnist` | 0.100 | 0.400 |" in lines
    assert "| `bench-cnn` | not measured | not measured |" in lines


def test_the_page_on_performance_has_a_place_for_the_table() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = page.partition(selftest.BEGIN)[2].partition(selftest.END)[0]
    assert all(f"| `{name}` |" in table for name in selftest.BENCHMARKS)
