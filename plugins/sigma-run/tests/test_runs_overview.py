"""``sigma runs`` and ``sigma mark``: filters, order, averages, columns, the index, and what a person says of runs."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.errors import SigmaConfigError
from sigma_run.launcher import main
from sigma_run.launcher.runs import list_runs
from sigma_run.overview import Marks, average_rows, select_rows, sort_rows, values_of
from sigma_run.overview.index import INDEX, WORTH, is_entry
from sigma_run.overview.marks import MARKS


def folder(parent: Path, name: str, rate: float = 0.1, seed: int = 0, loss: float | None = 0.5, **more: Any) -> Path:
    run = parent / name
    run.mkdir(parents=True)
    kind = more.pop("kind", "adam")
    text = f"[run]\nseed = {seed}\n[trainer.optimiser]\ntype = '{kind}'\nlearning_rate = {rate}\n"
    (run / "config.toml").write_text(text)
    summary = {
        "status": "finished",
        "epochs": 3,
        "iterations": 30,
        "seconds": 1.5,
        "metrics": {"validation.loss": loss},
    }
    (run / "summary.json").write_text(json.dumps({**summary, **more}))
    return run


def three(parent: Path) -> list[Path]:
    runs = [
        folder(parent, "a", 0.1, loss=0.5),
        folder(parent, "b", 0.01, loss=0.25, status="stopped", kind="sgd"),
        folder(parent, "c", 0.001, loss=None, seconds=None, epochs=None),
    ]
    for i, run in enumerate(runs):
        os.utime(run / "config.toml", (i, i))
    return runs


def names(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["runs", *arguments, "--json"]) == 0
    return [Path(run["folder"]).name for run in json.loads(capsys.readouterr().out)["runs"]]


# -- filters and order -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("validation.loss below 0.3", "b"),
        ("validation.loss above 0.3", "a"),
        ("not validation.loss above 0.3", "b"),  # of c, nothing is known
        ("trainer.optimiser.learning_rate falls to 0.01", "bc"),
        ('status equals "finished"', "ac"),
        ("trainer.optimiser.type equals 'sgd' or validation.loss reaches 0.5", "ab"),
        ("seconds reaches 1 and epochs equals 3", "ab"),
        ("epoch below 10", "ab"),
        ('name equals "c"', "c"),
        ("any trainer.optimiser.* equals 'sgd'", "b"),
        ("starred equals 1", ""),
        ("any tags.* equals 'x'", ""),
        ("validation.loss below trainer.optimiser.learning_rate", ""),
    ],
)
def test_a_criterion_selects_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, left: str) -> None:
    three(tmp_path)
    assert names(capsys, str(tmp_path), "--where", where) == [*left]


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("validation.loss", "is not understood at its end; expected reaches"),
        ("validation.los below 1", "'validation.los': no run has this value. Did you mean 'validation.loss'?"),
        ("validation.loss improves", "a run in a list has one moment. Ask for numbers by reaches"),
        ("validation.loss below 1 for 3 epochs", "a run in a list has one moment."),
        ("validation.loss below 1 once", "a run in a list has one moment."),
        ("plateau(validation.loss)", "a run in a list has one moment."),
        ("status above 3", "status above 3: needs a number (got str)."),
        ('status above "x"', "is not understood at"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, why: str
) -> None:
    three(tmp_path)
    assert main(["runs", str(tmp_path), "--where", where]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("--where: ")
    assert why in err


def test_a_filter_that_holds_for_none_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three(tmp_path)
    assert main(["runs", str(tmp_path), "--where", "validation.loss below 0"]) == 0
    assert capsys.readouterr() == ("", "--where validation.loss below 0: holds for no run.\n")


def test_runs_are_sorted_and_those_without_the_value_come_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three(tmp_path)
    assert names(capsys, str(tmp_path)) == ["a", "b", "c"]
    assert names(capsys, str(tmp_path), "--descending") == ["c", "b", "a"]
    assert names(capsys, str(tmp_path), "--sort", "validation.loss") == ["b", "a", "c"]
    assert names(capsys, str(tmp_path), "--sort", "validation.loss", "--descending") == ["a", "b", "c"]
    assert names(capsys, str(tmp_path), "--sort", "trainer.optimiser.type", "--descending") == ["b", "a", "c"]
    assert main(["runs", str(tmp_path), "--sort", "second"]) == 2
    assert "--sort: 'second': no run has this value. Did you mean 'seconds'?" in capsys.readouterr().err


def test_equal_values_keep_their_order_in_both_directions() -> None:
    rows = [row(f"r{i}", loss=value) for i, value in enumerate((2.0, 1.0, 2.0, 1.0))]
    assert [r["folder"] for r in sort_rows(rows, "loss")] == ["r1", "r3", "r0", "r2"]
    assert [r["folder"] for r in sort_rows(rows, "loss", descending=True)] == ["r0", "r2", "r1", "r3"]


def row(name: str, seed: int = 0, rate: float = 0.1, **metrics: float | None) -> dict[str, Any]:
    settings = {"run.seed": seed, "rate": rate}
    length = {"epochs": 2, "iterations": 20, "seconds": 1.0}
    return {"folder": name, "status": "finished", **length, "metrics": metrics, "settings": settings}


def test_a_filter_agrees_with_numpy_on_random_runs() -> None:
    key = random.Random(0)
    rows = [row(str(i), seed=key.randrange(5), rate=key.choice((0.1, 0.01)), loss=key.gauss(0, 1)) for i in range(500)]
    loss, seed = np.array([r["metrics"]["loss"] for r in rows]), np.array([r["settings"]["run.seed"] for r in rows])
    rate = np.array([r["settings"]["rate"] for r in rows])
    picked = select_rows(rows, "(loss above -0.5 and not run.seed reaches 3) or rate equals 0.01 and loss falls to -1")
    expected = ((loss > -0.5) & ~(seed >= 3)) | ((rate == 0.01) & (loss <= -1))
    assert [int(r["folder"]) for r in picked] == np.flatnonzero(expected).tolist()
    order = sort_rows(rows, "loss")
    assert [int(r["folder"]) for r in order] == np.argsort(loss, kind="stable").tolist()


# -- averages and columns ----------------------------------------------------------------------------------------------
def test_seeds_are_averaged_as_numpy_does() -> None:
    values = {0.1: [0.5, 0.75, 0.25], 0.01: [2.0]}
    rows = [row(f"{rate}-{i}", i, rate, loss=x) for rate, xs in values.items() for i, x in enumerate(xs)]
    first, second = average_rows(rows, ["run.seed"])
    assert first["metrics"] == {"loss": pytest.approx(np.mean(values[0.1]))}
    assert first["deviations"] == {"loss": pytest.approx(np.std(values[0.1], ddof=1))}
    assert (first["members"], first["seconds"], first["epochs"], first["settings"]) == (3, 3.0, 2, {"rate": 0.1})
    assert (second["members"], second["deviations"]) == (1, {"loss": None})


def test_averages_leave_out_what_is_unknown_and_say_where_statuses_differ() -> None:
    rows = [row("a", 0, loss=1.0), {**row("b", 1, loss=None, other=3.0), "status": "failed", "seconds": None}]
    (mean,) = average_rows(rows, ["run.seed"])
    assert mean["metrics"] == {"loss": 1.0, "other": 3.0}
    assert (mean["status"], mean["seconds"]) == ("mixed", 1.0)
    with pytest.raises(
        SigmaConfigError, match=r"--average: 'run.sed': no run has this setting. Did you mean 'run.seed'"
    ):
        average_rows(rows, ["run.sed"])


def test_averages_are_printed_with_their_deviation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i, loss in enumerate((0.5, 0.75)):
        folder(tmp_path, f"r{i}", seed=i, loss=loss)
    assert main(["runs", str(tmp_path), "--average", "run.seed"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["RUN", "RUNS", "STATUS", "EPOCHS", "SECONDS", "validation.loss"]
    assert line.split() == ["r0", "2", "finished", "3", "3", "0.625", "±0.18"]


def test_columns_that_differ_come_first_and_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i in range(2):
        metrics = {"same": 1.0, "loss": i / 2}
        (folder(tmp_path, f"r{i}", rate=0.1 + i) / "summary.json").write_text(
            json.dumps({"status": "finished", "metrics": metrics})
        )
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[4:] == ["loss", "optimiser.learning_rate", "same"]
    assert main(["runs", str(tmp_path), "--columns", "*rate"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[4:] == ["optimiser.learning_rate"]
    assert main(["runs", str(tmp_path), "--columns", "los"]) == 2
    assert "--columns los: matches no result or setting that differs. There are: loss, same" in capsys.readouterr().err


# -- marks -------------------------------------------------------------------------------------------------------------
def test_marks_are_kept_in_one_file_and_nothing_else_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = three(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(["mark", str(runs[0]), str(runs[1]), "--tag", "baseline", "--tag", "b.2", "--star"]) == 0
    assert main(["mark", str(runs[0]), "--name", "The first", "--note", "two\nlines", "--untag", "b.2"]) == 0
    assert capsys.readouterr().err.endswith("name 'The first'; tags baseline; starred; note: two\nlines\n")
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in after.keys() - before.keys()} == {MARKS}
    assert {path: after[path] for path in before} == before
    assert names(capsys, str(tmp_path), "--where", "any tags.* equals 'b.2'") == ["b"]
    assert names(capsys, str(tmp_path), "--where", "starred equals 1 and title equals 'The first'") == ["a"]
    assert main(["runs", str(tmp_path), "--where", "starred equals 1"]) == 0
    head, line, _ = capsys.readouterr().out.splitlines()
    assert head.split()[:4] == ["RUN", "*", "NAME", "TAGS"]
    assert line.split()[:5] == ["a", "*", "The", "first", "baseline"]


def test_archived_runs_are_hidden_until_they_are_restored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = three(tmp_path)
    assert main(["mark", *map(str, runs), "--archive"]) == 0
    capsys.readouterr()
    assert main(["runs", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "All 3 runs are archived. Pass --archived to list them.\n")
    assert main(["mark", str(runs[1]), "--restore"]) == 0
    capsys.readouterr()
    assert names(capsys, str(tmp_path)) == ["b"]
    assert names(capsys, str(tmp_path), "--archived") == ["a", "b", "c"]
    assert json.loads((runs[1] / MARKS).read_text()) == {"format": 1}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--tag", "two words"], "at most 50 tags, each of at most 40 letters"),
        (["--tag", ""], "at most 50 tags"),
        (["--name", "x" * 101], "the name is a line of at most 100 characters"),
        (["--name", "a\nb"], "the name is a line of at most 100 characters"),
        (["--note", "x" * 10_001], "the note is a text of at most 10,000 characters"),
        (["--untag", "x"], "--untag x: it has no such tag. It has: none."),
    ],
)
def test_a_wrong_mark_is_refused_and_no_run_is_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    runs = three(tmp_path)
    assert main(["mark", *map(str, runs), *options]) == 2
    assert why in capsys.readouterr().err
    assert not [*tmp_path.rglob(MARKS)]


def test_only_run_folders_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mark", str(tmp_path), "--star"]) == 2
    assert "not a run folder: it has no config.toml. Pass one below runs/." in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "damage", ["[", "[1]", '{"tags": 7}', '{"tags": ["a b"]}', '{"starred": "yes"}', '{"title": 3}', '{"other": 1}']
)
def test_damaged_marks_hide_nothing_but_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    run = three(tmp_path)[0]
    (run / MARKS).write_text(damage)
    assert names(capsys, str(tmp_path)) == ["a", "b", "c"]
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "a    finished" in out
    assert str(run) in err
    assert "bug in Sigma" not in err


def test_marks_written_twice_are_the_same() -> None:
    assert Marks(tags=("b", "a", "b")) == Marks(tags=("a", "b"))
    assert Marks().to_plain() == {}
    assert Marks(tags=["x"], starred=True).to_plain() == {"tags": ["x"], "starred": True}


# -- the index ---------------------------------------------------------------------------------------------------------
def many(parent: Path, count: int = WORTH) -> None:
    for i in range(count):
        os.utime(folder(parent, f"r{i:05}", 1 / (i + 1), i, loss=1 / (i + 2)) / "config.toml", (i, i))


def test_a_large_folder_has_an_index_with_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many(tmp_path, WORTH - 1)
    list_runs([tmp_path])
    assert not (tmp_path / INDEX).exists()
    folder(tmp_path, "last")
    first = list_runs([tmp_path])
    assert (tmp_path / INDEX).exists()
    reads = []
    monkeypatch.setattr("sigma_run.overview.index.describe_run", lambda run, *_: reads.append(run) or {})
    assert list_runs([tmp_path]) == first
    assert reads == []


def test_what_has_changed_is_read_again(tmp_path: Path) -> None:
    many(tmp_path)
    list_runs([tmp_path])
    folder(tmp_path, "new", loss=7.0)
    changed = {"status": "failed", "metrics": {"validation.loss": 99.0}}
    (tmp_path / "r00003" / "summary.json").write_text(json.dumps(changed))
    (tmp_path / "r00004" / MARKS).write_text('{"format": 1, "starred": true}')
    (tmp_path / "r00005" / "config.toml").unlink()
    rows = {Path(row["folder"]).name: row for row in list_runs([tmp_path])}
    assert rows["new"]["metrics"] == {"validation.loss": 7.0}
    assert (rows["r00003"]["status"], rows["r00003"]["metrics"]) == ("failed", {"validation.loss": 99.0})
    assert rows["r00004"]["starred"] is True
    assert "r00005" not in rows


def test_a_moved_folder_keeps_its_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    many(tmp_path / "runs")
    list_runs([tmp_path / "runs"])
    (tmp_path / "runs").rename(tmp_path / "moved")
    monkeypatch.setattr("sigma_run.overview.index.describe_run", lambda *_: pytest.fail("is read again"))
    rows = list_runs([tmp_path / "moved"])
    assert {Path(row["folder"]).parent for row in rows} == {tmp_path / "moved"}


@pytest.mark.parametrize(
    "damage",
    ["", "[", "[1]", '{"format": 2}', '{"format": 1, "runs": [1]}', "link", "pipe", "wrong", "deep", "types"],
)
def test_a_damaged_or_hostile_index_is_made_again(tmp_path: Path, damage: str) -> None:
    many(tmp_path)
    rows, index = list_runs([tmp_path]), tmp_path / INDEX
    whole = json.loads(index.read_text())
    index.unlink()
    if damage == "link":
        (tmp_path / "elsewhere").write_text(json.dumps(whole))
        index.symlink_to(tmp_path / "elsewhere")
    elif damage == "pipe":
        os.mkfifo(index)
    elif damage == "wrong":
        index.write_text(json.dumps({**whole, "runs": {name: [1] for name in whole["runs"]}}))
    elif damage == "types":
        wrong = [{"metrics": {"a": "x"}}, {"settings": 3}, {"status": []}, {"tags": "x"}, {"advice": {}}, {"more": 1}]
        for name, change in zip([*whole["runs"]], wrong, strict=False):
            whole["runs"][name][1] |= change
        index.write_text(json.dumps(whole))
    else:
        index.write_text("[" * 100_000 if damage == "deep" else damage)
    assert list_runs([tmp_path]) == rows


def test_the_index_of_a_folder_that_cannot_be_written_to_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    many(tmp_path)
    (tmp_path / INDEX).symlink_to(tmp_path / "elsewhere")  # nothing is written through a link
    assert len(list_runs([tmp_path])) == WORTH
    assert not (tmp_path / "elsewhere").exists()
    assert capsys.readouterr() == ("", "")


def test_damaged_runs_are_reported_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many(tmp_path)
    (tmp_path / "r00001" / "config.toml").write_text("[[")
    for _ in range(2):
        assert len(list_runs([tmp_path])) == WORTH
        assert "r00001/config.toml" in capsys.readouterr().err


def test_what_is_no_entry_is_told_from_one(tmp_path: Path) -> None:
    (entry,) = list_runs([folder(tmp_path, "a")])
    assert is_entry(entry)
    for wrong in (None, [], {}, {**entry, "epochs": "1"}, {**entry, "baselines": {"a": 1}}, {**entry, "title": 1}):
        assert not is_entry(wrong)


def test_values_have_the_addresses_of_results_settings_and_marks(tmp_path: Path) -> None:
    run = folder(tmp_path, "a")
    assert main(["mark", str(run), "--tag", "x", "--star"]) == 0
    (entry,) = list_runs([run])
    values = values_of(entry)
    assert (values["name"], values["tags.0"], values["starred"], values["archived"]) == ("a", "x", 1, 0)
    assert (values["validation.loss"], values["trainer.optimiser.learning_rate"], values["epochs"]) == (0.5, 0.1, 3)


@pytest.mark.long
def test_ten_thousand_runs_are_listed_quickly(tmp_path: Path) -> None:
    many(tmp_path, 2_000)  # a fifth of them, to keep the test short: the time is proportional
    list_runs([tmp_path])
    began = time.process_time()
    rows = list_runs([tmp_path])
    seconds = time.process_time() - began
    assert len(rows) == 2_000
    assert seconds < 2.0  # measured: 0.2
    assert len(select_rows(rows, "validation.loss below 0.01 and status equals 'finished'")) == 1_901
