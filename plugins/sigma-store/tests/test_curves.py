"""Tests of curves: what is read from a run folder, from today's file and from that of older runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.curves import Branch, BranchedCurves, Window
from sigma_store import FolderStore, older
from sigma_store.curves import read_curves
from sigma_store.curves_file import CurvesFile

LOSS = "training.loss"


def row(iteration: int, trainer: str = "a", **values: float | None) -> dict[str, Any]:
    found = {name.replace("_", "."): {"last": x, "low": x, "high": x} for name, x in values.items()}
    return {"trainer": trainer, "iteration": iteration, "epoch": iteration // 10, "seconds": 0.5 * iteration} | {
        "values": found
    }


Write = Callable[..., Path]


@pytest.fixture(params=["older", "now", "continued"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Write:
    """Write rows to a run folder: to the file of older runs, to today's, or the first half to that of older runs."""

    def write(*given: Mapping[str, Any]) -> Path:
        rows = [{"branch": 0, "session": 0, "start": 0, **row} for row in given]
        cut = {"older": len(rows), "now": 0, "continued": len(rows) // 2}[request.param]
        if cut:
            write_older(tmp_path, *rows[:cut])
        if request.param != "older":
            file = CurvesFile(tmp_path / "curves.bin")
            for row in rows[cut:]:
                file.append(row)
        return tmp_path

    return write


def write_older(run: Path, *rows: Mapping[str, Any]) -> Path:
    lines = ({"format": 1}, *rows)
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return run


def read(run: Path) -> dict[str, BranchedCurves]:
    return read_curves(run, pytest.fail)


def read_quietly(run: Path) -> dict[str, dict[str, Any]]:
    return {trainer: found.curves() for trainer, found in read(run).items()}


def test_curves_are_read_by_trainer_and_name_with_the_moment_of_each_value(written: Write) -> None:
    rows = [row(5, training_loss=2.0), row(7, "b", training_loss=9.0), row(10, training_loss=1.0, validation_loss=3.0)]
    rows[2]["values"][LOSS] |= {"low": 0.5, "high": 4.0}
    found = read_quietly(written(*rows))
    curve = found["a"][LOSS]
    assert curve.iterations.tolist() == [5, 10]
    assert curve.epochs.tolist() == [0, 1]
    assert curve.seconds.tolist() == [2.5, 5.0]
    assert (curve.values.tolist(), curve.low.tolist(), curve.high.tolist()) == ([2.0, 1.0], [2.0, 0.5], [2.0, 4.0])
    assert found["a"]["validation.loss"].iterations.tolist() == [10]
    assert found["b"][LOSS].values.tolist() == [9.0]


def test_a_value_that_is_not_finite_is_nan(written: Write) -> None:
    path = written(row(1, training_loss=1.0), row(2, training_loss=None))
    assert np.isnan(read_quietly(path)["a"][LOSS].values).tolist() == [False, True]


def test_rows_of_older_versions_after_a_rewind_replace_those_of_the_abandoned_branch(tmp_path: Path) -> None:
    before = [row(i, training_loss=float(i), validation_loss=-1.0) for i in (10, 20, 30)]
    after = [row(i, training_loss=100.0 + i) for i in (15, 30, 40)]
    found = read_quietly(write_older(tmp_path, *before, *after))["a"]
    assert found[LOSS].iterations.tolist() == [10, 15, 30, 40]
    assert found[LOSS].values.tolist() == [10.0, 115.0, 130.0, 140.0]
    assert found["validation.loss"].iterations.tolist() == [10]  # the others never happened on this branch


def placed(iteration: int, branch: int = 0, session: int = 0, start: int = 0, **values: float | None) -> dict[str, Any]:
    return row(iteration, **values) | {"branch": branch, "session": session, "start": start}


def parts(found: BranchedCurves, name: str = LOSS) -> list[tuple[int, list[int]]]:
    return [(one.branch, one.curve.iterations.tolist()) for one in found.stretches(name)]


def test_branches_are_told_apart_and_begin_where_a_rewind_went_back_to(written: Write) -> None:
    rows = [placed(at, training_loss=float(at)) for at in (10, 20, 30)]
    rows += [placed(at, 1, 0, 12, training_loss=100.0 + at) for at in (25, 40)]
    rows += [placed(at, 3, 0, 30, training_loss=200.0 + at) for at in (35, 50)]  # on branch 2, nothing was measured
    found = read(written(*rows))["a"]
    assert [*found.branches] == [Branch(0), Branch(1, 0, 12), Branch(3, 1, 30)]
    assert parts(found) == [(0, [10, 20, 30]), (1, [25, 40]), (3, [35, 50])]
    assert found.curves()[LOSS].iterations.tolist() == [10, 25, 35, 50]  # not 20, which a row of the file before had
    left = [(one.branch, one.curve.iterations.tolist()) for one in found.abandoned_stretches()[LOSS]]
    assert left == [(0, [10, 20, 30]), (1, [25, 40])]  # each from the last value that counts on
    assert [one.curve.iterations.tolist() for one in found.abandoned_stretches(joined=False)[LOSS]] == [[20, 30], [40]]
    table = found.table()
    assert table["branch"].tolist() == [0, 0, 0, 1, 1, 3, 3]
    assert table["iteration"].tolist() == [10, 20, 30, 25, 40, 35, 50]


def test_a_session_replaces_what_a_kill_ended_on_its_branch(written: Write) -> None:
    rows = [placed(at, training_loss=1.0) for at in (10, 20)]
    rows += [placed(at, 1, 0, 10, training_loss=2.0) for at in (15, 20, 30)]
    rows += [placed(at, 1, 1, 15, training_loss=3.0) for at in (18, 40)]
    found = read(written(*rows))["a"]
    assert parts(found) == [(0, [10, 20]), (1, [15, 18, 40])]
    assert found.curves()[LOSS].values.tolist() == [1.0, 2.0, 3.0, 3.0]
    # without a checkpoint of the newest branch, everything is replayed: the branches after it are measured again
    rows += [placed(at, 0, 2, 0, training_loss=4.0) for at in (5, 20)]
    rows += [placed(at, 1, 2, 10, training_loss=5.0) for at in (15, 20)]
    found = read(written(*rows))["a"]
    assert parts(found) == [(0, [5, 20]), (1, [15, 20])]


def test_a_reset_begins_another_branch_with_the_same_number(written: Write) -> None:
    rows = [placed(at, training_loss=float(at)) for at in (10, 20, 5, 15)]
    found = read(written(*rows))["a"]
    assert parts(found) == [(0, [10, 20]), (0, [5, 15])]
    assert found.curves()[LOSS].iterations.tolist() == [5, 15]


def test_a_new_session_continues_the_rows_of_an_older_version(tmp_path: Path) -> None:
    rows = [row(at, training_loss=1.0) for at in (10, 20, 15, 30)]
    file = CurvesFile(write_older(tmp_path, *rows) / "curves.bin")
    for at in (35, 40):
        file.append(placed(at, 0, 1, 30, training_loss=2.0))
    assert parts(read(tmp_path)["a"]) == [(0, [10, 15, 30, 35, 40])]


def test_two_rows_of_one_iteration_keep_the_values_of_both(written: Write) -> None:
    path = written(row(8, training_loss=1.0), row(8, validation_loss=2.0), row(9, training_loss=0.5))
    found = read_quietly(path)["a"]
    assert found[LOSS].iterations.tolist() == [8, 9]
    assert found["validation.loss"].iterations.tolist() == [8]


def test_a_file_of_an_older_run_is_parsed_once_for_each_of_its_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_older(tmp_path, *(row(at, training_loss=1.0) for at in (10, 20)))
    run, parsed, parse = FolderStore().open(tmp_path, print, lambda run: None), list[Path](), older.rows
    monkeypatch.setattr(older, "rows", lambda path, log: parsed.append(path) or parse(path, log))
    for _ in range(3):
        cursor, (stretch,) = run.points("a", LOSS, Window(most=1))
        assert (cursor, stretch.curve.iterations.tolist()) == (2, [20])
        assert run.curves(pytest.fail)["a"].curves()[LOSS].iterations.tolist() == [10, 20]
    assert len(parsed) == 1
    file = CurvesFile(tmp_path / "curves.bin")
    for at in (30, 40):
        file.append(placed(at, 0, 1, 20, training_loss=2.0))
        after = run.points("a", LOSS, Window())[1]
        assert [one.curve.iterations[-1] for one in after] == [at]
    assert len(parsed) == 3
    write_older(tmp_path, *(row(at, training_loss=1.0) for at in (10, 15, 20)))
    assert run.points("a", LOSS, Window())[1][0].curve.iterations.tolist() == [10, 15, 20, 30, 40]


def test_damage_to_a_file_of_an_older_run_is_logged_each_time_that_it_is_read(tmp_path: Path) -> None:
    said, path = list[str](), write_older(tmp_path, row(10, training_loss=1.0)) / "metrics.jsonl"
    path.write_text(f"{path.read_text()}damaged\n")
    run = FolderStore().open(tmp_path, print, lambda run: None)
    run.points("a", LOSS, Window())
    for _ in range(2):
        run.curves(said.append)
    assert said == 2 * [f"{path}: 1 damaged line is left out."]
