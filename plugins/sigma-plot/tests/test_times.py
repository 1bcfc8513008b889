"""The times of day of points: by hand, and of a run that pauses, beside the rows of its journal."""

from __future__ import annotations

import csv
import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.periods import Period
from sigma_plot.times import DAY, find_times, format_time, read_periods, time_ticks
from sigma_run.launcher import main
from sigma_testing.journals import read_journal

PAUSE = 1.5  # seconds
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of 8 iterations, a pause, and 8 more."""
    data = {"inputs": np.eye(8, dtype="float32"), "targets": np.arange(8)}
    with Environment("paused", seed=0, folder=tmp_path_factory.mktemp("runs")) as sigma:
        trainer = sigma.create_trainer(
            data=data, network="input(8) + dense(8) + output(8) + softmax_cross_entropy()", batch_size=4,
            optimiser={"type": "gradient_descent", "learning_rate": 0.1}, backend="numpy",
        )  # fmt: skip
        trainer.fit(epochs=4)
        time.sleep(PAUSE)
        trainer.fit(epochs=4)
    assert sigma.run_folder is not None
    return sigma.run_folder


def read_times(file: Path) -> tuple[list[int], list[float]]:
    """Return the iterations of the points of the loss, and their times."""
    rows = [row for row in csv.DictReader(file.read_text().splitlines()) if row["name"] == "training.loss"]
    return [int(row["iteration"]) for row in rows], [datetime.fromisoformat(row["time"]).timestamp() for row in rows]


def test_a_table_has_the_times_of_points_and_of_the_pause_between_them(paused: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    assert main(["plot", str(paused), "--save", str(file)]) == 0
    (iterations, times), told = read_times(file), [row["time"] for row in read_journal(paused) if "time" in row]
    assert times == sorted(times)
    assert told[0] - 0.1 <= times[0]
    assert times[-1] <= told[-1] + 0.1
    before = int(np.diff(times).argmax())
    assert times[before + 1] - times[before] >= PAUSE - 0.1
    assert iterations[before] <= 8 < iterations[before + 1]


def test_curves_are_drawn_over_times_of_day(paused: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun = next(row["time"] for row in read_journal(paused) if "time" in row)
    day = f"{datetime.fromtimestamp(begun, UTC):%Y-%m-%d} UTC"
    assert main(["plot", str(paused), "--over", "time"]) == 0
    *_, name, labels = capsys.readouterr().out.rstrip().splitlines()
    assert f"({day})" in name
    assert re.search(r"\d\d:\d\d:\d\d", labels)
    for suffix in ("svg", "png"):
        assert main(["plot", str(paused), "--over", "time", "--save", str(tmp_path / f"x.{suffix}")]) == 0
    texts = [one.text or "" for one in ElementTree.parse(tmp_path / "x.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert any(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in texts)
    assert day in texts


def test_a_run_without_times_says_what_to_plot_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moment = {"trainer": "trainer", "iteration": 1, "epoch": 1, "seconds": 1.0}
    rows = [{"format": 1}, {**moment, "values": {"training.loss": {"last": 1.0, "low": 1.0, "high": 1.0}}}]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert main(["plot", str(tmp_path), "--over", "time"]) != 0
    assert "its journal holds no times of day. Plot it over second." in capsys.readouterr().err


def test_times_are_those_of_the_periods_of_a_branch() -> None:
    periods = [Period(0, 0.0, NOON, 10.0), Period(0, 10.0, NOON + 100, 5.0), Period(1, 5.0, NOON + 200, 9.0)]
    found = find_times(periods, 0, np.array([0.0, 4.0, 9.5, 10.0, 12.0])) - NOON
    np.testing.assert_allclose(found, [0.0, 4.0, 9.5, 100.0, 102.0])
    found = find_times(periods, 1, np.array([4.0, 5.0, 14.0])) - NOON
    np.testing.assert_allclose(found, [np.nan, 200.0, 209.0])
    assert np.isnan(find_times(periods, 2, np.array([1.0]))).all()


def test_what_a_resume_repeats_has_the_later_times() -> None:
    periods = [Period(0, 0.0, NOON, 10.0), Period(0, 8.0, NOON + 60, 5.0), Period(0, 4.0, NOON + 120, 20.0)]
    np.testing.assert_allclose(find_times(periods, 0, np.array([3.0, 4.0, 9.0])) - NOON, [3.0, 120.0, 125.0])


def test_rows_without_a_trainer_or_a_time_are_no_periods() -> None:
    assert read_periods([{"event": "begin"}, {"trainer": "a", "iteration": 1, "seconds": 2.0}]) == {}


def test_times_are_written_in_iso_8601() -> None:
    assert format_time(NOON + 0.25) == "2026-03-01T12:00:00.250Z"
    assert format_time(float("nan")) == ""


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (4, ["12:00:00", "12:00:01", "12:00:02", "12:00:03", "12:00:04"]),
        (3600, ["12:00", "12:15", "12:30", "12:45", "13:00"]),
        (DAY, ["03-01 16:00", "03-02 00:00", "03-02 08:00"]),
        (20 * DAY, ["2026-03-04", "2026-03-08", "2026-03-12", "2026-03-16", "2026-03-20"]),
    ],
)
def test_ticks_are_round_times(length: float, labels: list[str]) -> None:
    assert [label for _, label in time_ticks(NOON, NOON + length)] == labels
