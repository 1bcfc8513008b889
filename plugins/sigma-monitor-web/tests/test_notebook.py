"""A run in a notebook, without a browser: what the widget says through the messages of its model, and what it does."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sigma_kernel import Environment
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError
from sigma_monitor_web import notebook, viewers
from sigma_monitor_web.files import page
from sigma_monitor_web.modules import REPLACED, ROOT, assemble_module, order_modules
from sigma_monitor_web.monitor import OneRun
from sigma_monitor_web.notebook import watch
from sigma_monitor_web.viewers import Viewers
from sigma_run.launcher import main
from sigma_store import read_journal
from sigma_store.curves import read_curves
from sigma_testing import FakeView, Slow
from sigma_testing.journals import replace_metrics
from sigma_testing.stores import metrics_row

PATIENCE = 60.0
RATE, LOSS = "trainer.optimiser.learning_rate", "trainer.training.loss"


def wait_for(done: Callable[[], Any]) -> Any:
    """Return what a function returns once it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := done()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


class Cell:
    """A view of a widget, as the page in a notebook is one: it acknowledges what it is sent, unless it is `idle`."""

    def __init__(self, served: Viewers, name: str = "cell") -> None:
        self.served, self.name, self.idle = served, name, False
        self.got: list[dict[str, Any]] = []
        self.documents: list[dict[str, Any]] = []
        self.numbers = count(1)
        self.size = 0  # bytes of the longest message

    def hear(self, message: Any) -> None:
        if message["view"] != self.name:
            return
        self.got.append(message)
        self.size = max(self.size, len(json.dumps(message)))
        self.documents += map(json.loads, message.get("lines", ()))
        if not self.idle:
            self.tell("seen")

    def tell(self, do: str, text: str = "") -> None:
        self.served.take({"view": self.name, "do": do, "text": text})

    def say(self, **document: Any) -> int:
        number = next(self.numbers)
        self.tell("say", json.dumps({"id": number, **document}))
        return number

    def ask(self, **document: Any) -> Any:
        """Return the answer to a request: its result, or its error."""
        number = self.say(**document)
        answered = lambda: [one for one in self.documents if one["id"] == number and "event" not in one]  # noqa: E731
        (answer,) = wait_for(answered)
        return answer.get("result", answer.get("error"))

    def events(self) -> list[dict[str, Any]]:
        return [one["event"] for one in self.documents if "event" in one and "ticket" not in one["event"]]


@pytest.fixture
def show() -> Iterator[Callable[..., tuple[Any, Cell]]]:
    """Return a function that watches a run; its widgets are closed after the test."""
    widgets = []

    def begin(run: Any, *settings: Any, **more: Any) -> tuple[Any, Cell]:
        widgets.append(widget := watch(run, *settings, **more))
        cell = Cell(widget.viewers)
        widget.viewers.send = cell.hear
        cell.tell("open")
        wait_for(lambda: cell.got)
        return widget, cell

    yield begin
    for widget in widgets:
        widget.close()


def environment(folder: Path | None = None, **settings: Any) -> Environment:
    x = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")
    sigma = Environment("plane", folder=folder)
    sigma.create_trainer(
        network="input(3) + output(1) + squared_difference()",
        **{
            "data": {"inputs": x, "targets": x @ np.array([[1.0], [-2.0], [0.5]], "float32")},
            "optimiser": {"type": "gradient_descent", "learning_rate": 0.05},
            "batch_size": 8,
            "epochs": 4,
            "backend": "numpy",
            **settings,
        },
    )
    return sigma


def columns(answer: Any, address: str) -> list[tuple[int, float]]:
    (stretch,) = answer[address]["stretches"]
    return [*zip(stretch["iteration"], stretch["value"], strict=True)]


# -- what it shows -----------------------------------------------------------------------------------------------------
def test_a_trainer_in_this_process_is_shown_from_before_its_first_iteration(show: Any) -> None:
    sigma = environment()
    trainer = sigma.trainer("trainer")
    widget, cell = show(trainer)
    assert repr(widget) == "RunWidget('plane')"
    assert widget.about["trainer"] == "trainer"
    assert cell.ask(do="hello")["trainers"] == ["trainer"]
    assert "is not prepared yet" in cell.ask(do="follow", addresses=[LOSS], trainer="trainer")["message"]
    sigma.prepare()
    cell.say(do="follow", addresses=[LOSS], every=0.1, trainer="trainer")
    trainer.fit()
    wait_for(
        lambda: cell.events() and cell.events()[-1].get("status", {}).get("trainers", {})["trainer"]["iteration"] == 20
    )
    curve = trainer.history.curve("training.loss")
    seen = cell.ask(do="series", addresses=[LOSS])
    assert columns(seen, LOSS) == [*zip(curve.iterations.tolist(), curve.values.tolist(), strict=True)]
    followed = [
        at
        for one in cell.events()
        for part in one.get("series", {}).get(LOSS, {}).get("stretches", [])
        for at in part["iteration"]
    ]
    assert sorted({*followed}) == curve.iterations.tolist()


def test_a_run_folder_shows_what_the_store_and_the_shell_say(tmp_path: Path, show: Any) -> None:
    with environment(tmp_path) as sigma:
        sigma.run()
        folder = sigma.run_folder
    with environment(tmp_path, epochs=1) as other:  # a newer one beside it
        other.run()
    assert folder is not None
    widget, cell = show(folder)
    assert widget.about["where"] == "ui"
    status = cell.ask(do="status")
    assert status["status"] == "finished"
    curve = read_curves(folder, pytest.fail)["trainer"].curves()["training.loss"]
    exact = [*zip(curve.iterations.tolist(), curve.values.tolist(), strict=True)]
    assert len(exact) >= 4
    assert columns(cell.ask(do="series", addresses=[LOSS]), LOSS) == exact
    assert cell.ask(do="get", pattern=LOSS) == {LOSS: exact[-1][1]}
    at = exact[1][0]  # a moment of the film
    assert exact[1] in columns(cell.ask(do="series", addresses=[LOSS], span=[at, at], most=16), LOSS)
    refused = cell.ask(do="command", name="undo", arguments={}, trainer="trainer")
    assert (refused["state"], refused["why"]) == ("refused", "undo: the run is not training. Resume it first.")


def test_a_run_without_curves_is_shown_without_any(tmp_path: Path, show: Any) -> None:
    with environment(tmp_path) as sigma:
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    (folder / "curves.bin").unlink()
    _, cell = show(str(folder))
    assert cell.ask(do="status")["status"] == "finished"
    assert cell.ask(do="series", addresses=[LOSS])[LOSS]["stretches"] == []


def test_a_million_points_are_answered_in_as_many_as_there_are_pixels(show: Any) -> None:
    widget, _ = show(environment())
    widget.viewers.begin = lambda: OneRun(FakeView(measured={LOSS: np.sin(np.arange(1e6))})).talk(
        "", frozenset({"read"})
    )
    many = Cell(widget.viewers, "many")
    widget.viewers.send = many.hear
    many.tell("open")
    wait_for(lambda: many.got)
    found = many.ask(do="series", addresses=[LOSS], most=1200)[LOSS]
    assert 600 < sum(len(part["iteration"]) for part in found["stretches"]) <= 1200
    many.say(do="follow", addresses=[LOSS], every=0.1, trainer="trainer", most=1200)
    (first,) = wait_for(many.events)[:1]
    assert sum(len(part["iteration"]) for part in first["series"][LOSS]["stretches"]) <= 1200
    assert many.size < 200_000  # bytes


def test_a_long_run_of_a_folder_is_answered_in_few_points_with_its_extremes(tmp_path: Path, show: Any) -> None:
    with environment(tmp_path) as sigma:
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    values = np.random.default_rng(0).normal(size=(20_000, 50))  # ten to the sixth iterations
    replace_metrics(folder, (metrics_row(50 * (at + 1), row) for at, row in enumerate(values)))
    _, cell = show(folder)
    (part,) = cell.ask(do="series", addresses=[LOSS], most=1200)[LOSS]["stretches"]
    assert len(part["iteration"]) <= 1200
    assert part["iteration"][-1] == 1_000_000
    assert (min(part["low"]), max(part["high"])) == (values.min(), values.max())
    assert cell.size < 200_000


# -- what it does ------------------------------------------------------------------------------------------------------
def test_a_value_that_is_set_is_journalled_can_be_undone_and_replays(
    tmp_path: Path, show: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SIGMA_CONTROL", raising=False)
    hooks = {"slow": Slow(), "end": {"type": "stop", "when": "epoch reaches 9999"}}
    with environment(tmp_path, epochs=None, hooks=hooks) as sigma:
        handle = sigma.run_async()
        folder = sigma.run_folder
        assert folder is not None
        wait_for((folder / "control.json").exists)
        for run in (sigma, folder):  # of this process, and as one of another
            _, cell = show(run)
            done = cell.ask(do="set", pattern=RATE, value=0.25)
            assert (done["state"], sigma.get(RATE)) == ("applied", 0.25)
            capsys.readouterr()
            assert main(["get", RATE, "--run", str(folder), "--json"]) == 0
            assert json.loads(capsys.readouterr().out) == cell.ask(do="get", pattern=RATE) == {RATE: 0.25}
            assert cell.ask(do="command", name="undo", arguments={}, trainer="trainer")["state"] == "applied"
            assert sigma.get(RATE) == 0.05
        for value, why in ((-1, "must be"), ("much", "must be")):
            refused = cell.ask(do="set", pattern=RATE, value=value)
            assert (refused["state"], why in refused["why"]) == ("refused", True), refused
        assert "neither an address nor the end of one" in cell.ask(do="set", pattern="nothing", value=1)["message"]
        handle.stop()
        handle.result(PATIENCE)
    rows = [row for row in read_journal(folder) if row.get("command") in ("set", "undo")]
    assert [row["command"] for row in rows] == ["set", "undo"] * 2
    assert main(["replay", str(folder), "--check", "--quiet", "--trust", "sigma_testing"]) == 0


def test_one_that_only_watches_may_not_set(show: Any) -> None:
    sigma = environment()
    _, cell = show(sigma, steer=False)
    assert cell.ask(do="hello")["scopes"] == ["read"]
    assert "not allowed here" in cell.ask(do="set", pattern=RATE, value=0.1)["message"]


# -- what is no run ----------------------------------------------------------------------------------------------------
def test_what_is_no_run_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SigmaConfigError, match="not a directory. Pass the folder of a run"):
        watch(tmp_path / "nowhere")
    with pytest.raises(SigmaConfigError, match="not a run folder. Pass one that `sigma runs` lists."):
        watch(tmp_path)
    with pytest.raises(SigmaConfigError, match="watch: 'int' is no run. Give an environment, a trainer, or"):
        watch(7)


def test_charts_are_patterns_of_addresses(show: Any) -> None:
    widget, _ = show(environment(), ["validation.*", ["training.loss", "*.cost.*"]])
    patterns = [chart["patterns"] for chart in widget.tabs[0]["charts"]]
    assert patterns == [["validation.*"], ["training.loss", "*.cost.*"]]
    assert notebook.lay_out("**.loss") == notebook.lay_out(["**.loss"])
    assert notebook.lay_out(()) == []
    with pytest.raises(
        SigmaConfigError, match=r"charts: tabs\[0\].charts\[0\].patterns\[0\]: must be a text \(got 3\)."
    ):
        notebook.lay_out([[3]])  # type: ignore[list-item]


def test_without_anywidget_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook, "NEEDED", ("no_such_widget_library", "traitlets"))
    with pytest.raises(SigmaPluginError, match=r"needs anywidget .*pip install 'sigma-monitor-web\[notebook\]'"):
        notebook.make_widget_class.__wrapped__()


# -- messages ----------------------------------------------------------------------------------------------------------
def test_two_views_of_a_widget_have_conversations_of_their_own(show: Any) -> None:
    widget, cell = show(environment())
    other = Cell(widget.viewers, "other")
    widget.viewers.send = lambda message: (cell.hear(message), other.hear(message))
    other.tell("open")
    wait_for(lambda: other.got)
    assert other.ask(do="hello") == cell.ask(do="hello")
    other.tell("close")
    wait_for(lambda: widget.viewers.count == 1)
    assert cell.ask(do="hello")["name"] == "plane"


def test_all_that_is_said_at_once_is_answered_in_its_order(show: Any) -> None:
    _, cell = show(environment())
    numbers = [cell.say(do="hello") for _ in range(40)]
    wait_for(lambda: numbers[-1] in [one["id"] for one in cell.documents])
    assert [one["id"] for one in cell.documents] == numbers
    assert any(len(message.get("lines", ())) > 1 for message in cell.got)


def test_a_view_that_reads_nothing_gets_answers_but_no_events_and_is_dropped_in_time(show: Any) -> None:
    sigma = environment()
    sigma.prepare()
    widget, cell = show(sigma)
    now = [0.0]
    cell.say(do="follow", addresses=[LOSS], every=0.1, trainer="trainer")
    wait_for(cell.events)
    cell.idle = True
    widget.viewers.clock = lambda: now[0]
    seen = len(cell.events())
    sigma.trainer("trainer").fit()
    time.sleep(0.5)
    assert len(cell.events()) <= seen + 1
    assert cell.ask(do="status")["trainers"]["trainer"]["iteration"] == 20
    now[0] = time.monotonic() + 1e6
    wait_for(lambda: widget.viewers.count == 0)
    assert cell.got[-1]["closed"] == "it did not read"


def test_a_view_that_says_too_much_at_once_or_nonsense_changes_nothing_else(show: Any) -> None:
    widget, cell = show(environment())
    for nonsense in (None, 7, {}, {"view": 1, "do": "open", "text": ""}, {"view": "cell", "do": "sing", "text": ""}):
        widget.viewers.take(nonsense)
    cell.tell("say", "no JSON")
    wait_for(lambda: cell.documents)
    assert "not JSON" in cell.documents[-1]["error"]["message"]
    assert cell.ask(do="hello")["name"] == "plane"


def test_a_view_is_told_that_its_run_has_gone_and_comes_back(tmp_path: Path, show: Any) -> None:
    with environment(tmp_path) as sigma:
        sigma.run()
        folder = sigma.run_folder
    assert folder is not None
    widget, _ = show(folder)
    folder.rename(tmp_path / "elsewhere")
    again = Cell(widget.viewers, "again")
    widget.viewers.send = again.hear
    again.tell("open")
    assert "is not the name of a run folder" in wait_for(lambda: again.got)[0]["closed"]


def test_a_closed_widget_leaves_no_thread(show: Any) -> None:
    before = {*threading.enumerate()}
    widget, cell = show(environment())
    cell.ask(do="hello")
    widget.close()
    widget.close()  # as a collector of garbage does
    cell.tell("open")
    wait_for(lambda: {*threading.enumerate()} <= before)
    assert widget.viewers.count == 0


def test_no_more_views_than_a_few_are_served(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "MOST", 2)
    widget, _ = show(environment())
    for name in ("a", "b", "c"):
        widget.viewers.take({"view": name, "do": "open", "text": ""})
    wait_for(lambda: widget.viewers.count == 2)
    time.sleep(0.1)
    assert widget.viewers.count == 2


# -- the module --------------------------------------------------------------------------------------------------------
def test_modules_come_after_those_that_they_import_and_none_is_left_open() -> None:
    order = order_modules(ROOT, files := page())
    assert order[-1] == ROOT
    assert not {*REPLACED} & {*order}
    assert "charts/board.js" in order
    text = assemble_module()
    modules = json.loads(re.search(r"^const MODULES = (.*);$", text, re.MULTILINE)[1])  # type: ignore[index]
    known = set[str]()
    for path, linked in modules:
        targets = re.findall(r'"@([^"]+)@"', linked)
        assert {*targets} <= known, path
        assert not re.search(r'from\s*"\.', linked), path
        known.add(path)
    assert json.loads(files["words.json"].body)["de"]["name"] in text


@pytest.mark.parametrize(("served", "own"), REPLACED.items())
def test_what_stands_for_a_server_exports_all_that_others_import(served: str, own: str) -> None:
    files = page()
    exported = {*re.findall(r"^export (?:async )?(?:const|function) (\w+)", files[own].body.decode(), re.MULTILINE)}
    name = Path(served).name
    for path in order_modules(ROOT, files):
        text = files[path].body.decode() if path in files else ""
        for names in re.findall(rf'^import \{{([^}}]+)\}} from "\.{{1,2}}/{name}";', text, re.MULTILINE):
            assert {one.strip() for one in names.split(",")} <= exported, path


def test_the_styles_are_those_of_a_shadow_root() -> None:
    styles = json.loads(re.search(r"^const STYLES = (.*);$", assemble_module(), re.MULTILINE)[1])  # type: ignore[index]
    assert ":root" not in styles
    assert ':host([data-theme="dark"])' in styles
    assert not re.search(r"^(html|body)\b", styles, re.MULTILINE)
