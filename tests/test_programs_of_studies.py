"""Folds and seeds compile nothing that the first run compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sigma_backend_numba.cache import lookup, units
from sigma_backend_numba.compiler import machine_code
from sigma_run.launcher import main

pytestmark = pytest.mark.rooms
ROWS, BATCH, FOLDS = 150, 10, 5  # of the recipe iris: every fold has as many rows


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of programs; nothing is known in this process, either."""
    folder = tmp_path / "programs"
    monkeypatch.setenv("SIGMA_NUMBA_CACHE", str(folder))
    monkeypatch.setattr(lookup, "_loaded", {})
    monkeypatch.chdir(tmp_path)
    return folder


def count(cache: Path) -> tuple[int, int]:
    """Return how many programs there are, and how many units."""
    return len([*cache.glob("sigma_*.o")]), len([*cache.glob("unit_*.o")])


def run(*arguments: str) -> None:
    settings = ["--backend", "numba", "--set", f"data.batch_size={BATCH}", "--epochs", "2", "--quiet"]
    assert main(["run", "iris", *settings, *arguments]) == 0


def test_a_study_of_five_folds_and_three_seeds_compiles_each_program_once(cache: Path) -> None:
    assert ROWS // FOLDS * (FOLDS - 1) % BATCH == 0
    run("--folds", str(FOLDS))
    programs, units = count(cache)
    assert programs <= 3  # training, evaluation, and evaluation of the last, smaller batch
    lookup._loaded.clear()  # as in another process
    run("--folds", str(FOLDS), "--seeds", "3")
    assert count(cache) == (programs, units)


def test_a_network_with_one_other_size_compiles_few_units(cache: Path) -> None:
    network = (
        "network.architecture=input(4) + dense(17, activation='tanh') + dense(9) + output(3) + softmax_cross_entropy()"
    )
    run("--set", network)
    programs, units = count(cache)
    run("--set", network.replace("17", "18"))
    more = count(cache)
    assert more[0] == 2 * programs
    assert 0 < more[1] - units < units


def units_by_program(monkeypatch: pytest.MonkeyPatch, cache: Path) -> list[int]:
    """Return a list to which each program that is compiled adds its number of new units."""
    numbers: list[int] = []
    assemble = units.assemble

    def counting(*given: Any) -> Any:
        before = count(cache)[1]
        result = assemble(*given)
        numbers.append(count(cache)[1] - before)
        return result

    monkeypatch.setattr(lookup, "assemble", counting)
    return numbers


@pytest.mark.long
def test_last_batches_and_batches_of_other_sizes_compile_few_units(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "SPEED", 0)
    numbers = units_by_program(monkeypatch, cache)
    command = ["run", "residual", "--backend", "numba", "--epochs", "1", "--quiet"]
    assert main(command) == 0
    training, last, *_ = numbers
    assert training > 50
    assert last <= 5
    for change in (["--seed", "1"], ["--set", "data.batch_size=64"], ["--set", "data.batch_size=32"]):
        numbers.clear()
        lookup._loaded.clear()
        assert main([*command, *change]) == 0
        assert max(numbers, default=0) <= 5, change
