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
from sigma_plot.times import DAY, format_time, time_ticks
from sigma_run import load
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
        trainer.history.to_csv(sigma.run_folder.parent / "live.csv")
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


def test_a_history_has_the_times_of_plots(paused: Path, tmp_path: Path) -> None:
    assert main(["plot", str(paused), "--save", str(tmp_path / "plot.csv")]) == 0
    load(paused).history.to_csv(tmp_path / "loaded.csv")
    for file in (tmp_path / "loaded.csv", paused.parent / "live.csv"):
        rows = {int(row["iteration"]): row["time"] for row in csv.DictReader(file.read_text().splitlines())}
        plotted = dict(zip(*read_times(tmp_path / "plot.csv"), strict=True))
        apart = [datetime.fromisoformat(rows[at]).timestamp() - time for at, time in plotted.items()]
        assert len(apart) > 1
        assert max(map(abs, apart)) < 0.002
        times = np.array([datetime.fromisoformat(time).timestamp() for time in rows.values()])
        assert np.diff(times).max() > PAUSE - 0.1


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
