"""``sigma data check`` and ``sigma check`` print what the examiner finds in data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_data.tables import open_table
from sigma_run.launcher.group import main

CONFIGURATION = """
format = 1
[run]
name = "houses"
[data]
dataset = "table"
path = "houses.csv"
target = "dear"
targets = "classes"
split_by = "block"
split = { training = 0.75, validation = 0.25 }
[network]
architecture = "input(none) + dense(4) + output(2) + softmax_cross_entropy()"
[trainer]
optimiser = "adam"
epochs = 1
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder with a table of 400 houses, in which nothing is odd, and a configuration."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{rng.uniform(30, 200):.3f},{'AB'[rng.integers(2)]},{('yes', 'no')[rng.integers(2)]}" for _ in range(400)]
    write(tmp_path, rows)
    (tmp_path / "houses.toml").write_text(CONFIGURATION)
    return tmp_path


def write(place: Path, rows: list[str]) -> None:
    (place / "houses.csv").write_text("\n".join(["size,ward,dear", *rows]) + "\n")


def read(place: Path) -> list[str]:
    return (place / "houses.csv").read_text().splitlines()[1:]


@pytest.mark.parametrize("what", ["houses.csv", "houses.toml", "iris"])
def test_clean_data_end_with_exit_code_0(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", what]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == (f"{what}: nothing odd" if what != "iris" else "iris: 1 note")


def test_findings_are_printed_with_places_and_end_with_exit_code_1(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read(place)
    write(place, [*rows[:300], *rows[:20], *rows[320:]])
    assert main(["data", "check", "houses.toml"]) == 1
    err = capsys.readouterr().err
    assert "error: 20 of 100 rows of 'validation' have the same inputs" in err
    assert "houses.csv:302 and " in err
    assert err.rstrip().endswith("houses.toml: 1 error")
    assert main(["data", "check", "houses.toml", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["ok"] is False
    assert [finding["rule"] for finding in document["findings"]] == ["shared-rows"]
    assert [*document["findings"][0]] == ["rule", "severity", "text", "examples"]
    assert main(["data", "check", "houses.toml", "--set", "data.split={ training = 1.0 }", "--json"]) == 0


def test_check_prints_the_same_but_those_that_take_long(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read(place)
    write(place, [*rows[:300], *rows[:20], *[row.replace(",A", ",B") for row in rows[320:]]])
    assert main(["data", "check", "houses.toml", "--json"]) == 1
    every = json.loads(capsys.readouterr().out)["findings"]
    assert main(["check", "houses.toml", "--json"]) == 0
    quick = json.loads(capsys.readouterr().out)
    assert quick["ok"] is True
    assert quick["findings"] == [finding for finding in every if finding["rule"] == "shared-rows"]
    assert {finding["rule"] for finding in every} >= {"shared-rows", "drift"}
    assert main(["check", "houses.toml"]) == 0
    assert "error: 20 of 100 rows" in capsys.readouterr().err


@pytest.mark.parametrize(("command", "most"), [(["check"], 1), (["data", "check"], 2)])
def test_a_table_is_parsed_once_and_again_only_for_columns_that_are_left_out(
    monkeypatch: pytest.MonkeyPatch, command: list[str], most: int, place: Path
) -> None:
    opened: list[Any] = []

    def count(what: Any, **settings: Any) -> Any:
        opened.append(what)
        return open_table(what, **settings)

    for name, module in [*sys.modules.items()]:
        if name.startswith("sigma_data.") and getattr(module, "open_table", None) is open_table:
            monkeypatch.setattr(module, "open_table", count)
    assert main([*command, "houses.toml"]) == 0
    assert len(opened) == 1
    opened.clear()
    (place / "houses.toml").write_text(CONFIGURATION.replace("[network]", 'exclude = "ward"\n[network]'))
    assert main([*command, "houses.toml"]) == 0
    assert len(opened) == most


def test_check_prints_no_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "iris", "--json"]) == 0
    assert [finding["severity"] for finding in json.loads(capsys.readouterr().out)["findings"]] == ["note"]
    assert main(["check", "iris"]) == 0
    assert capsys.readouterr().err == "ok\n"


@pytest.mark.filterwarnings("always::sigma_kernel.errors.SigmaWarning")
def test_what_a_data_set_tells_is_printed_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = read(place)
    write(place, [*rows[:350], rows[350].rpartition(",")[0] + ",very", *rows[351:]])
    (place / "houses.toml").write_text(CONFIGURATION.replace("output(2)", "output(3)"))
    for command in (["check"], ["data", "check"]):
        main([*command, "houses.toml"])
        assert capsys.readouterr().err.count("class 'very' has no row in the split 'training'") == 1


@pytest.mark.parametrize(("arguments", "said"), [
    (["nothing.csv"], "nothing.csv: there is no such file, folder or recipe."),
    (["houses.csv", "--set", "data.seed=1"], "--set: changes a configuration, and these are data."),
    (["empty.csv"], "empty.csv"),
    (["pictures"], "is not in the folder of a class"),
])  # fmt: skip
def test_what_cannot_be_examined_is_an_error_of_usage(
    arguments: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "empty.csv").write_bytes(b"\x00\xff\x00")
    (place / "pictures").mkdir()
    (place / "pictures" / "a.png").write_bytes(b"\x89PNG")
    assert main(["data", "check", *arguments]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err
