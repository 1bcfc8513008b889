"""Faults that are planted in the code differ from it in one place each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.reliability import mutations
from tests.reliability.mutations import main, mutants, select_tests

CODE = """\
def first(items, n):
    if n < 0 and items:
        return items[n + 1]
    return None
"""


def test_each_mutant_changes_one_place_and_restores_it():
    tree = ast.parse(CODE)
    before, found = ast.unparse(tree), {}
    for line, what in mutants(tree):
        text = ast.unparse(tree)
        assert sum(a != b for a, b in zip(text.splitlines(), before.splitlines(), strict=True)) == 1
        found[what] = line
    assert ast.unparse(tree) == before
    assert found == {
        "And -> Or": 2, "Lt -> LtE": 2, "0 -> 1": 2, "return items[n + 1] -> return None": 3, "Add -> Sub": 3,
        "1 -> 2": 3,
    }  # fmt: skip


def test_a_fault_meets_the_tests_of_its_room_first_and_each_that_names_its_module_before_others(tmp_path: Path):
    file = tmp_path / "plugins" / "sigma-hooks" / "sigma_hooks" / "plateau.py"
    own, cross = file.parents[1] / "tests", tmp_path / "tests"
    texts = {
        own / "test_a.py": "", own / "test_b.py": "from sigma_hooks.plateau import x", cross / "test_a.py": "",
        cross / "test_house.py": "", cross / "peers" / "test_c.py": "", cross / "graph" / "test_d.py": "plateau",
    }  # fmt: skip
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    expected = [own / "test_b.py", own / "test_a.py", cross / "graph" / "test_d.py", cross / "test_a.py"]
    assert select_tests(file, tmp_path) == [*map(str, expected)]


def test_a_fault_in_the_kernel_or_in_what_was_part_of_it_meets_the_tests_of_all_of_these(tmp_path: Path):
    rooms = [tmp_path / "plugins" / name for name in ("sigma-training", "sigma-store", "sigma-run")]
    training, store, run = tests = [room / "tests" / "test_a.py" for room in rooms]
    cross = tmp_path / "tests" / "test_a.py"
    for path in (*tests, cross):
        path.parent.mkdir(parents=True)
        path.touch()
    in_kernel, in_store = tmp_path / "sigma_kernel" / "clock.py", rooms[1] / "sigma_store" / "chain.py"
    assert select_tests(in_kernel, tmp_path) == [*map(str, (cross, training, store, run))]
    assert select_tests(in_store, tmp_path) == [*map(str, (store, cross, training, run))]


@pytest.mark.parametrize(("known", "code"), [(False, 1), (True, 0)])
def test_survivors_are_reported_and_fail_unless_they_are_known_as_equivalent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: bool, code: int
):
    def copy_project(copy: Path) -> Path:
        (copy / "room").mkdir(parents=True)
        (copy / "room" / "one.py").write_text("x = 1\ny = 2 + 3\n")
        return copy

    def catch(copy: Path, tests: list[str]) -> str:
        return "" if "y = 2 - 3" in (copy / "room" / "one.py").read_text() else "tests/test_one.py::test_y"

    survivor = "room/one.py: y = 2 + 3: Add -> Sub"
    monkeypatch.setattr(mutations, "copy_project", copy_project)
    monkeypatch.setattr(mutations, "catch", catch)
    monkeypatch.setattr(mutations, "EQUIVALENT", {survivor: "nothing reads y"} if known else {})
    assert main(50, "room") == code
    out = capsys.readouterr().out
    assert f"{survivor}: {'nothing reads y' if known else 'SURVIVES'}\n" in out
    assert "room/one.py: x = 1: 1 -> 2: caught by tests/test_one.py::test_y\n" in out
    assert out.endswith(f"3 of 4 are caught, {int(known)} are equivalent, {int(not known)} survive\n")
