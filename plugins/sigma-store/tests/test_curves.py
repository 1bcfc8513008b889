"""Tests of curves: what is read from ``metrics.jsonl``, whatever the run and the disk did to it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel.curves import Branch, BranchedCurves
from sigma_kernel.errors import SigmaConfigError
from sigma_store.curves import read, read_curves

LOSS = "training.loss"


def row(iteration: int, trainer: str = "a", **values: float | None) -> dict[str, Any]:
    found = {name.replace("_", "."): {"last": x, "low": x, "high": x} for name, x in values.items()}
    return {"trainer": trainer, "iteration": iteration, "epoch": iteration // 10, "seconds": 0.5 * iteration} | {
        "values": found
    }


def written(path: Path, *rows: Mapping[str, Any] | str) -> Path:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in ({"format": 1}, *rows)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read_quietly(path: Path) -> dict[str, dict[str, Any]]:
    said: list[str] = []
    found = read(path, said.append)
    assert said == []
    return found


def test_curves_are_read_by_trainer_and_name_with_the_moment_of_each_value(tmp_path: Path) -> None:
    rows = [row(5, training_loss=2.0), row(7, "b", training_loss=9.0), row(10, training_loss=1.0, validation_loss=3.0)]
    rows[2]["values"][LOSS] |= {"low": 0.5, "high": 4.0}
    found = read_quietly(written(tmp_path / "m", *rows))
    curve = found["a"][LOSS]
    assert curve.iterations.tolist() == [5, 10]
    assert curve.epochs.tolist() == [0, 1]
    assert curve.seconds.tolist() == [2.5, 5.0]
    assert (curve.values.tolist(), curve.low.tolist(), curve.high.tolist()) == ([2.0, 1.0], [2.0, 0.5], [2.0, 4.0])
    assert found["a"]["validation.loss"].iterations.tolist() == [10]
    assert found["b"][LOSS].values.tolist() == [9.0]


def test_a_value_that_is_not_finite_is_nan(tmp_path: Path) -> None:
    path = written(tmp_path / "m", row(1, training_loss=1.0), row(2, training_loss=None))
    assert np.isnan(read_quietly(path)["a"][LOSS].values).tolist() == [False, True]


def test_rows_after_a_rewind_replace_those_of_the_abandoned_branch(tmp_path: Path) -> None:
    before = [row(i, training_loss=float(i), validation_loss=-1.0) for i in (10, 20, 30)]
    after = [row(i, training_loss=100.0 + i) for i in (15, 30, 40)]
    found = read_quietly(written(tmp_path / "m", *before, *after))["a"]
    assert found[LOSS].iterations.tolist() == [10, 15, 30, 40]
    assert found[LOSS].values.tolist() == [10.0, 115.0, 130.0, 140.0]
    assert found["validation.loss"].iterations.tolist() == [10]  # the others never happened on this branch


def placed(iteration: int, branch: int = 0, session: int = 0, start: int = 0, **values: float | None) -> dict[str, Any]:
    return row(iteration, **values) | {"branch": branch, "session": session, "start": start}


def parts(found: BranchedCurves, name: str = LOSS) -> list[tuple[int, list[int]]]:
    return [(one.branch, one.curve.iterations.tolist()) for one in found.stretches(name)]


def test_branches_are_told_apart_and_begin_where_a_rewind_went_back_to(tmp_path: Path) -> None:
    rows = [placed(at, training_loss=float(at)) for at in (10, 20, 30)]
    rows += [placed(at, 1, 0, 12, training_loss=100.0 + at) for at in (25, 40)]
    rows += [placed(at, 3, 0, 30, training_loss=200.0 + at) for at in (35, 50)]  # on branch 2, nothing was measured
    found = read_curves(written(tmp_path / "m", *rows), print)["a"]
    assert [*found.branches] == [Branch(0), Branch(1, 0, 12), Branch(3, 1, 30)]
    assert parts(found) == [(0, [10, 20, 30]), (1, [25, 40]), (3, [35, 50])]
    assert found.curves()[LOSS].iterations.tolist() == [10, 25, 35, 50]  # not 20, which a row of the file before had
    left = [(one.branch, one.curve.iterations.tolist()) for one in found.abandoned_stretches()[LOSS]]
    assert left == [(0, [10, 20, 30]), (1, [25, 40])]  # each from the last value that counts on
    assert [one.curve.iterations.tolist() for one in found.abandoned_stretches(joined=False)[LOSS]] == [[20, 30], [40]]
    table = found.table()
    assert table["branch"].tolist() == [0, 0, 0, 1, 1, 3, 3]
    assert table["iteration"].tolist() == [10, 20, 30, 25, 40, 35, 50]


def test_a_session_replaces_what_a_kill_ended_on_its_branch(tmp_path: Path) -> None:
    rows = [placed(at, training_loss=1.0) for at in (10, 20)]
    rows += [placed(at, 1, 0, 10, training_loss=2.0) for at in (15, 20, 30)]
    rows += [placed(at, 1, 1, 15, training_loss=3.0) for at in (18, 40)]
    found = read_curves(written(tmp_path / "m", *rows), print)["a"]
    assert parts(found) == [(0, [10, 20]), (1, [15, 18, 40])]
    assert found.curves()[LOSS].values.tolist() == [1.0, 2.0, 3.0, 3.0]
    # without a checkpoint of the newest branch, everything is replayed: the branches after it are measured again
    rows += [placed(at, 0, 2, 0, training_loss=4.0) for at in (5, 20)]
    rows += [placed(at, 1, 2, 10, training_loss=5.0) for at in (15, 20)]
    found = read_curves(written(tmp_path / "m", *rows), print)["a"]
    assert parts(found) == [(0, [5, 20]), (1, [15, 20])]


def test_a_reset_begins_another_branch_with_the_same_number(tmp_path: Path) -> None:
    rows = [placed(at, training_loss=float(at)) for at in (10, 20, 5, 15)]
    found = read_curves(written(tmp_path / "m", *rows), print)["a"]
    assert parts(found) == [(0, [10, 20]), (0, [5, 15])]
    assert found.curves()[LOSS].iterations.tolist() == [5, 15]


def test_a_new_session_continues_the_rows_of_an_older_version(tmp_path: Path) -> None:
    rows = [row(at, training_loss=1.0) for at in (10, 20, 15, 30)]
    rows += [placed(at, 0, 1, 30, training_loss=2.0) for at in (35, 40)]
    assert parts(read_curves(written(tmp_path / "m", *rows), print)["a"]) == [(0, [10, 15, 30, 35, 40])]


def test_two_rows_of_one_iteration_keep_the_values_of_both(tmp_path: Path) -> None:
    path = written(tmp_path / "m", row(8, training_loss=1.0), row(8, validation_loss=2.0), row(9, training_loss=0.5))
    found = read_quietly(path)["a"]
    assert found[LOSS].iterations.tolist() == [8, 9]
    assert found["validation.loss"].iterations.tolist() == [8]


def test_an_incomplete_last_line_is_that_of_a_run_in_progress(tmp_path: Path) -> None:
    path = written(tmp_path / "m", row(1, training_loss=1.0))
    path.write_text(path.read_text() + '{"trainer": "a", "iter')
    assert read_quietly(path)["a"][LOSS].iterations.tolist() == [1]


@pytest.mark.parametrize(
    "line",
    [
        "", "[]", "7", "null", '"trainer"', "{}", "{", "[" * 10**5, '{"trainer": 1}',
        json.dumps(row(1, training_loss=1.0) | {"iteration": "1"}),
        json.dumps(row(1, training_loss=1.0) | {"trainer": 1}),
        json.dumps(row(1) | {"values": {LOSS: 1.0}}),
        json.dumps(row(1) | {"values": {LOSS: {"last": "x", "low": 1, "high": 1}}}),
        json.dumps(row(1) | {"values": [LOSS]}),
        json.dumps(row(1, training_loss=1.0) | {"branch": "0"}),
        json.dumps(row(1, training_loss=1.0) | {"start": None}),
        json.dumps(row(1, training_loss=1.0)).replace('"iteration": 1', '"iteration": 1e999'),
        json.dumps(row(1, training_loss=1.0) | {"epoch": 10**400}),
        json.dumps(row(1) | {"values": {LOSS: {"last": 10**400, "low": 1, "high": 1}}}),
        "\ufffd\0",
    ],
)  # fmt: skip
def test_a_damaged_line_is_left_out_and_logged(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "m", row(1, training_loss=1.0), line, row(2, training_loss=2.0))
    said: list[str] = []
    assert read(path, said.append)["a"][LOSS].iterations.tolist() == [1, 2]
    assert said == [f"{path}: 1 damaged line is left out."]


def test_a_file_without_rows_has_no_curves(tmp_path: Path) -> None:
    assert read_quietly(written(tmp_path / "m")) == {}


def test_metrics_that_are_missing_or_a_link_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(written(tmp_path / "m"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SigmaConfigError, match=r"none: no metrics there\. Pass the folder of a run\."):
        read(tmp_path / "none", print)
    for path in (tmp_path / "link", tmp_path, tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(
            SigmaConfigError, match=r"no metrics there: not a regular file\. Pass the folder of a run\."
        ):
            read(path, print)


def test_metrics_are_read_up_to_a_number_of_bytes_and_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("sigma_store.curves.NAMES", 3)
    path = written(tmp_path / "m", *(row(1 + i, **{f"name_{i}": 1.0}) for i in range(4)))
    assert len(read(path, said.append)["a"]) == 2
    assert said == [f"{path}: 2 damaged lines are left out."]
    monkeypatch.setattr("sigma_store.curves.LARGEST", 10)
    with pytest.raises(SigmaConfigError, match=r"no metrics there: [0-9,]+ bytes, and 10 are read at most\. Pass"):
        read(path, print)
