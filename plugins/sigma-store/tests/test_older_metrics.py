"""Damaged and replaced files of metrics of older runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sigma_kernel.curves import Curve, join_rows
from sigma_kernel.errors import SigmaConfigError
from sigma_store.older import rows

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


def read(path: Path, log: Any) -> dict[str, dict[str, Curve]]:
    return {trainer: found.curves() for trainer, found in join_rows(rows(path, log)).items()}


def test_an_incomplete_last_line_is_that_of_a_run_in_progress(tmp_path: Path) -> None:
    path = written(tmp_path / "m", row(1, training_loss=1.0))
    path.write_text(path.read_text() + '{"trainer": "a", "iter')
    assert read(path, pytest.fail)["a"][LOSS].iterations.tolist() == [1]


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
    assert read(written(tmp_path / "m"), pytest.fail) == {}


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
    monkeypatch.setattr("sigma_store.older.NAMES", 3)
    path = written(tmp_path / "m", *(row(1 + i, **{f"name_{i}": 1.0}) for i in range(4)))
    assert len(read(path, said.append)["a"]) == 2
    assert said == [f"{path}: 2 damaged lines are left out."]
    monkeypatch.setattr("sigma_store.older.LARGEST", 10)
    with pytest.raises(SigmaConfigError, match=r"no metrics there: [0-9,]+ bytes, and 10 are read at most\. Pass"):
        read(path, print)
