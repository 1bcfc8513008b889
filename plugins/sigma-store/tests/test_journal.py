"""Growing files: strict JSON lines, and a limited rate of metrics rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from sigma_kernel.clock import Moment
from sigma_store import appending
from sigma_store.chain import read
from sigma_store.journal import JournalFile, Lines, strict
from sigma_training.history import metrics
from sigma_training.history.metrics import History, Samples


def _read(path: Path) -> list[dict[str, Any]]:
    def refuse(text: str) -> Any:
        raise ValueError(text)  # NaN and Infinity are Python's, not JSON's

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


# -- lines -------------------------------------------------------------------------------------------------------------
def test_the_first_journal_line_states_the_format_once(tmp_path: Path) -> None:
    for _ in range(2):
        Lines(tmp_path / "x.jsonl").append({"a": 1})
    assert _read(tmp_path / "x.jsonl") == [{"format": 1}, {"a": 1}, {"a": 1}]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Lines().append({"a": 1})
    JournalFile().append({"a": 1})
    assert JournalFile().durable() is None
    assert not list(tmp_path.iterdir())


def test_journal_rows_without_disk_space_wait_in_order_and_raise_one_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    told: list[str] = []
    path = tmp_path / "x.jsonl"
    journal = JournalFile(path, told.append)
    journal.append({"a": 0})
    whole = _read(path)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 3, most[1]))  # room for half a row
    try:
        for number in range(1, 4):
            journal.append({"a": number})
            assert _read(path) == whole
        assert (
            "x.jsonl: the last 3 rows cannot be written, and would be lost in a crash, though applied: File too large."
            in str(journal.durable())
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    assert told == [f"ALARM: {path}: cannot be written: File too large. Free disk space. Training continues."]
    assert journal.durable() is None
    journal.append({"a": 4})
    assert [row["a"] for row in _read(path)[1:]] == [*range(5)]
    assert told[1:] == [f"{path}: can be written again; 3 queued rows are written."]
    assert journal.durable() is None
    assert read(path, pytest.fail).count == 6


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=8,
))  # fmt: skip
def test_strict_values_are_json_for_every_reader(value: Any) -> None:
    json.dumps(strict(value), allow_nan=False)


def test_only_non_finite_numbers_become_null() -> None:
    assert strict({"a": {"b": float("nan"), "c": 1.5}, "d": float("-inf"), "e": [1]}) == {
        "a": {"b": None, "c": 1.5}, "d": None, "e": [1],
    }  # fmt: skip


# -- samples -----------------------------------------------------------------------------------------------------------


class At:
    """A clock with a settable time."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def _samples(tmp_path: Path) -> tuple[Samples, At, Path]:
    now = At()
    return Samples(Lines(tmp_path / "rows.jsonl"), History(), now=now), now, tmp_path / "rows.jsonl"


def test_a_metrics_row_keeps_the_last_minimum_and_maximum_value(tmp_path: Path) -> None:
    samples, _, path = _samples(tmp_path)
    samples.history.record({"loss": np.array([3.0, 1.0, 2.0])}, Moment(), Moment())
    samples.history.record({"loss": np.array([5.0, 4.0]), "accuracy": np.array([0.5])}, Moment(), Moment())
    samples.write({"iteration": 5})
    wanted = {
        "loss": {"last": 4.0, "low": 1.0, "high": 5.0, "mean": 3.0, "count": 5},
        "accuracy": {"last": 0.5, "low": 0.5, "high": 0.5, "mean": 0.5, "count": 1},
    }
    assert _read(path)[1:] == [{"iteration": 5, "values": wanted}]


def test_a_float64_stays_exact_beside_those_of_a_burst_while_rows_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, now, path = _samples(tmp_path)
    least, greatest = 1.1251627478712292, 1.7251627478712292
    with monkeypatch.context() as full:
        full.setattr(appending, "_add", _refuse)
        samples.history.add("loss", 1.5, Moment(1))
        samples.write({}, force=True)
        for value in (least, greatest):
            samples.history.add("loss", value, Moment(2))
        now.seconds += 1
        samples.write({})
        samples.history.record({"loss": np.array([1.5], np.float32)}, Moment(2), Moment(3))
        now.seconds += 1
        samples.write({})
    samples.history.record({"loss": np.array([1.6], np.float32)}, Moment(3), Moment(4))
    samples.write({}, force=True)
    last, value = float(np.float32(1.6)), _read(path)[-1]["values"]["loss"]
    assert (value["last"], value["low"], value["high"], value["count"]) == (last, least, greatest, 4)
    assert value["mean"] == pytest.approx(np.mean([least, greatest, 1.5, last]), rel=1e-15)


def test_a_history_of_any_length_takes_limited_memory_and_keeps_the_newest_values_and_all_extremes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "FULL", 1000)
    monkeypatch.setattr(metrics, "JOINED", 100)
    history, cursor, seen = History(most=2000), 0, list[float]()
    values = np.random.default_rng(0).normal(size=50_000)
    for i in range(0, len(values), 5):
        history.record({"loss": values[i : i + 5]}, Moment(i), Moment(i + 5))
        history.add("score", values[i], Moment(i + 5))
        cursor, found = history.stretches_since("loss", cursor, 10**9)
        seen += [value for one in found for value in one.curve.values.tolist()]
    assert seen == values.tolist()  # who follows it misses nothing
    curve = history.curve("loss")
    assert 1000 <= len(curve.values) == len(history["loss"]) <= 2100
    assert curve.values[-1000:].tolist() == history["loss"][-1000:].tolist() == values[-1000:].tolist()
    assert curve.iterations[-1000:].tolist() == [*range(49_001, 50_001)]
    assert np.diff(curve.iterations)[:-2000].max(initial=0) <= 2 * 50_000 / 100  # no part is lost
    assert curve.values.tolist() == values[curve.iterations - 1].tolist()
    assert (curve.low.min(), curve.high.max()) == (values.min(), values.max())
    assert len(history["score"]) <= 2100


def test_a_history_after_a_rewind_is_joined_on_each_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FULL", 100)
    monkeypatch.setattr(metrics, "JOINED", 20)
    history = History(most=200)
    for i in range(500):
        history.add("loss", float(i), Moment(i + 1))
    history.leave(1, 250)
    for i in range(250, 900):
        history.add("loss", float(i), Moment(i + 1))
    curve = history.curve("loss")
    assert curve.iterations.tolist() == sorted(curve.iterations.tolist())
    assert curve.values.tolist() == (curve.iterations - 1).tolist()
    assert curve.iterations[-1] == 900
    assert len(curve.values) < 300
    assert [one.number for one in history.branches()] == [0, 1]


def _refuse(handle: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")


def test_at_most_ten_metrics_rows_a_second_are_written_without_losing_extremes(tmp_path: Path) -> None:
    samples, now, path = _samples(tmp_path)
    values = np.random.default_rng(0).normal(size=5000)
    for i, value in enumerate(values):
        now.seconds += 0.001
        samples.history.record({"loss": np.array([value])}, Moment(), Moment())
        samples.write({"iteration": i})
    rows = _read(path)[1:]
    assert len(rows) == 50
    assert min(row["values"]["loss"]["low"] for row in rows) == values[: rows[-1]["iteration"] + 1].min()
    assert max(row["values"]["loss"]["high"] for row in rows) == values[: rows[-1]["iteration"] + 1].max()


def test_a_metrics_row_can_be_forced_and_is_never_empty(tmp_path: Path) -> None:
    samples, _, path = _samples(tmp_path)
    for i in range(3):
        samples.history.record({"loss": np.array([float(i)])}, Moment(), Moment())
        samples.write({"iteration": i}, force=True)
        samples.write({"iteration": i}, force=True)
    assert [row["iteration"] for row in _read(path)[1:]] == [0, 1, 2]
    assert _read(path)[-1]["values"]["loss"] == {"last": 2.0, "low": 2.0, "high": 2.0, "mean": 2.0, "count": 1}


def test_of_texts_between_two_rows_the_last_is_written(tmp_path: Path) -> None:
    samples, now, path = _samples(tmp_path)
    for second, text in enumerate(["old", "new"]):
        samples.history.texts["said"] = text
        samples.history.record({"loss": np.array([0.5])}, Moment(), Moment())
        if second:
            samples.write({"second": second})
    now.seconds += 0.05
    samples.history.texts["said"] = "late"
    samples.write({"second": 1})  # too early
    samples.write({"second": 2}, force=True)
    samples.history.record({"loss": np.array([0.5])}, Moment(), Moment())
    samples.write({"second": 3}, force=True)
    loss = {"loss": {"last": 0.5, "low": 0.5, "high": 0.5, "mean": 0.5, "count": 1}}
    first, second, third = _read(path)[1:]
    assert first == {"second": 1, "texts": {"said": "new"}, "values": {"loss": {**loss["loss"], "count": 2}}}
    assert second == {"second": 2, "texts": {"said": "late"}, "values": {}}
    assert third == {"second": 3, "values": loss}


@pytest.mark.filterwarnings("error")
def test_a_non_finite_value_is_null_in_json_and_ignored_by_minimum_and_maximum(tmp_path: Path) -> None:
    samples, _, path = _samples(tmp_path)
    samples.history.record({"loss": np.array([3.0, 1.0, np.nan])}, Moment(), Moment())
    samples.write({})
    assert _read(path)[1]["values"]["loss"] == {"last": None, "low": 1.0, "high": 3.0, "mean": 2.0, "count": 2}
