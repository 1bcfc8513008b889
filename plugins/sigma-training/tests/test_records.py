"""Records for users: history, messages and files."""

from __future__ import annotations

import json
import sys
import threading
import time
from base64 import b64decode
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import define

from sigma_kernel.clock import Moment, TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.contracts.storing import Checkpoint, RowWriter
from sigma_kernel.curves import join_rows
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError, SigmaStateError
from sigma_kernel.messages import Messages
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_store.curves import read_curves, rows as metric_rows
from sigma_store.journal import JournalFile, Lines
from sigma_testing.steering import Sweep, small_environment
from sigma_training.history import recorder
from sigma_training.history.metrics import History, Samples
from sigma_training.history.recorder import MOST_LOSSES, Recorder
from sigma_training.history.replay import Replay
from sigma_training.hooks.order import HookOrder
from sigma_training.session import loop


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- history -----------------------------------------------------------------------------------------------------------
def test_the_history_joins_the_records_of_all_bursts() -> None:
    history = History()
    moments = [Moment(iteration=n, epoch=n // 3, second=n / 4) for n in (0, 2, 3)]
    for part, (before, after) in zip(([3.0, 2.0], [1.0]), pairwise(moments), strict=True):
        history.record({"training.loss": np.array(part, np.float32)}, before, after)
    history.record({"validation.loss": np.array([0.5])}, moments[-1], moments[-1])
    assert history["training.loss"].tolist() == [3.0, 2.0, 1.0]
    assert history["validation.loss"].tolist() == [0.5]
    assert list(history) == ["training.loss", "validation.loss"]
    assert len(history) == 2
    curve = history.curve("training.loss")
    assert curve.iterations.tolist() == [1, 2, 3]
    assert curve.epochs.tolist() == [0, 0, 1]
    assert curve.seconds.tolist() == [0.25, 0.5, 0.75]
    assert curve.values.tolist() == curve.low.tolist() == curve.high.tolist() == [3.0, 2.0, 1.0]
    assert history.curve("validation.loss").iterations.tolist() == [3]
    for read in (history.__getitem__, history.curve):
        with pytest.raises(KeyError, match="accuracy"):
            read("accuracy")


def test_numbers_of_hooks_and_of_bursts_make_one_curve() -> None:
    history, (first, second, third) = History(), (Moment(iteration=n, epoch=n // 2, second=n / 2) for n in (0, 2, 3))
    history.add("x", 9.0, first)
    history.record({"x": np.array([3.0, 2.0])}, first, second)
    history.add("x", 1.0, second)
    history.add("x", 0.5, third)
    history.add("y", 7.0, third)
    assert (history["x"].tolist(), history["y"].tolist()) == ([9.0, 3.0, 2.0, 1.0, 0.5], [7.0])
    curve = history.curve("x")
    assert curve.iterations.tolist() == [0, 1, 2, 2, 3]
    assert curve.seconds.tolist() == [0.0, 0.5, 1.0, 1.0, 1.5]
    end, (stretch,) = history.stretches_since("x", 2, 100)
    assert (end, stretch.curve.values.tolist()) == (4, [1.0, 0.5])


def test_a_number_that_is_published_after_a_step_back_is_on_a_branch_of_its_own() -> None:
    history = History()
    for iteration in (1, 2, 1):
        history.add("x", float(iteration), Moment(iteration=iteration))
    _, stretches = history.stretches_since("x", 0, 100)
    assert [stretch.curve.values.tolist() for stretch in stretches] == [[1.0, 2.0], [1.0]]
    assert history.curve("x").iterations.tolist() == [1, 1]


def test_after_a_rewind_a_curve_has_what_led_to_the_present_state_and_the_history_everything() -> None:
    with small_environment(Sweep(), hooks={"say": Say(value=1, every=every(4, "iteration"))}) as sigma:
        trainer = sigma.trainer("trainer")
        sigma.prepare()
        trainer.fit(iterations=10)
        first = trainer.history["training.loss"]
        sigma.send("rewind", to=5)
        trainer.fit(iterations=2)
        curve = trainer.history.curve("training.loss")
        assert curve.iterations.tolist() == [*range(1, 8)]
        assert curve.values.tolist() == first[:7].tolist()  # the same batches again
        assert len(trainer.history["training.loss"]) == 12
        assert trainer.history.curve("said").iterations.tolist() == [4]


def test_a_frame_has_a_row_per_iteration_and_a_column_per_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(DataFrame=lambda columns: {name: values.tolist() for name, values in columns.items()})
    monkeypatch.setitem(sys.modules, "pandas", made)
    frame = _history().frame("pandas")
    assert list(frame) == ["iteration", "epoch", "second", "time", "training.loss", "validation.loss"]
    assert frame["time"] == [None] * 4  # it is not known
    assert frame["iteration"] == [1, 2, 3, 4]
    assert frame["epoch"] == [0, 1, 1, 2]
    assert frame["training.loss"] == [4.0, 3.0, 2.0, 1.0]
    assert np.isnan(frame["validation.loss"]).tolist() == [True, False, True, False]


def test_a_history_is_written_as_csv_with_a_row_per_iteration(tmp_path: Path) -> None:
    _history().to_csv(tmp_path / "history.csv")
    head, *rows = (tmp_path / "history.csv").read_text().splitlines()
    assert head == "iteration,epoch,second,time,training.loss,validation.loss"
    assert [row.split(",")[0] for row in rows] == ["1", "2", "3", "4"]
    assert [row.split(",")[4] for row in rows] == ["4.0", "3.0", "2.0", "1.0"]
    assert [row.split(",")[5] == "" for row in rows] == [True, False, True, False]
    exact = History()
    exact.record({"training.loss": np.array([1 / 3, np.nan, np.inf, -1e-300])}, Moment(), Moment(4, 1, 4, 1.0))
    exact.to_csv(tmp_path / "exact.csv")
    text = (tmp_path / "exact.csv").read_text()
    assert [row.rpartition(",")[2] for row in text.splitlines()[1:]] == [repr(1 / 3), "", "inf", "-1e-300"]
    History().to_csv(tmp_path / "empty.csv")
    assert (tmp_path / "empty.csv").read_text() == "iteration,epoch,second,time\n"
    with pytest.raises(SigmaStateError, match="cannot be written: No such file or directory"):
        _history().to_csv(tmp_path / "missing" / "history.csv")


def test_a_history_is_written_with_the_branches_that_were_left(tmp_path: Path) -> None:
    with small_environment(Sweep(), hooks={"say": Say(value=0.5)}) as sigma:
        sigma.folder, trainer = tmp_path, sigma.trainer("trainer")
        trainer.fit(epochs=3)
        sigma.rewind(1, "epoch")
        trainer.fit(epochs=1)
        assert sigma.run_folder is not None
        histories = [
            trainer.history,
            History.from_curves(read_curves(sigma.run_folder, print)["trainer"]),
        ]
    for history in histories:
        history.to_csv(tmp_path / "all.csv", branches=True)
        head, *rows = (tmp_path / "all.csv").read_text().splitlines()
        assert head.split(",")[:5] == ["branch", "iteration", "epoch", "second", "time"]
        found = [tuple(map(int, row.split(",")[:2])) for row in rows]
        assert {at for branch, at in found if branch == 0} >= {5, 10, 15}
        assert found[-1] == (1, 10)
        history.to_csv(tmp_path / "line.csv")
        assert (tmp_path / "line.csv").read_text().splitlines()[-1].startswith("10,2,")
        assert "branch" not in (tmp_path / "line.csv").read_text()
        assert [one.branch for one in history.branched_curves().abandoned_stretches()["training.loss"]] == [0]


def test_every_key_of_a_row_of_metrics_is_documented(tmp_path: Path) -> None:
    with small_environment(Sweep(2)) as sigma:
        sigma.folder = tmp_path
        sigma.run()
        assert sigma.run_folder is not None
        rows = [*metric_rows(sigma.run_folder, pytest.fail)]
    page = (Path(__file__).parents[3] / "docs" / "getting-started.md").read_text()
    documented = page[page.index("`curves.bin` has") :].partition("## ")[0]
    for row in rows:
        assert {*row} == {"trainer", "iteration", "epoch", "seconds", "branch", "session", "start", "values"}
        assert [*row["values"]["training.loss"]] == ["last", "low", "high", "mean", "count"]
    for key in (*rows[0], *rows[0]["values"]["training.loss"], "texts", "edited"):
        assert f"`{key}`" in documented, key


def test_without_libraries_a_frame_or_a_plot_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        SigmaPluginError, match=r"frame: needs pandas or polars \(.*\)\. Install it: pip install pandas\."
    ):
        _history().frame()
    with pytest.raises(SigmaPluginError, match=r"chart: only the history of a trainer or of a run is drawn\."):
        _history().plot()
    with pytest.raises(SigmaConfigError, match=r"frame: library must be one of pandas, polars \(got 'polar'\)\."):
        _history().frame("polar")
    with pytest.raises(SigmaConfigError, match=r"plot: over must be one of iteration, epoch, second \(got 'hour'\)\."):
        _history().plot(over="hour")


def test_a_notebook_shows_the_curves_and_a_plot_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    history = _history(Resolver(catalogue()))
    _, _, data = str(history._repr_html_()).partition("base64,")
    texts = [*ElementTree.fromstring(b64decode(data.rstrip('">'))).itertext()]
    assert {"loss", "training 1", "validation 5"} <= set(texts)
    for i in range(1000):
        history.record({f"{'x' * 50}.{i}": np.ones(1)}, Moment(), Moment())
    assert len(str(history._repr_html_())) < 50_000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SigmaPluginError, match=r"plot: needs matplotlib .*\. Install it: pip install matplotlib\."):
        history.plot("training.loss", over="epoch")


def test_a_terminal_and_a_notebook_without_charts_show_a_line() -> None:
    history = History()
    assert _history()._repr_html_() is None
    assert repr(_history()) == "History(training.loss 1 (4), validation.loss 5 (2))"
    assert repr(history) == "History()"
    for i in range(1000):
        history.record({f"{'x' * 50}.{i}": np.ones(1)}, Moment(), Moment())
    assert len(repr(history)) < 1000


def _history(*resolve: Resolver) -> History:
    history, moments = History(*resolve), [Moment(iteration=n, epoch=n // 2, second=n / 4) for n in range(5)]
    for n in range(1, 5):
        history.record({"training.loss": np.array([5.0 - n])}, moments[n - 1], moments[n])
        if n % 2 == 0:
            history.record({"validation.loss": np.array([n + 1.0])}, moments[n], moments[n])
    return history


@define(eq=False, kw_only=True)
class Say(Hook):
    """Publish a value of a given type."""

    every: TimeStep = every(1, "iteration")
    value: Any = 0

    @property
    def writes(self) -> Sequence[str]:
        return ["said"]

    def fire(self, context: HookContext) -> None:
        context.publish("said", self.value)


@pytest.mark.parametrize("value", [0.5, 2, np.float32(0.5), np.float64(0.5), np.int64(2)])
def test_every_published_number_is_recorded_as_a_python_number(value: Any) -> None:
    with small_environment(Sweep(), hooks={"say": Say(value=value)}) as sigma:
        history = sigma.trainer("trainer").fit(iterations=3)
        published = sigma.get("trainer.said")
        assert sigma.trainer("trainer").session.snapshot().values["published"]["said"] == value
    assert history["said"].tolist() == [float(value)] * 3
    assert type(published) in (int, float)


@pytest.mark.parametrize("value", ["a text", True, [1, 2], None])
def test_non_numeric_values_can_be_published_but_are_not_metrics(value: Any) -> None:
    with small_environment(Sweep(), hooks={"say": Say(value=value)}) as sigma:
        history = sigma.trainer("trainer").fit(iterations=3)
        assert "said" not in history
        assert sigma.registry.find("**.said") == [("trainer.said", value)]
        assert "said" not in sigma.summary().metrics


# -- messages ----------------------------------------------------------------------------------------------------------
def test_each_reader_of_a_stream_has_its_own_position() -> None:
    messages = Messages()
    messages.log("a")
    messages.log("b")
    first = messages.entries_after(0)
    assert [text for _, text in first] == ["a", "b"]
    messages.log("c")
    assert [text for _, text in messages.entries_after(first[-1][0])] == ["c"]


def test_only_the_newest_messages_are_kept_and_none_is_lost_before() -> None:
    messages = Messages()
    threads = [threading.Thread(target=lambda: [messages.log("x") for _ in range(200)]) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [number for number, _ in messages.entries_after(0)]
    assert sorted(numbers) == list(range(1, 1001))
    messages.log("the last")
    assert len(messages.entries_after(0)) == 1000
    assert messages.entries_after(1000) == [(1001, "the last")]


# -- files -------------------------------------------------------------------------------------------------------------
def test_every_journal_row_names_its_trainer_and_time(tmp_path: Path) -> None:
    records = Recorder("generator")
    records.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
    moment = Moment(iteration=7, epoch=2, second=1.5)
    records.note(moment, {"command": "stop"})
    records.record_values({"validation.loss": np.array([0.5])}, moment, moment)
    records.row(moment, force=True)
    head = {"trainer": "generator", "iteration": 7, "epoch": 2, "seconds": 1.5}
    (row,) = _rows(tmp_path / "journal.jsonl")[1:]
    assert time.time() - 60 < row.pop("time") <= time.time() + 0.001
    assert {name: row[name] for name in row if name != "hash"} == {**head, "command": "stop"}
    values = {"validation.loss": {"last": 0.5, "low": 0.5, "high": 0.5, "mean": 0.5, "count": 1}}
    place = {"branch": 0, "session": 0, "start": 0}
    assert _rows(tmp_path / "rows.jsonl") == [{"format": 1}, {**head, **place, "values": values}]


def test_a_digest_holds_the_latest_losses_as_float32() -> None:
    rows: list[Mapping[str, Any]] = []
    records = Recorder("trainer", tell=rows.append)
    records.compare(Replay(deque(), goes_on=False))
    kept = Checkpoint(
        {}, {"clock": {"iteration": 0, "epoch": 0}, "cursor": [], "live": {}, "published": {}, "hooks": {}}
    )
    losses = np.arange(MOST_LOSSES + 5, dtype=np.float64)
    for part in (losses[:2], losses[2:], np.array([0.1])):
        records.record_values({"training.loss": part}, Moment(), Moment())
    for _ in range(2):
        records.digest(Moment(), kept, HookOrder({}))
    assert rows[0]["losses"] == np.append(losses[6:], 0.1).astype("<f4").tobytes().hex()
    assert rows[1]["losses"] == ""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("parts", "mean", "count"),
    [
        ([[np.inf, -np.inf, 1.0]], 1.0, 1),
        ([[1.0, 5.0], [np.nan, np.inf], [3.0, -np.inf]], 3.0, 3),
        ([[np.nan]], np.nan, 0),
        ([[1e308, 1e308, 1e308]], 1e308, 3),
        ([[1e308], [1.5e308, -1e308]], 5e307, 3),
        ([[1e308] * 500 + [-1e308] * 500], 0.0, 1000),
        ([[sys.float_info.max] * 7, [sys.float_info.max] * 6], sys.float_info.max, 13),
    ],
)
def test_the_mean_in_a_row_is_that_of_its_finite_values_however_large(
    parts: list[list[float]], mean: float, count: int
) -> None:
    rows, history, behind = list[Any](), History(), SimpleNamespace(is_kept=True, is_behind=True)
    behind.append = rows.append
    samples = Samples(cast(RowWriter, behind), history)
    for n, values in enumerate(parts):
        if n:
            samples.write({})  # which waits for the next one
        samples._last = -np.inf
        history.record({"loss": np.array(values)}, Moment(10 * n), Moment(10 * n + len(values)))
    samples.write({}, force=True)
    [row] = rows
    assert row["values"]["loss"]["mean"] == pytest.approx(mean, rel=1e-12, nan_ok=True)
    assert row["values"]["loss"]["count"] == count


def test_a_hook_that_publishes_every_iteration_does_not_flood_the_metrics(tmp_path: Path) -> None:
    hooks = {"say": Say(value=1.0)}
    with small_environment(Sweep(), rows=2000, splits=["training"], hooks=hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.recorder.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
        trainer.recorder._samples.now = lambda: 0.0  # no time passes
        trainer.fit(epochs=2)
    rows = _rows(tmp_path / "rows.jsonl")[1:]
    assert [row["iteration"] for row in rows] == [1, 400, 800]
    assert all(set(row["values"]) == {"training.loss", "said"} for row in rows)


def test_the_metrics_row_of_an_epoch_has_the_values_of_its_hooks(tmp_path: Path) -> None:
    with small_environment(Sweep(), hooks={"say": Say(value=3, every=every(1, "epoch"))}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.recorder.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
        trainer.recorder._samples.now = lambda: 0.0
        losses = trainer.fit(epochs=3)["training.loss"]
    rows = _rows(tmp_path / "rows.jsonl")[2:]
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert all(row["values"]["said"]["last"] == 3 for row in rows)
    assert rows[2]["values"]["training.loss"]["low"] == pytest.approx(losses[10:].min())
    assert rows[2]["values"]["training.loss"]["last"] == losses[-1]


def test_a_reset_is_found_in_what_is_stored_however_far_the_next_row_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "EACH", 0)
    monkeypatch.setattr(recorder, "Samples", partial(Samples, interval=1e9))
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        trainer = sigma.trainer("trainer")
        for epochs in (1, 2, 3):
            trainer.fit(epochs=epochs)
            if epochs < 3:
                sigma.reset()
        assert sigma.run_folder is not None
        iterations = [row["iteration"] for row in metric_rows(sigma.run_folder, pytest.fail)]
        stored = read_curves(sigma.run_folder, pytest.fail)["trainer"]
    assert iterations == sorted(iterations)  # none goes back
    assert [branch.number for branch in stored.branches] == [0, 0, 0]
    assert stored.curves()["training.loss"].iterations.tolist() == [15]
    left = stored.abandoned_stretches(joined=False)["training.loss"]
    assert [one.curve.iterations[-1] for one in left] == [5, 10]


def test_texts_are_written_with_the_next_row(tmp_path: Path) -> None:
    hooks = {"say": Say(value="word", every=every(1, "epoch")), "last": Say(value="end", every=every(1, "stop"))}
    with small_environment(Sweep(), splits=["training"], hooks=hooks) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.recorder.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
        trainer.recorder._samples.now = lambda: 0.0
        trainer.fit(epochs=2)
    told = [(row["epoch"], row.get("texts"), [*row["values"]]) for row in _rows(tmp_path / "rows.jsonl")[2:]]
    loss = ["training.loss"]
    assert told == [(1, {"said": "word"}, loss), (2, {"said": "word"}, loss), (2, {"said": "end"}, [])]
    curves = join_rows(_rows(tmp_path / "rows.jsonl")[1:])["trainer"].curves()
    assert [*curves] == loss
    assert curves["training.loss"].epochs[-2:].tolist() == [1, 2]


def test_the_last_metrics_are_written_when_training_ends(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.recorder.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
        trainer.recorder._samples.now = lambda: 0.0
        trainer.fit(iterations=8)
    assert _rows(tmp_path / "rows.jsonl")[-1]["iteration"] == 8


def test_every_set_value_is_journalled_whoever_set_it(tmp_path: Path) -> None:
    with small_environment(Sweep()) as sigma:
        trainer = sigma.trainer("trainer")
        sigma.prepare()
        trainer.recorder.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
        sigma.set("trainer.optimiser.learning_rate", 0.5)
        sigma.send("set", trainer="trainer", pattern="optimiser.weights.learning_rate", value=0.25)
        sigma.registry["trainer.optimiser.learning_rate"] = 0.125
        sigma.set("trainer.network.layers.weights", [[1.0], [2.0], [3.0]])
        with pytest.raises(KeyError):
            sigma.set("trainer.optimiser.learning_rate", "banana")
        trainer.fit(iterations=1)
    rows = [row for row in _rows(tmp_path / "journal.jsonl") if "command" in row]
    found = [(row["command"], row["pattern"], row["value"]) for row in rows]
    assert found == [
        ("set", "optimiser.learning_rate", 0.5),
        ("set", "optimiser.weights.learning_rate", 0.25),
        ("set", "optimiser.learning_rate", 0.125),
        ("set", "network.layers.weights", [[1.0], [2.0], [3.0]]),
    ]


def test_every_command_is_journalled_with_its_iteration(tmp_path: Path) -> None:
    @define(eq=False, kw_only=True)
    class Steer(Hook):
        every: TimeStep = every(3, "iteration")

        def fire(self, context: HookContext) -> None:
            for command in ("pause", "go", "stop"):
                context.command(command)

    with small_environment(Sweep(), hooks={"it": Steer()}) as sigma:
        trainer = sigma.trainer("trainer")
        trainer.recorder.open(JournalFile(tmp_path / "journal.jsonl"), Lines(tmp_path / "rows.jsonl"))
        trainer.fit()
    rows = _rows(tmp_path / "journal.jsonl")[1:]
    said = [(row.get("command", row.get("event")), row["iteration"], row.get("by")) for row in rows]
    acts = [("pause", 3, "it"), ("go", 3, "it"), ("stop", 3, "it")]
    assert said == [("begin", 0, None), *acts, ("end", 3, None)]


def test_each_of_the_first_epochs_has_a_row_and_later_ones_only_as_time_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "EACH", 3)
    monkeypatch.setattr(recorder, "Samples", partial(Samples, interval=1e9))
    with small_environment(Sweep()) as sigma:
        sigma.folder = tmp_path
        sigma.trainer("trainer").fit(epochs=9)
        assert sigma.run_folder is not None
        rows = [*metric_rows(sigma.run_folder, pytest.fail)]
    assert sorted({row["epoch"] for row in rows}) == [0, 1, 2, 3, 9]  # the first row is written at once
    assert rows[-1]["iteration"] == 45
