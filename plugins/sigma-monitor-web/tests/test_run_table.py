"""The table of runs: parts of it, filtered and sorted; marks; the difference of two runs; many runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigma_monitor_web.keys import BOTH, READ
from sigma_monitor_web.listing import RunList
from sigma_monitor_web.run_table import COLUMNS, ROWS, TableQuery, compare_settings
from sigma_monitor_web.shelf import Shelf
from sigma_run.overview import INDEX


def write(parent: Path, name: str, rate: float, loss: float, age: int, journal: str = "") -> Path:
    run = parent / name
    run.mkdir()
    (run / "config.toml").write_text(f"[trainer.optimiser]\ntype = 'adam'\nlearning_rate = {rate}\n")
    summary = {
        "status": "finished",
        "epochs": 2,
        "iterations": 20,
        "seconds": 1.0,
        "metrics": {"validation.loss": loss},
    }
    (run / "summary.json").write_text(json.dumps(summary))
    (run / "journal.jsonl").write_text(journal)
    os.utime(run / "config.toml", (age, age))
    return run


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    monkeypatch.setattr("sigma_monitor_web.listing.PROMPT", 60.0)
    command = '{"trainer": "trainer", "iteration": 3, "command": "set", "pattern": "x", "value": 1}\n'
    event = '{"trainer": "trainer", "iteration": 0, "event": "begin"}\n'
    write(tmp_path, "a", 0.1, 0.5, 1, event + command)
    write(tmp_path, "b", 0.01, 0.25, 2)
    write(tmp_path, "c", 0.001, 0.75, 3)
    shelf = Shelf(tmp_path)
    yield shelf
    shelf.end()


def asked(shelf: Shelf, scopes: frozenset[str] = BOTH, **document: Any) -> Any:
    talk = shelf.talk("", scopes)
    lines = talk.receive(json.dumps({"id": 1, **document}))
    while not lines:
        lines += talk.answers()
    talk.close()
    answer = json.loads(lines[-1])
    return answer.get("result", answer.get("error"))


def names(answer: dict[str, Any]) -> list[str]:
    return [row["name"] for row in answer["rows"]]


def test_the_table_has_the_newest_first_and_the_columns_that_differ(shelf: Shelf) -> None:
    table = asked(shelf, do="table")
    assert names(table) == ["c", "b", "a"]
    assert (table["all"], table["total"], table["start"]) == (3, 3, 0)
    assert table["settings"] == ["trainer.optimiser.learning_rate"]
    assert table["metrics"] == ["validation.loss"]
    assert table["rows"][0]["settings"] == {"trainer.optimiser.learning_rate": 0.001}


def test_the_server_filters_and_sorts(shelf: Shelf) -> None:
    assert names(asked(shelf, do="table", where="validation.loss below 0.6")) == ["b", "a"]
    assert names(asked(shelf, do="table", sort="validation.loss")) == ["b", "a", "c"]
    assert names(asked(shelf, do="table", sort="validation.loss", descending=True)) == ["c", "a", "b"]
    table = asked(shelf, do="table", sort="name", start=1, count=1)
    assert (names(table), table["total"], table["start"]) == (["b"], 3, 1)
    assert names(asked(shelf, do="table", start=7)) == []


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ({"where": "validation.los below 1"}, "filter: 'validation.los': no run has this value. Did you mean"),
        ({"where": "loss"}, "filter: 'loss': is not understood at its end"),
        ({"where": "validation.loss improves"}, "filter: validation.loss improves: a run in a list has one moment."),
        ({"sort": "los"}, "order: 'los': no run has this value."),
        ({"where": 3}, "where"),
    ],
)
def test_a_wrong_query_is_told_in_one_sentence(shelf: Shelf, query: dict[str, Any], why: str) -> None:
    answer = asked(shelf, do="table", **query)
    assert answer["kind"] == "SigmaConfigError"
    assert why in answer["message"]


def test_an_answer_is_bounded_whatever_is_asked_for() -> None:
    length = {"epochs": 1, "iterations": 1, "seconds": 1.0}
    rows = [
        {"folder": f"/x/r{i}", "name": f"r{i}", "status": "finished", **length, "metrics": {f"m{i}": 1.0},
         "settings": {f"s{j}": i for j in range(COLUMNS + 5)}}
        for i in range(ROWS + 5)
    ]  # fmt: skip
    answer = TableQuery(count=10**9, start=-5).answer(rows)
    assert (len(answer["rows"]), answer["start"], answer["total"]) == (ROWS, 0, ROWS + 5)
    assert (len(answer["settings"]), len(answer["metrics"])) == (COLUMNS, COLUMNS)
    assert TableQuery(count=-1).answer(rows)["rows"] == []


def test_people_mark_runs_and_archive_them(shelf: Shelf) -> None:
    marks = asked(shelf, do="mark", run="a", title="First", tags=["x", "base"], note="n", starred=True)
    assert marks == {"title": "First", "tags": ["base", "x"], "note": "n", "starred": True, "archived": False}
    assert names(asked(shelf, do="table", where='starred equals 1 and any tags.* equals "base"')) == ["a"]
    assert asked(shelf, do="mark", run="a", starred=False, note="")["title"] == "First"
    asked(shelf, do="mark", run="b", archived=True)
    assert names(asked(shelf, do="table")) == ["c", "a"]
    table = asked(shelf, do="table", archived=True)
    assert (names(table), table["all"], table["shown"]) == (["c", "b", "a"], 3, 3)


def test_wrong_marks_and_readers_are_refused(shelf: Shelf) -> None:
    refused = asked(shelf, do="mark", run="a", tags=["two words"])
    assert "at most 50 tags, each of at most 40 letters" in refused["message"]
    assert "is not the name of a run folder" in asked(shelf, do="mark", run="../a", starred=True)["message"]
    assert "unknown" in asked(shelf, frozenset({READ}), do="mark", run="a", starred=True)["message"]
    assert not [*shelf.folder.rglob("marks.json")]


def test_two_runs_are_compared(shelf: Shelf) -> None:
    found = asked(shelf, do="difference", one="a", other="b")
    assert found["runs"] == ["a", "b"]
    assert found["settings"] == [{"name": "trainer.optimiser.learning_rate", "values": [0.1, 0.01]}]
    assert [[row["command"] for row in rows] for rows in found["commands"]] == [["set"], []]
    assert "is not the name of a run folder" in asked(shelf, do="difference", one="a", other="z")["message"]


def test_settings_that_one_run_lacks_differ() -> None:
    assert compare_settings([{"a": 1, "b": 2}, {"a": 1, "c": 3}]) == [
        {"name": "b", "values": [2, None]}, {"name": "c", "values": [None, 3]},
    ]  # fmt: skip


def test_a_list_begins_with_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigma_monitor_web.listing.PROMPT", 60.0)
    for i in range(100):
        write(tmp_path, f"r{i:03}", 0.1, i / 100, i)
    (tmp_path / "r007" / "config.toml").write_text("[[")
    first = RunList(tmp_path)
    rows = first.runs().result()
    first.end()
    assert len(rows) == 100
    assert not (tmp_path / INDEX).exists()  # 99 of them are whole, which is not worth it
    write(tmp_path, "r100", 0.1, 1.0, 100)
    second = RunList(tmp_path)
    rows = second.runs().result()
    second.end()
    assert set(json.loads((tmp_path / INDEX).read_text())["runs"]) == {row["name"] for row in rows} - {"r007"}
    third, reads = RunList(tmp_path), list[Path]()
    by_name = {row["name"]: row for row in rows}
    monkeypatch.setattr(RunList, "_ask_description", lambda self, path: reads.append(path) or by_name[path.name])
    assert [row["metrics"] for row in third.runs().result()] == [row["metrics"] for row in rows]
    third.end()
    assert [path.name for path in reads] == ["r007"]


def test_a_damaged_run_raises_no_error_in_a_table(shelf: Shelf) -> None:
    (shelf.folder / "b" / "summary.json").write_text("[")
    (shelf.folder / "c" / "config.toml").write_text("[[")
    assert sorted(names(asked(shelf, do="table"))) == ["a", "b", "c"]
