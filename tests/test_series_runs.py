"""Runs on series: from `sigma init` with a column of times to predictions with group and time."""

from __future__ import annotations

import csv
import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from sigma_data.tables import open_table
from sigma_run import load
from sigma_run.launcher.group import main

pytestmark = pytest.mark.rooms


@pytest.fixture
def sunspots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    packed = Path(str(files("sigma_data") / "files" / "sunspots.csv.gz"))
    pyarrow.csv.write_csv(open_table(packed).read(), tmp_path / "sunspots.csv")
    return tmp_path / "sunspots.csv"


@pytest.mark.long
def test_a_drafted_run_beats_the_last_value_and_the_season(sunspots: Path, capsys: pytest.CaptureFixture[str]):
    wishes = ["--time", "month", "--target", "sunspots", "--ahead", "12"]
    assert main(["init", str(sunspots), *wishes, "--output", "solar.toml", "--run"]) == 0
    text = capsys.readouterr()
    last, season = map(float, re.findall(r"last value ([\d.]+), value of \d+ steps before ([\d.]+)", text.err)[0])
    (folder,) = Path("runs").iterdir()
    summary = json.loads((folder / "summary.json").read_text())
    error = next(iter(re.findall(r'"validation.mean_absolute_error": ([\d.]+)', json.dumps(summary))))
    assert float(error) < 0.8 * min(last, season)
    assert main(["predict", str(folder), str(sunspots), "--output", "out.csv"]) == 0
    head, *rows = csv.reader(Path("out.csv").read_text().splitlines())
    assert head == ["input", "row", "month", *(f"sunspots +{step}" for step in range(1, 13))]
    assert rows[-1][2].startswith("2009-06-01")
    values = np.array([[float(cell) for cell in row[3:]] for row in rows])
    assert -20 < values.min() < 40
    assert 80 < values.max() < 300
    capsys.readouterr()
    assert main(["predict", str(folder), str(sunspots), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["predictions"]
    assert document[-1]["identity"] == {"month": rows[-1][2]}
    assert np.allclose([row["values"] for row in document], values)


def test_settings_that_an_inspector_does_not_take_are_refused(sunspots: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["init", "xor", "--ahead", "3"]) == 2
    assert "--ahead: 'xor' is a recipe." in capsys.readouterr().err
    assert main(["init", str(sunspots), "--target", "sunspots", "--ahead", "3"]) == 2
    assert "which column holds the times? Name it: --time COLUMN." in capsys.readouterr().err


def test_folds_of_a_series_are_runs_that_train_on_ever_more_of_the_past(
    sunspots: Path, capsys: pytest.CaptureFixture[str]
):
    wishes = ["--time", "month", "--target", "sunspots", "--ahead", "3", "--past", "24"]
    assert main(["init", str(sunspots), *wishes, "--output", "solar.toml"]) == 0
    capsys.readouterr()
    assert main(["run", "solar.toml", "--folds", "3", "--epochs", "1", "--json"]) == 0
    study = json.loads(capsys.readouterr().out)
    assert study["varies"] == ["data.fold"]
    assert study["metrics"]["validation.mean_absolute_error"]["count"] == 3
    runs = [Path(study["folder"], str(number)) for number in range(3)]
    lengths = [len(load(run).trainer.data["training"]) for run in runs]
    times = round(3126 * 0.85)
    size = times // 4
    assert lengths == [times - (3 - number) * size - 26 for number in range(3)]
    assert main(["predict", str(runs[2]), str(sunspots), "--output", "out.csv"]) == 0
