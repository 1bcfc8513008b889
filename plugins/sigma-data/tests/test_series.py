"""The data set ``series``: windows against a closed form, gaps, groups, time zones, splits, prediction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from sigma_data import DateEncoder, NumberEncoder, Series, Sunspots
from sigma_data.series.times import Spacing, infer_step
from sigma_data.series.windows import SeriesWindows, find_starts, number_runs
from sigma_data.tables import open_alike
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_testing import DatasetSuite

PLAIN = {"load": NumberEncoder(scale="none"), "date": "exclude"}
ALL = {"training": 1.0}
HALVES = {"training": 0.5, "validation": 0.25, "test": 0.25}


def write(path: Path, columns: Mapping[str, Any]) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def days(count: int, start: str = "2024-01-01", step: str = "D") -> list[str]:
    return [str(day) for day in pd.date_range(start, periods=count, freq=step)]


def windows_of(dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    blocks = [dataset.block(number) for number in range(dataset.blocks)]
    return tuple(np.concatenate([block[name] for block in blocks]) for name in ("inputs", "targets"))  # type: ignore[return-value]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two series of 30 and 20 days, their rows mixed."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"date": days(30) + days(20), "shop": ["a"] * 30 + ["b"] * 20, "load": np.arange(50.0)})
    return write(tmp_path / "two.csv", table.iloc[rng.permutation(50)])


def test_windows_are_those_of_numpy_for_each_group(two: Path):
    series = Series(two, "load", "date", 4, 3, group="shop", columns=PLAIN, split=ALL)
    inputs, targets = windows_of(series["training"])
    first = {float(values[0, 0]): (values[:, 0], goal) for values, goal in zip(inputs, targets, strict=True)}
    wanted = [*sliding_window_view(np.arange(30.0), 7), *sliding_window_view(np.arange(30.0, 50.0), 7)]
    assert len(inputs) == len(first) == len(wanted) == 24 + 14
    for window in wanted:
        past, goal = first[window[0]]
        assert np.array_equal(np.concatenate([past, goal]), window)


def test_windows_of_neighbouring_rows_are_views(tmp_path: Path):
    path = write(tmp_path / "one.csv", {"date": days(40), "load": np.arange(40.0)})
    block = Series(path, "load", "date", 8, 2, columns=PLAIN, split=ALL)["training"].block(0)
    assert np.shares_memory(block["inputs"][0], block["inputs"][1])
    assert np.shares_memory(block["targets"][0], block["targets"][1])
    assert not block["inputs"].flags.writeable


def test_steps_are_inferred_and_no_window_crosses_a_gap(tmp_path: Path):
    there = np.array([i for i in range(40) if i not in (15, 16, 30)])
    path = write(tmp_path / "gaps.csv", {"date": np.array(days(40, step="h"))[there], "load": there.astype(float)})
    series = Series(path, "load", "date", 3, 2, columns=PLAIN, split=ALL)
    inputs, targets = windows_of(series["training"])
    whole = np.concatenate([inputs[:, :, 0], targets], axis=1)
    assert (np.diff(whole, axis=1) == 1).all()
    assert len(whole) == (15 - 4) + (13 - 4) + (9 - 4)
    assert series.learned["series"]["step"] == ["microsecond", 3_600_000_000, False]
    rows = Series(path, "load", "date", 3, 2, columns=PLAIN, split=ALL, step="row")
    assert len(rows["training"]) == 37 - 4


def test_held_gaps_repeat_the_row_before_and_are_not_predicted(tmp_path: Path):
    values = [0.0, 1.0, 2.0, None, 4.0, 5.0, 8.0, 9.0, 10.0]  # one target missing, two rows missing
    dates = [day for i, day in enumerate(days(11)) if i not in (6, 7)]
    path = write(tmp_path / "held.csv", {"date": dates, "load": values})
    series = Series(path, "load", "date", 3, 1, columns=PLAIN, split=ALL, gaps="hold")
    inputs, targets = windows_of(series["training"])
    assert targets[:, 0].tolist() == [4, 5, 8, 9, 10]
    assert inputs[:, :, 0].tolist() == [[1, 2, 2], [2, 2, 4], [5, 5, 5], [5, 5, 8], [5, 8, 9]]
    with pytest.raises(SigmaDataError, match="has no window"):
        len(Series(path, "load", "date", 3, 1, columns=PLAIN, split=ALL)["training"])


def test_gaps_are_not_held_at_the_end_of_a_group(tmp_path: Path):
    columns = {
        "date": days(6) * 2,
        "shop": ["a"] * 6 + ["b"] * 6,
        "load": [0, 1, 2, 3, None, None, None, 7, 8, 9, 10, 11],
    }
    path = write(tmp_path / "ends.csv", columns)
    series = Series(path, "load", "date", 2, 1, group="shop", columns=PLAIN, split=ALL, gaps="hold")
    samples = series.samples(path, (2, 1), learned=series.learned)
    assert samples[:, :, 0].tolist() == [[0, 1], [1, 2], [2, 3], [7, 8], [8, 9], [9, 10], [10, 11]]


def test_a_step_of_a_month_has_any_length(tmp_path: Path):
    path = write(tmp_path / "months.csv", {"date": days(30, step="MS"), "load": np.arange(30.0)})
    series = Series(path, "load", "date", 3, 2, columns={"load": PLAIN["load"]}, split=ALL)
    inputs, targets = windows_of(series["training"])
    assert len(inputs) == 26
    assert series.learned["series"]["step"][:2] == ["month", 1]
    months = (targets[:, -1] - 2 + 2) % 12  # of the last past row, two steps later
    assert np.allclose(inputs[:, -1, 1], np.sin(2 * np.pi * months / 12))
    assert np.allclose(inputs[:, -1, 2], np.cos(2 * np.pi * months / 12))


@pytest.mark.parametrize(("step", "months"), [("ME", 1), ("QE", 3)])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_ends_of_months_are_months_apart(tmp_path: Path, step: str, months: int, zone: str | None):
    times = pd.date_range("2023-01-31", periods=30, freq=step, tz=zone)
    there = np.delete(np.arange(30), [13, 14])
    pd.DataFrame({"date": times[there], "load": there * 1.0}).to_parquet(tmp_path / "ends.parquet")
    columns = {"load": PLAIN["load"]}
    series = Series(tmp_path / "ends.parquet", "load", "date", 3, 1, columns=columns, split=ALL, gaps="hold")
    inputs, targets = windows_of(series["training"])
    assert len(inputs) == 27 - 2
    assert series.learned["series"]["step"][:2] == ["month end", months]
    month = times[targets[:, 0].astype(int)].month - 1
    assert np.allclose(inputs[:, -1, 1], np.sin(2 * np.pi * month / 12))
    held = series.identify(tmp_path / "ends.parquet", series.learned)["date"]
    assert held == [str(time) for time in times[2:]]


def test_months_after_a_day_that_a_month_lacks_come_to_its_last_day():
    days_31 = pa.array(pd.to_datetime(["2023-01-31 05:00", "2023-03-31 05:00"]), pa.timestamp("us"))
    later = [pd.Timestamp("2023-01-31 05:00") + pd.DateOffset(months=n) for n in (1, 3, 13)]
    moved = [Spacing("month", 1).shift(days_31[:1], n)[0].as_py() for n in (1, 3, 13)]
    assert moved == later
    ends = Spacing("month end", 1).shift(pa.array(pd.to_datetime(["2024-02-29"]), pa.timestamp("us")), 1)
    assert ends[0].as_py() == pd.Timestamp("2024-02-29") + pd.offsets.MonthEnd(1)
    assert infer_step(days_31, np.zeros(2)) == Spacing("month", 2)
    days_30 = pd.to_datetime(["2023-01-30", "2023-03-02", "2023-03-30"])
    assert infer_step(pa.array(days_30, pa.timestamp("us")), np.zeros(3)).unit == "microsecond"


@pytest.mark.parametrize("day", [29, 30])
@pytest.mark.parametrize("months", [1, 3])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_day_that_some_months_lack_is_months_apart(tmp_path: Path, day: int, months: int, zone: str | None):
    first = pd.Timestamp(f"2022-11-{day} 07:00", tz=zone)
    times = pd.DatetimeIndex([first + pd.DateOffset(months=months * n) for n in range(30)])
    assert {*times.day} == {28, 29, day}
    there = np.delete(np.arange(30), [1, 13, 14])
    pd.DataFrame({"date": times[there], "load": there * 1.0}).to_parquet(tmp_path / "days.parquet")
    series = Series(tmp_path / "days.parquet", "load", "date", 3, 1, columns=PLAIN, split=ALL, gaps="hold")
    assert series.learned["series"]["step"] == ["month", months, zone is not None, day]
    assert len(series["training"]) == 27 - 2
    held = series.identify(tmp_path / "days.parquet", series.learned)["date"]
    assert held == [str(time) for time in times[2:]]
    old = {"series": {**series.learned["series"], "step": ["month", months, zone is not None]}}
    assert len(series.identify(tmp_path / "days.parquet", old)["date"]) == len(held)


def test_days_of_months_that_do_not_fit_are_no_months():
    for days_ in (["2023-01-30", "2023-02-27", "2023-03-30"], ["2023-01-30 01:00", "2023-02-28", "2023-03-30"]):
        times = pa.array(pd.to_datetime(days_, format="mixed"), pa.timestamp("us"))
        assert infer_step(times, np.zeros(3)).unit == "microsecond"
    leap = pa.array(pd.to_datetime(["2023-12-29", "2024-02-29", "2024-04-29"]), pa.timestamp("us"))
    assert infer_step(leap, np.zeros(3)) == Spacing("month", 2)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC"])
def test_hours_with_offsets_pass_changes_of_the_clock_without_a_gap(tmp_path: Path, zone: str):
    times = pd.date_range("2024-03-30", periods=72, freq="h", tz=zone)
    path = write(tmp_path / "clock.csv", {"date": times.map(lambda t: t.isoformat()), "load": np.arange(72.0)})
    series = Series(path, "load", "date", 5, 2, columns=PLAIN, split=ALL)
    assert len(series["training"]) == 72 - 6


def test_days_of_a_time_zone_pass_changes_of_the_clock_without_a_gap(tmp_path: Path):
    times = pd.date_range("2024-03-25", periods=14, freq="D", tz="Europe/Berlin")
    pd.DataFrame({"date": times, "load": np.arange(14.0)}).to_parquet(tmp_path / "days.parquet")
    series = Series(tmp_path / "days.parquet", "load", "date", 3, 2, columns=PLAIN, split=ALL)
    assert len(series["training"]) == 14 - 4


@pytest.mark.parametrize("hour", ["00:00", "02:30"])  # the clock skips and repeats 02:30
@pytest.mark.parametrize("change", ["2024-03-31", "2024-10-27"])
def test_gaps_at_a_change_of_the_clock_are_held_on_the_wall_clock(tmp_path: Path, change: str, hour: str):
    days_there = pd.date_range(pd.Timestamp(change) - pd.Timedelta("6D"), periods=14, freq="D")
    clock = (days_there + pd.Timedelta(f"{hour}:00")).delete([5, 6, 7])
    times = clock.tz_localize("Europe/Berlin", ambiguous=True)
    loads = np.delete(np.arange(14.0), [5, 6, 7])
    pd.DataFrame({"date": times, "load": loads}).to_parquet(tmp_path / "days.parquet")
    columns = {**PLAIN, "date": DateEncoder(("hour",), zone="Europe/Berlin")}
    series = Series(tmp_path / "days.parquet", "load", "date", 3, 1, columns=columns, split=ALL, gaps="hold")
    inputs, targets = windows_of(series["training"])
    assert targets[:, 0].tolist() == [3, 4, 8, 9, 10, 11, 12, 13]
    assert inputs[2, :, 0].tolist() == [4, 4, 4]
    if hour == "00:00":
        assert np.allclose(inputs[:, :, 1:], [0, 1])
        rows = series.identify(tmp_path / "days.parquet", series.learned)["date"]
        wanted = pd.date_range(days_there[2], periods=12, freq="D", tz="Europe/Berlin")
        assert rows == [str(time) for time in wanted]


def test_local_times_that_occur_twice_are_an_error_with_both_places(tmp_path: Path):
    clock = pd.date_range("2024-10-26", periods=72, freq="h", tz="Europe/Berlin").tz_localize(None)
    path = write(tmp_path / "clock.csv", {"date": clock, "load": np.arange(72.0)})
    with pytest.raises(
        SigmaDataError, match=r"clock\.csv:29: the time 2024-10-27 02:00:00 is there already, in .*clock\.csv:28"
    ):
        len(Series(path, "load", "date", 5, 2, split=ALL)["training"])


def test_the_same_time_in_two_groups_is_none_and_twice_in_one_group_names_it(two: Path):
    with pytest.raises(SigmaDataError, match="Name the column of the series in `group`"):
        len(Series(two, "load", "date", 4, 3, split=ALL)["training"])
    table = pd.read_csv(two)
    write(two, pd.concat([table, table.tail(1)]))
    name = table["shop"].iloc[-1]
    with pytest.raises(SigmaDataError, match=f"two.csv:52: the time .* of shop '{name}' is there already"):
        len(Series(two, "load", "date", 4, 3, group="shop", split=ALL)["training"])


def test_groups_of_one_row_have_no_window(two: Path):
    table = pd.concat([pd.read_csv(two), pd.DataFrame({"date": days(1), "shop": ["c"], "load": [7.0]})])
    write(two, table)
    series = Series(two, "load", "date", 4, 3, group="shop", columns=PLAIN, split=ALL)
    assert len(series["training"]) == 24 + 14


def test_splits_follow_each_other_and_share_no_step_to_predict(two: Path):
    series = Series(two, "load", "date", 4, 2, group="shop", columns=PLAIN, split=HALVES)
    held = {name: windows_of(series[name]) for name in series}
    ends = {"training": 15, "validation": 15 + 8, "test": 30}
    before = 0
    for name, (inputs, targets) in held.items():
        day = np.where(targets >= 30, targets - 30, targets)
        assert day.min() >= before
        assert day.max() < ends[name]
        before = ends[name]
        assert (inputs[:, -1, 0] + 1 == targets[:, 0]).all()
    assert held["training"][0].max() < 30 + 15


def test_encoders_are_fitted_on_the_training_rows(tmp_path: Path):
    values = np.where(np.arange(100) < 50, np.arange(100) % 7, 1e6)
    path = write(tmp_path / "fit.csv", {"date": days(100), "load": values, "heat": values * 2})
    state = {c["name"]: c["state"] for c in Series(path, "load", "date", 5, split=HALVES).learned["series"]["columns"]}
    assert state["load"]["centre"] == pytest.approx(values[:50].mean())
    assert state["heat"]["width"] == pytest.approx((2 * values[:50]).std())


# -- folds -------------------------------------------------------------------------------------------------------------
def days_of(part: Dataset) -> set[int]:
    """Return the days that are predicted; those of the second group have the numbers from 30 on."""
    targets = windows_of(part)[1]
    return {*np.where(targets >= 30, targets - 30, targets).astype(int).ravel().tolist()}


def test_folds_expand_training_in_time_and_keep_other_splits(two: Path):
    settings: dict[str, Any] = {"group": "shop", "columns": PLAIN, "split": HALVES}
    whole = Series(two, "load", "date", 2, 1, **settings)
    series = [Series(two, "load", "date", 2, 1, **settings, fold={"number": i, "of": 4}) for i in range(4)]
    pool = {*range(2, 30)} - days_of(whole["test"])
    size = (max(pool) + 1) // 5
    for number, fold in enumerate(series):
        start = max(pool) + 1 - (4 - number) * size
        assert fold.names == ("training", "validation", "test")
        assert days_of(fold["validation"]) == {*range(start, start + size)}
        assert days_of(fold["training"]) == {*range(2, start)}
        assert days_of(fold["test"]) == days_of(whole["test"])


def test_folds_fit_columns_on_the_times_before_validation(tmp_path: Path):
    values = np.arange(60.0) ** 2
    path = write(tmp_path / "one.csv", {"date": days(60), "load": values})
    for number in range(3):
        series = Series(path, "load", "date", 5, split=ALL, fold={"number": number, "of": 3})
        assert series.names == ("training", "validation")
        state = series.learned["series"]["columns"][0]["state"]
        assert state["centre"] == pytest.approx(values[: 15 * (number + 1)].mean())
        targets = windows_of(series["validation"])[1]
        assert np.array_equal(targets[:, 0], values[15 * (number + 1) : 15 * (number + 2)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fold": {"number": 4, "of": 4}}, "fold: there is no fold 4 of 4"),
        ({"fold": {"number": 0, "of": 30}}, "fold: 30 folds need at least 31 times, and there are 30. Use fewer folds"),
        (
            {"split": {"training": 0.5, "test": 0.3, "validation": 0.2}, "fold": {"number": 0, "of": 2}},
            r"fold: 'validation' must follow on 'training' \(the splits are training, test, validation\)",
        ),
    ],
)
def test_folds_that_there_are_not_are_refused(two: Path, settings: dict[str, Any], message: str):
    with pytest.raises(SigmaConfigError, match=message):
        len(Series(two, "load", "date", 2, **{"group": "shop", "split": ALL, **settings})["training"])


def test_what_is_known_in_advance_is_read_so_many_steps_earlier(tmp_path: Path):
    holiday = np.arange(30.0) ** 2
    path = write(tmp_path / "known.csv", {"date": days(30), "load": np.arange(30.0), "holiday": holiday})
    columns = {**PLAIN, "holiday": NumberEncoder(scale="none")}
    series = Series(path, "load", "date", 4, 3, known="holiday", columns=columns, split=ALL)
    inputs, targets = windows_of(series["training"])
    assert np.array_equal(inputs[:, -3:, 1], targets**2)
    future = write(
        tmp_path / "new.csv", {"date": days(9), "load": [*range(6), None, None, None], "holiday": holiday[:9]}
    )
    learned = json.loads(json.dumps(series.learned))
    samples = series.samples(future, (4, 2), learned=learned)
    assert np.array_equal(samples, inputs[:3])
    assert series.identify(future, learned) == {"date": [f"2024-01-0{i} 00:00:00" for i in (4, 5, 6)]}
    short = write(tmp_path / "short.csv", {"date": days(6), "load": range(6), "holiday": holiday[:6]})
    with pytest.raises(SigmaDataError, match="3 rows after them that say what is known"):
        series.samples(short, (4, 2), learned=learned)


def test_a_new_table_has_a_window_for_each_end_with_group_and_time(two: Path, tmp_path: Path):
    series = Series(two, "load", "date", 4, 3, group="shop", split=ALL)
    inputs, _ = windows_of(series["training"])
    learned = json.loads(json.dumps(series.learned))
    samples = series.samples(two, (4, inputs.shape[2]), learned=learned)
    labels = series.identify(two, learned)
    assert len(samples) == 27 + 17 == len(labels["date"])
    assert labels["shop"].count("a") == 27
    own = {(x.tobytes()) for x in np.ascontiguousarray(samples)}
    assert all(x.tobytes() in own for x in np.ascontiguousarray(inputs))
    new = write(tmp_path / "other.csv", {"date": days(5), "load": range(5)})
    with pytest.raises(SigmaDataError, match="there is no column 'shop'"):
        series.samples(new, (4, 2), learned=learned)
    with pytest.raises(SigmaDataError, match="is damaged in the checkpoint"):
        series.samples(two, (4, 2), learned={"series": {"step": 3}})


def test_a_table_to_predict_from_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "load.csv", {"date": days(20), "load": np.arange(20.0)})
    series = Series(path, "load", "date", 3, 1, columns=PLAIN, split=ALL)
    learned = json.loads(json.dumps(series.learned))
    new = write(tmp_path / "new.csv", {"date": days(5), "load": np.arange(5.0)})
    read: list[Path] = []
    monkeypatch.setattr(
        "sigma_data.datasets.series.open_alike", lambda place, form: read.append(place) or open_alike(place, form)
    )
    samples = series.samples(new, (3, 1), learned=learned)
    assert len(samples) == len(series.identify(new, learned)["date"]) == 3
    assert read == [new]
    write(new, {"date": days(6), "load": np.arange(6.0)})
    assert len(series.identify(new, learned)["date"]) == len(series.samples(new, (3, 1), learned=learned)) == 4
    assert read == [new, new]
    other = json.loads(json.dumps(learned))
    other["series"]["past"] = 4
    assert len(series.samples(new, (4, 1), learned=other)) == 3
    assert len(series.samples(path, (3, 1), learned=learned)) == 18


def test_a_table_to_predict_from_may_be_in_another_format(tmp_path: Path):
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=20), "load": np.arange(20.0)})
    frame.to_csv(tmp_path / "load.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "load.parquet")
    series = Series(tmp_path / "load.csv", "load", "date", 3, 1, columns=PLAIN, split=ALL, format={"delimiter": ";"})
    learned = json.loads(json.dumps(series.learned))
    samples = series.samples(tmp_path / "load.csv", (3, 1), learned=learned)
    assert np.array_equal(series.samples(tmp_path / "load.parquet", (3, 1), learned=learned), samples)


def test_a_column_of_dates_is_a_calendar_of_the_steps_to_predict(tmp_path: Path):
    path = write(tmp_path / "hours.csv", {"date": days(200, step="h"), "load": np.arange(200.0)})
    columns = {"load": PLAIN["load"], "date": DateEncoder(("hour",))}
    inputs, targets = windows_of(Series(path, "load", "date", 4, 3, columns=columns, split=ALL)["training"])
    assert np.allclose(inputs[:, -3:, 1], np.sin(2 * np.pi * targets / 24))


def test_several_targets_are_predicted_step_by_step(tmp_path: Path):
    path = write(tmp_path / "two.csv", {"t": range(20), "a": np.arange(20.0), "b": -np.arange(20.0)})
    series = Series(path, ("a", "b"), "t", 3, 2, split=ALL)
    _, targets = windows_of(series["training"])
    assert series["training"].column_names("targets") == ("a +1", "b +1", "a +2", "b +2")
    assert targets[0].tolist() == [3, -3, 4, -4]


@pytest.mark.parametrize(
    ("columns", "settings", "words"),
    [
        ({"date": [*days(4), None], "load": range(5)}, {}, r"x.csv:6: column 'date': there is no time"),
        ({"date": [*days(4), "soon"], "load": range(5)}, {}, r"x.csv:6: column 'date': 'soon' is no date"),
        ({"date": [0, 1, 2, 3.5], "load": range(4)}, {}, r"x.csv:5: column 'date': 3.5 is no whole number"),
        ({"date": days(4), "load": [1, 2, 3, "much"]}, {}, r"x.csv:5: column 'load': 'much' is not a number"),
        ({"date": days(4), "load": range(4)}, {"past": 4}, "split 'training' has no window"),
        ({"date": days(4), "load": range(4)}, {"split": {"training": 0.9, "validation": 0.1}}, "gets none of 4 times"),
        ({"date": days(4), "load": range(4), "g": ["a", "a", None, "b"]}, {"group": "g"}, r"x.csv:4: .*no group"),
        ({"date": [0, 1, 10**9], "load": range(3)}, {"gaps": "hold"}, "steps of 1 are missing after this row"),
        ({"date": [], "load": []}, {}, "there is no row"),
    ],
)
def test_tables_that_are_no_series_are_refused(tmp_path: Path, columns: Any, settings: Any, words: str):
    path = write(tmp_path / "x.csv", columns)
    with pytest.raises(SigmaDataError, match=words):
        len(Series(path, "load", "date", **{"past": 2, "split": ALL, **settings})["training"])


def test_settings_that_do_not_fit_are_refused(two: Path):
    with pytest.raises(SigmaConfigError, match="there is none"):
        Series(two, (), "date", 2)
    with pytest.raises(SigmaConfigError, match="'training' must come first"):
        Series(two, "load", "date", 2, split={"test": 0.5, "training": 0.5})
    with pytest.raises(SigmaConfigError, match="'load' cannot have two roles"):
        len(Series(two, "load", "date", 2, known="load")["training"])


def test_runs_and_starts_of_rows_without_order():
    runs = number_runs(np.array([0, 1, 3, 4, 4]), np.array([0, 0, 0, 0, 1]), 1)
    assert runs.tolist() == [0, 0, 1, 1, 2]
    assert find_starts(runs, np.ones(5, bool), 2).tolist() == [0, 2]
    assert find_starts(runs, np.array([True, True, True, False, True]), 2).tolist() == [0]
    assert find_starts(runs, np.ones(5, bool), 6).tolist() == []


def test_large_data_are_blocks_of_windows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sigma_data.series.windows.LARGEST", 10 * 3 * 8)
    values = np.arange(50.0)[:, None]
    windows = SeriesWindows(values, values, np.arange(47), 3, 1, ("x +1",))
    assert [windows.rows(block) for block in range(windows.blocks)] == [10, 10, 10, 10, 7]
    assert np.array_equal(windows_of(windows)[1][:, 0], np.arange(3.0, 50.0))


def test_sunspots_have_cycles_of_eleven_years():
    sunspots = Sunspots()
    values = np.concatenate([windows_of(sunspots[name])[1][:, 0] for name in sunspots])
    apart = [np.corrcoef(values[:-lag], values[lag:])[0, 1] for lag in (66, 132)]
    assert apart[0] < -0.3
    assert apart[1] > 0.5
    assert len(sunspots["training"]) + len(sunspots["validation"]) + len(sunspots["test"]) == 2961


class TestSeries(DatasetSuite):
    def make(self) -> Dataset:
        with TemporaryDirectory() as folder:
            path = write(Path(folder) / "load.csv", {"date": days(40), "load": np.arange(40.0)})
            return Series(path, "load", "date", 5, 2, gaps="hold")["training"]


class TestSunspots(DatasetSuite):
    def make(self) -> Dataset:
        return Sunspots(past=24, ahead=3)["validation"]
