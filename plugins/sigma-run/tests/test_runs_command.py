"""``sigma runs``: what a person sees of their runs, whatever state the folders are in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sigma_run.launcher import main
from sigma_run.launcher.runs import NAMED, describe_run, list_runs
from sigma_run.overview import differing, flat
from sigma_store.folders import WrittenFolder
from sigma_store.run_folder import lock


def folder(parent: Path, name: str, config: str = "", summary: Any = None) -> Path:
    run = parent / name
    run.mkdir(parents=True)
    (run / "config.toml").write_text(config)
    if summary is not None:
        (run / "summary.json").write_text(json.dumps(summary))
    return run


def two(parent: Path) -> None:
    for i, rate in enumerate((0.1, 0.01)):
        summary = {"status": "finished", "epochs": 3, "iterations": 30, "seconds": 1.25, "metrics": {"loss": rate / 3}}
        text = f"[run]\nname = 'a'\n[trainer.optimiser]\nlearning_rate = {rate}\n[monitors.m{i}]\ntype = 'console'\n"
        os.utime(folder(parent, f"run-{1 - i}", text, summary) / "config.toml", (i, i))


def test_runs_are_listed_oldest_first_with_what_differs_between_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two(tmp_path)
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split() for line in out.splitlines()] == [
        ["RUN", "STATUS", "EPOCHS", "SECONDS", "loss", "optimiser.learning_rate"],
        ["run-1", "finished", "3", "1.25", "0.03333", "0.1"],
        ["run-0", "finished", "3", "1.25", "0.003333", "0.01"],
    ]


def test_the_document_has_the_full_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two(tmp_path)
    assert main(["runs", str(tmp_path), "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["runs"]
    assert first["settings"] == {"trainer.optimiser.learning_rate": 0.1}
    assert second == {
        "folder": str(tmp_path / "run-0"), "status": "finished", "epochs": 3, "iterations": 30, "seconds": 1.25,
        "metrics": {"loss": pytest.approx(0.01 / 3)}, "settings": {"trainer.optimiser.learning_rate": 0.01},
    }  # fmt: skip


def test_a_run_in_progress_is_running_and_one_that_was_killed_is_unfinished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        os.utime(folder(tmp_path, name) / "config.toml", (0, 0))  # the same age
    with lock(WrittenFolder(tmp_path / "a")):
        assert main(["runs", str(tmp_path), "--json"]) == 0
    assert [run["status"] for run in json.loads(capsys.readouterr().out)["runs"]] == ["running", "unfinished"]


def test_a_run_folder_can_be_named_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two(tmp_path)
    assert main(["runs", str(tmp_path / "run-0"), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert Path(run["folder"]).name == "run-0"


def test_without_runs_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "No runs found. Train one with `sigma run NAME`; `sigma recipes` lists the names.\n"


@pytest.mark.parametrize(
    "damage", ["[", "", '{"metrics": 7, "status": ["x"], "seconds": "long"}', "[1]", "link", "none"]
)
def test_a_damaged_folder_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    two(tmp_path)
    summary = tmp_path / "run-0" / "summary.json"
    if damage in ("link", "none"):
        summary.unlink()
    if damage == "link":
        summary.symlink_to("/etc/passwd")
    elif damage != "none":
        summary.write_text(damage)
    (tmp_path / "run-0" / "config.toml").write_text("[[")
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert ["run-1", "finished", "3", "1.25", "0.03333"] in [line.split()[:5] for line in out.splitlines()]
    assert "config.toml" in err
    assert "bug in Sigma" not in err


def test_a_number_that_json_has_none_for_is_null_for_its_run_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two(tmp_path)
    text = (
        f'{{"status": "finished", "epochs": 1e999, "seconds": -1e999, "metrics": {{"loss": 1e999, "x": {"9" * 400}}}}}'
    )
    (tmp_path / "run-0" / "summary.json").write_text(text)
    (tmp_path / "run-0" / "config.toml").write_text("a = inf\nb = 2020-01-02\nc = [nan, 1.5]")
    damaged = {run["folder"][-1]: run for run in list_runs([tmp_path])}
    assert damaged["0"]["metrics"] == {"loss": None, "x": None}
    assert (damaged["0"]["epochs"], damaged["0"]["seconds"]) == (None, None)
    assert damaged["0"]["settings"] == {"a": "inf", "b": "2020-01-02", "c": ["nan", 1.5]}
    assert damaged["1"]["metrics"]["loss"] > 0
    json.dumps([*damaged.values()], allow_nan=False)
    assert main(["runs", str(tmp_path)]) == 0
    assert "run-0" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["config.toml", "summary.json"])
def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    two(tmp_path)
    (tmp_path / "run-0" / name).unlink()
    os.mkfifo(tmp_path / "run-0" / name)
    assert {run["folder"][-5:] for run in list_runs([tmp_path])} == {"run-0", "run-1"}
    assert "not a regular file" in capsys.readouterr().err


def test_a_run_takes_a_bounded_share_of_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f'a = 1\nlong = "{"x" * 600_000}"'
    run = folder(tmp_path, "run", text, {"status": "y" * 10**6, "why": "z" * 10**6, "metrics": {"m" * 600_000: 1.0}})
    assert list_runs([tmp_path]) == [describe_run(run)]
    assert describe_run(run)["settings"] == {"a": 1}
    assert describe_run(run)["metrics"] == {}
    assert len(json.dumps(describe_run(run))) < 10_000
    assert "1 of its settings are not listed: they are longer than 262,144" in capsys.readouterr().err


def test_on_a_terminal_columns_that_do_not_fit_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 40
    assert err.split("\n") == [
        "2 more columns: loss,", "optimiser.learning_rate. Widen the", "terminal, or pass --json.", "",
    ]  # fmt: skip


def test_of_many_columns_that_do_not_fit_the_first_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = {f"m{i}": i for i in range(NAMED + 2)}
    folder(tmp_path, "run", "[run]\nname = 'a'\n", {"status": "finished", "metrics": metrics})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "34")
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split()[-1] == "m0"
    named = ", ".join(f"m{i}" for i in range(1, NAMED + 1))
    assert " ".join(err.split()) == f"{NAMED + 1} more columns, such as {named}. Widen the terminal, or pass --json."
    assert max(map(len, err.splitlines())) <= 34


def test_an_architecture_of_several_lines_stays_in_its_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("input(4) +\n output(3)", "input(4)"):
        folder(tmp_path, f"run-{len(text)}", f'[network]\narchitecture = """{text}"""\n', {"status": "finished"})
    assert main(["runs", str(tmp_path)]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert sorted(row.split("finished")[1].strip() for row in rows) == ["input(4)", "input(4) + output(3)"]


def test_settings_are_compared_by_dotted_key() -> None:
    first = dict(flat({"a": {"b": 1, "c": {"d": [2]}}, "e": "x"}))
    assert first == {"a.b": 1, "a.c.d": [2], "e": "x"}
    assert differing([first, {**first, "e": "y"}, {"a.b": 1}]) == ["a.c.d", "e"]
    assert differing([first]) == []
    assert differing([]) == []


def test_in_a_pipe_every_column_of_a_run_is_on_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two(tmp_path)
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert [len(line.split()) for line in out.splitlines()] == [6, 6, 6]
    assert err == ""


def test_a_run_has_its_baselines_and_advice_beside_its_metrics(tmp_path: Path) -> None:
    hostile = {
        "baselines": {"mean": {"validation.loss": 0.5, "x": "high", "y": float("inf")}, "odd": [1, 2], "linear": None},
        "advice": ["the network is no better than the mean.", 3],
    }
    for name, summary in {"plain": hostile, "none": {}, "wrong": {"baselines": [1], "advice": {"a": 1}}}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text("format = 1\n")
        (tmp_path / name / "summary.json").write_text(json.dumps({"status": "finished", **summary}))
    described = describe_run(tmp_path / "plain")
    assert described["baselines"]["mean"] == {"validation.loss": 0.5, "x": None, "y": None}
    assert (described["baselines"]["odd"], described["baselines"]["linear"]) == ({}, {})
    assert described["advice"] == ["the network is no better than the mean.", "3"]
    for name in ("none", "wrong"):
        assert not {"baselines", "advice"} & {*describe_run(tmp_path / name)}
