"""Drafts of configurations for series: season, groups, gaps, baselines, and what is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sigma_data import DataInspector, Series
from sigma_data.series.drafting import score_baselines
from sigma_data.series.seasons import autocorrelate, find_peak
from sigma_data.tables import RecordBatches
from sigma_kernel import SigmaConfigError, SigmaDataError
from sigma_testing import InspectorSuite

WISHES = {"time": "date", "target": "load", "ahead": "6"}


def write_load(path: Path, hours: int = 600, groups: tuple[str, ...] = ("",)) -> Path:
    rng = np.random.default_rng(0)
    wave = 10 * np.sin(2 * np.pi * np.arange(hours) / 24)
    dates = pd.date_range("2024-01-01", periods=hours, freq="h")
    tables = [pd.DataFrame({"date": dates, "shop": g, "load": wave + rng.normal(0, 1, hours)}) for g in groups]
    table = pd.concat(tables)
    (table if len(groups) > 1 else table.drop(columns="shop")).to_csv(path, index=False)
    return path


def draft(path: Path, **wishes: str) -> Any:
    return DataInspector().draft(path, path.as_posix(), WISHES | wishes)


def test_the_past_is_the_season(tmp_path: Path):
    made = draft(write_load(tmp_path / "load.csv"))
    data = tomllib.loads(made.text)["data"]
    assert (data["past"], data["ahead"], data["time"]) == (24, 6, "date")
    assert made.notes[0].startswith("the step is 1 hour; a season of 24 steps: their autocorrelation is 0.9")
    assert tomllib.loads(draft(tmp_path / "load.csv", past="10").text)["data"]["past"] == 10
    settings = {name: data[name] for name in ("path", "target", "time", "past", "ahead", "split")}
    assert len(Series(**settings)["training"]) == 420 - 29


def test_baselines_are_those_of_the_validation_times(tmp_path: Path):
    path = write_load(tmp_path / "load.csv")
    values = pd.read_csv(path)["load"].to_numpy()
    last, season = [], []
    for first in range(420, 510 - 5):
        last.append(np.abs(values[first : first + 6] - values[first - 1]))
        season.append(np.abs(values[first : first + 6] - values[first - 24 : first - 18]))
    note = next(note for note in draft(path).notes if "without a network" in note)
    assert f"last value {np.mean(last):.4g}, value of 24 steps before {np.mean(season):.4g};" in note


def test_groups_gaps_and_unsorted_rows_are_said(tmp_path: Path):
    path = write_load(tmp_path / "load.csv", groups=("a", "b", "c"))
    table = pd.read_csv(path).drop(index=[100]).sample(frac=1, random_state=0)
    table.to_csv(path, index=False)
    made = draft(path)
    assert tomllib.loads(made.text)["data"]["group"] == "shop"
    assert any(note.startswith("column 'shop' names 3 series") for note in made.notes)
    assert any(note.startswith("1 gaps") for note in made.notes)
    assert any(note.startswith("rows are not in the order of time") for note in made.notes)


@pytest.mark.parametrize("values", [np.ones(50), np.arange(50.0), np.zeros(2)])
def test_series_without_a_season_have_none(values: np.ndarray):
    assert find_peak(autocorrelate(values, 20)) == (0, 0.0)


def test_autocorrelations_are_those_of_numpy():
    values = np.random.default_rng(0).normal(size=60)
    rows = np.arange(60)
    apart = values - np.polyval(np.polyfit(rows, values, 1), rows)
    wanted = np.correlate(apart, apart, "full")[59:]
    assert np.allclose(autocorrelate(values, 20), wanted[:21] / wanted[0])


def test_wishes_that_do_not_fit_are_refused(tmp_path: Path):
    path = write_load(tmp_path / "load.csv", 60)
    with pytest.raises(SigmaConfigError, match="which column holds the times"):
        DataInspector().draft(path, "x", {"target": "load", "ahead": "2"})
    with pytest.raises(SigmaConfigError, match="which column is to be predicted"):
        DataInspector().draft(path, "x", {"time": "date"})
    with pytest.raises(SigmaDataError, match="there is no column 'dates'"):
        draft(path, time="dates")
    with pytest.raises(
        SigmaDataError, match="has no 90 rows that follow each other up to the times of the training split"
    ):
        draft(path, past="84")


@pytest.mark.parametrize("wish", ["ahead", "past"])
@pytest.mark.parametrize("value", ["abc", "0", "-1", "-3", "2.5", "", "9" * 5000])
def test_wishes_that_are_no_number_of_rows_are_refused(tmp_path: Path, wish: str, value: str):
    path = write_load(tmp_path / "load.csv", 60)
    with pytest.raises(SigmaConfigError, match=rf"^{wish}: .* is not a number of rows\. Give a whole number from 1 on"):
        draft(path, **{wish: value})


def test_a_table_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_load(tmp_path / "load.csv")
    starts: list[Any] = []
    iterate = RecordBatches._iterate
    monkeypatch.setattr(
        RecordBatches, "_iterate", lambda self, columns, *more: starts.append(columns) or iterate(self, columns, *more)
    )
    draft(path)
    assert starts == [None]


class TestSeriesInspector(InspectorSuite):
    wishes = WISHES

    def make(self) -> DataInspector:
        return DataInspector()

    def place(self, folder: Path) -> Path:
        return write_load(folder / "load.csv", 200)


def test_a_season_shorter_than_the_steps_to_predict_is_repeated():
    errors = score_baselines(np.arange(30.0), np.arange(10), 4, 7, 3)
    assert errors["value of 3 steps before"] == pytest.approx((3 * 3 + 3 * 6 + 9) / 7)
    assert errors["last value"] == pytest.approx(4)
