"""The console, on a pipe and on a terminal."""

from __future__ import annotations

import io
import re
import sys
from itertools import pairwise
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from sigma_kernel import every
from sigma_kernel.contracts import Hook, HookContext, Monitor, Operator
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_console import console
from sigma_monitor_console.console import ConsoleMonitor
from sigma_monitor_console.notebook import NotebookWatch, Shown
from sigma_monitor_console.reading import Speed, duration
from sigma_testing import MonitorSuite, Sweep, small_environment


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the last line for as long as a slow machine needs: a monitor imports what it shows that with."""
    monkeypatch.setattr("sigma_kernel.running.GRACE", 60.0)


class TestConsole(MonitorSuite):
    def make(self) -> Monitor:
        return ConsoleMonitor(interval=0.05)

    def operator(self) -> Operator:
        return Sweep()


class Ending(Hook):
    """Declare that it ends training, which the operator does here."""

    ends = True

    def fire(self, context: HookContext) -> None:
        pass


def _run(monitor: ConsoleMonitor, epochs: int = 3, total: float | None = None) -> None:
    hooks = {"end": Ending(every=every(1, "epoch"))}
    with small_environment(Sweep(epochs), splits=["training"], epochs=total, hooks=hooks) as sigma:
        sigma.monitors["console"] = monitor
        sigma.messages.log("hello \x1b[2J")
        sigma.run()


def test_a_pipe_receives_plain_lines_with_messages_and_the_final_state(capfd: pytest.CaptureFixture[str]) -> None:
    _run(ConsoleMonitor())
    captured = capfd.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "hello \\u001b[2J"
    assert re.fullmatch(r"trainer  epoch 3  iteration 15  loss [\d.e-]+.*", lines[-1])
    assert "\x1b" not in captured.err


def test_the_last_line_says_whether_the_run_finished_or_was_stopped(capfd: pytest.CaptureFixture[str]) -> None:
    _run(ConsoleMonitor())
    assert capfd.readouterr().err.rstrip().endswith("  finished")
    with small_environment(Sweep(10**9), epochs=inf) as sigma:
        sigma.monitors["console"] = ConsoleMonitor()
        training = sigma.run_async()
        sigma.stop()
        assert training.result().status == "stopped"
    assert capfd.readouterr().err.rstrip().endswith("  stopped")


@pytest.mark.parametrize(("numbers", "written"), [("loss 1", 1), ("loss 2", 2)])
def test_a_last_line_that_is_written_already_is_not_repeated(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], numbers: str, written: int
) -> None:
    ends, lines = iter([False, True]), iter(["loss 1", numbers])
    monkeypatch.setattr(console.PipeWatch, "news", lambda watch: [])
    monkeypatch.setattr(console.PipeWatch, "look", lambda watch: [next(lines)])
    monkeypatch.setattr(console.PipeWatch, "_format_look", lambda watch, look: look)
    view: Any = SimpleNamespace(wait=lambda seconds: next(ends))
    console.PipeWatch(view, Console(), 0.0).run()
    assert len(capfd.readouterr().err.splitlines()) == written


@pytest.mark.parametrize(("total", "shown"), [(7, "epoch 3/7  "), (inf, "epoch 3  "), (None, "epoch 3  ")])
def test_the_total_number_of_epochs_is_shown_if_it_is_known(
    capfd: pytest.CaptureFixture[str], total: float | None, shown: str
) -> None:
    _run(ConsoleMonitor(), total=total)
    assert shown in capfd.readouterr().err


@pytest.mark.parametrize("coloured", [True, False])
def test_a_terminal_shows_a_live_progress_line(monkeypatch: pytest.MonkeyPatch, coloured: bool) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        console, "make_console", lambda: Console(file=screen, force_terminal=True, width=150, no_color=not coloured)
    )
    _run(ConsoleMonitor())
    text = screen.getvalue()
    assert "epoch 3" in text
    assert "loss" in text
    assert "hello" in text
    assert bool(re.search(r"\x1b\[[0-9;]*[39][0-9]", text)) == coloured


def _frames(text: str) -> list[str]:
    """Return the lines that a terminal was sent, without codes."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_a_run_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console, "make_console", lambda: Console(file=screen, force_terminal=True, width=width))
    _run(ConsoleMonitor(), total=3)
    assert max(map(len, _frames(screen.getvalue()))) <= width
    assert any(
        line.startswith("epoch 3/3  ━━━━━━━━") and line.rstrip().endswith("finished")
        for line in _frames(screen.getvalue())
    )


def test_a_terminal_without_cursor_movement_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        console, "make_console", lambda: Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    )
    _run(ConsoleMonitor())
    assert "trainer  epoch 3  iteration 15" in capfd.readouterr().err


class Handle:
    """What IPython's display returns."""

    def __init__(self, shown: list[Any]) -> None:
        self.shown = shown

    def update(self, thing: Any) -> None:
        self.shown.append(thing)


def test_a_notebook_has_one_output_that_is_updated_and_ends_with_the_last_state(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    outputs: list[list[Any]] = []

    def display(thing: Any, display_id: bool) -> Handle:
        assert display_id
        outputs.append([thing])
        return Handle(outputs[-1])

    monkeypatch.setattr(console, "make_console", lambda: Console(force_jupyter=True))
    monkeypatch.setattr(console, "notebook", lambda: SimpleNamespace(display=display))
    monkeypatch.setattr("sigma_monitor_console.notebook.PAUSE", 0.01)
    _run(ConsoleMonitor(), total=3)
    [states] = outputs
    assert re.fullmatch(r"hello \\u001b\[2J\nepoch 3/3  ━{24}  loss [\d.e-]+  finished", repr(states[-1]))
    assert all(one != other for one, other in pairwise(states))
    assert capfd.readouterr() == ("", "")


class Still:
    """A view of a run in which nothing happens, for some looks."""

    left = 6

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        return [("trainer.iteration", 5)] if "iteration" in pattern else []

    def get(self, address: str) -> Any:
        return {"iteration": 5, "epoch": 1}.get(address.removeprefix("trainer."))

    def status(self) -> str:
        return "paused"

    def messages(self, after: int) -> list[tuple[int, str]]:
        return []

    def send(self, command: str, **arguments: Any) -> None:
        raise AssertionError(command)

    def wait(self, seconds: float) -> bool:
        self.left -= 1
        return not self.left


def test_a_notebook_is_not_updated_while_nothing_changes() -> None:
    shown: list[Any] = []

    def display(thing: Any, display_id: bool) -> Handle:
        shown.append(thing)
        return Handle(shown)

    NotebookWatch(Still(), Console(force_jupyter=True), 1.0, SimpleNamespace(display=display)).run()
    assert [repr(one) for one in shown] == ["epoch 1  ────────────────────────  paused"]


def test_text_in_a_notebook_is_escaped() -> None:
    assert "&lt;b&gt;" in Shown("<b>")._repr_html_()
    assert "<b>" not in Shown("<b>")._repr_html_()


def test_a_notebook_without_ipython_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    monkeypatch.setattr(console, "make_console", lambda: Console(force_jupyter=True, force_terminal=False))
    _run(ConsoleMonitor())
    assert "trainer  epoch 3  iteration 15" in capfd.readouterr().err


def test_speed_follows_recent_readings_and_gives_the_time_left() -> None:
    speed = Speed(0, 0.0).advance(100, 1.0)
    assert speed.rate == 100.0
    assert speed.words(1100) == ("100 it/s", "10 s left")
    assert speed.words(None) == ("100 it/s",)
    assert speed.advance(100, 1.0) == speed
    slow = Speed(0, 0.0).advance(1, 2.0)
    assert slow.words(None) == ("0.5 it/s",)


@pytest.mark.parametrize(("seconds", "words"), [(4.4, "4 s"), (59.9, "60 s"), (200, "3:20 min"), (7500, "2:05 h")])
def test_durations_are_formatted_for_people(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_empty_interval_is_refused() -> None:
    with pytest.raises(SigmaConfigError, match="interval"):
        ConsoleMonitor(interval=0.0)


def test_a_non_finite_value_is_displayed_as_such() -> None:
    from sigma_monitor_console.reading import format_number

    values: list[Any] = [format_number(float("nan")), format_number(float("inf")), format_number(0.123456)]
    assert values == ["nan", "inf", "0.1235"]
