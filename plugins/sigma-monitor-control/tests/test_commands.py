"""The commands, against a fake run: what they send, and what they print."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click
import pytest

from sigma_kernel import catalogue
from sigma_kernel.contracts import AddressEntry, Ticket, View
from sigma_kernel.errors import SigmaConfigError
from sigma_monitor_control import plugin
from sigma_monitor_control.commands import live
from sigma_monitor_control.commands.options import columns, print_moments, show
from sigma_monitor_control.protocol import reading as reading_of_protocol
from sigma_run.launcher import literal, main
from sigma_testing import FakeView, VerbSuite

ORDINARY = {
    "send": ["rewind", "to=3", "scale=epoch"],
    "step": ["2", "epochs"],
    "get": ["accuracy"], "watch": ["accuracy", "--count", "1"], "set": ["learning_rate", "0.5"], "rewind": ["3"],
    "attach": ["a", "loss"], "detach": ["a"], "swap": ["optimiser", "adam"], "exclude": ["3", "5-7"],
    "include": ["3"], "relabel": ["3", "4", "cat"], "freeze": ["learning_rate"], "release": ["learning_rate"],
}  # fmt: skip
MISTAKES = {
    "send": [["rewind"], ["rewind", "1", "epoch", "2"], ["banana"], ["exclude", "rows=[1"]],
    "get": [["nothing"], ["**.nothing"], ["loss"], []],
    "watch": [["nothing"], ["accuracy", "--every", "0.001"]],
    "set": [["loss", "1"], ["iteration", "3"], ["learning_rate", "[1"], ["learning_rate"]],
    "rewind": [["-1"], ["3", "epoch", "1"]],
    "step": [["x"], ["1", "2", "3"]],
    "pause": [["now"]],
    "exclude": [["x"], ["3-"], []],
}


class ControlSuite(VerbSuite):
    name = "ps"

    @pytest.fixture(autouse=True)
    def _served(self, serve: Any) -> None:
        serve()

    def make(self) -> click.Command:
        record = next(each for each in plugin.sigma_components() if (each.kind, each.name) == ("verb", self.name))
        made: click.Command = resolve_name(record.path)
        assert made.name == self.name
        return made

    def arguments(self) -> Sequence[str]:
        return ORDINARY.get(self.name, [])

    def mistakes(self) -> Sequence[Sequence[str]]:
        return [["--no-such-option"], *MISTAKES.get(self.name, [])]


class TestPs(ControlSuite):
    name = "ps"


class TestGet(ControlSuite):
    name = "get"


class TestWatch(ControlSuite):
    name = "watch"


class TestSet(ControlSuite):
    name = "set"


class TestSend(ControlSuite):
    name = "send"


@pytest.mark.parametrize("live_name", sorted(live.read_described().keys() - {"set"}))
class TestLive(ControlSuite):
    """Each live command; ``sigma set`` is a verb of its own."""

    @pytest.fixture(autouse=True)
    def _named(self, live_name: str) -> None:
        self.name = live_name

    def make(self) -> click.Command:
        return live.make_verb(live.find_command(self.name))


del ControlSuite


def test_the_descriptions_of_live_commands_are_those_of_the_classes() -> None:
    assert live.PATH.read_text("utf-8") == live.describe_own(), "python -m sigma_monitor_control.commands.live"


def test_every_live_command_can_be_given_in_the_shell_and_by_the_protocol(
    serve: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    view, offered = serve(), [component.name for component in catalogue().components("command")]
    assert {"reset", "freeze", "relabel"} <= {*offered}
    for name in offered:
        assert main([name, *ORDINARY.get(name, [])]) == 0, name
        assert view.sent[-1].command == name
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert [name for name in offered if f"\n  {name} " not in text] == []
    described = reading_of_protocol.commands(view).act()
    assert {about["name"] for about in described} == {*offered}


@pytest.mark.parametrize(
    ("given", "command", "arguments"),
    [
        (["pause"], "pause", {}),
        (["go"], "go", {}),
        (["stop"], "stop", {}),
        (["send", "rewind", "to=3", "scale=epoch"], "rewind", {"to": 3, "scale": "epoch"}),
        (["save"], "save", {"name": "", "note": ""}),
        (["undo"], "undo", {}),
        (["step"], "step", {"count": 1, "scale": "iteration"}),
        (["step", "3", "epochs"], "step", {"count": 3, "scale": "epoch"}),
        (["rewind", "3", "epoch"], "rewind", {"to": 3, "scale": "epoch"}),
        (["attach", "a", "loss"], "attach", {"name": "a", "hook": "loss"}),
        (
            ["attach", "a", '{type = "loss", every = "1 epoch"}'],
            "attach",
            {"name": "a", "hook": {"type": "loss", "every": "1 epoch"}},
        ),
        (["detach", "a"], "detach", {"name": "a"}),
        (["swap", "backend", "numpy"], "swap", {"slot": "backend", "component": "numpy"}),
        (["exclude", "2", "5-7"], "exclude", {"rows": [2, 5, 6, 7], "split": "training"}),
        (["reset"], "reset", {}),
        (["include", "2", "--split", "validation"], "include", {"rows": [2], "split": "validation"}),
        (["relabel", "2", "3", "cat"], "relabel", {"rows": [2, 3], "label": "cat", "split": "training"}),
        (["relabel", "2", "7"], "relabel", {"rows": [2], "label": 7, "split": "training"}),
        (["set", "learning_rate", "1e-3"], "set", {"pattern": "trainer.optimiser.learning_rate", "value": 0.001}),
        (["set", "every", "2 epochs"], "set", {"pattern": "trainer.hooks.loss.every", "value": "2 epochs"}),
        (["set", "every", "3"], "set", {"pattern": "trainer.hooks.loss.every", "value": "3"}),
        (["set", "every", '"3"'], "set", {"pattern": "trainer.hooks.loss.every", "value": "3"}),
        (["set", "**.learning_rate", "inf"], "set", {"pattern": "**.learning_rate", "value": float("inf")}),
    ],
)
def test_a_command_is_sent_with_its_arguments(
    serve: Any, given: list[str], command: str, arguments: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    view = serve()
    assert main(given) == 0
    (sent,) = view.sent
    assert (sent.command, sent.arguments) == (command, arguments)
    assert capsys.readouterr().out.endswith(": trainer at iteration 7, epoch 1\n")
    assert main([*given, "--trainer", "trainer", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "run": f"fake (process {os.getpid()})",
        "applied": {"trainer": {"iteration": 7, "epoch": 1}},
    }


def test_without_this_room_live_commands_are_neither_listed_nor_sent(capsys: pytest.CaptureFixture[str]) -> None:
    without = ("--no-plugin", "sigma-monitor-control")
    assert main([*without, "--help"]) == 0
    assert "reset" not in capsys.readouterr().out
    assert main([*without, "reset"]) == 3
    assert "sigma-monitor-control offers it, but is disabled by --no-plugin" in capsys.readouterr().err
    assert main(["--no-plugin", "sigma-training", "--help"]) == 0
    out = capsys.readouterr().out
    assert "\n  reset " not in out
    assert "\n  relabel " in out


def test_a_mistyped_live_command_has_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["puase"]) == 2
    assert "There is no command 'puase'. Did you mean 'pause'?" in capsys.readouterr().err


def test_a_refused_command_has_the_exit_code_of_its_error(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    serve().refusals["go"] = "nothing is paused."
    assert main(["go"]) == 1
    assert capsys.readouterr() == ("", "nothing is paused.\n")
    assert main(["get", "loss"]) == 2
    assert main(["set", "iteration", "3"]) == 2
    assert "is read-only" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", [["get", "training.loss"], ["watch", "loss"], ["set", "learning_rate", "1"], ["pause"], ["stop"]]
)
def test_a_folder_that_was_moved_while_its_run_trains_is_refused_in_one_sentence(
    serve: Any, tmp_path: Path, given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    view = serve(FakeView(folder=run))
    moved = run.rename(tmp_path / "moved")
    began = time.monotonic()
    assert main([*given, "--run", str(moved)]) == 1
    assert time.monotonic() - began < 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{moved}: was moved or copied from {run} while its run trains")
    assert err.endswith(f"Pass --run {run}, and move the folder once the run has ended.\n")
    assert view.sent == []


def test_several_runs_are_listed_and_nothing_is_done(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    views = [serve(), serve()]
    assert main(["stop"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("fake (process") == 2
    assert [one.sent for one in views] == [[], []]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let the process of the run work in a directory beside that of the shell."""
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(reading_of_protocol, "_working_directory", lambda: str(there))
    return there


def test_a_run_of_another_directory_is_steered_by_its_name_alone(
    serve: Any, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    view = serve()
    assert main(["get", "accuracy"]) == 0, "it can be read"
    for given in (["stop"], ["set", "learning_rate", "1"]):
        assert main(given) == 2
        assert capsys.readouterr().err == (
            f"no run of this directory can be steered. fake (process {os.getpid()}) trains in {elsewhere}. Name it to "
            "steer it: --run fake.\n"
        )
    assert view.sent == []
    assert main(["stop", "--run", "fake"]) == 0
    assert capsys.readouterr().out == f"fake (process {os.getpid()}): stop: trainer at iteration 7, epoch 1\n"


@pytest.mark.parametrize("part", ["", "there", "there/runs"])
def test_a_run_is_near_if_it_lies_below_or_above_the_working_directory(
    serve: Any, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    view = serve()
    (elsewhere / "runs").mkdir()
    monkeypatch.chdir(elsewhere.parent / part)
    assert main(["stop"]) == 0
    assert [ticket.command for ticket in view.sent] == ["stop"]


def test_a_run_of_a_version_that_states_no_directory_is_not_near(
    serve: Any, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    view, hello = serve(), reading_of_protocol.hello

    def older(view: View) -> dict[str, Any]:
        return {name: value for name, value in hello(view).items() if name != "directory"}

    monkeypatch.setitem(reading_of_protocol.READS, "hello", older)
    assert main(["stop"]) == 2
    assert "trains in another directory." in capsys.readouterr().err
    assert view.sent == []


def test_of_several_runs_the_one_of_this_directory_is_meant(
    serve: Any, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path.cwd() / "mine"
    folder.mkdir()
    other, mine = serve(), serve(FakeView(folder=folder))
    assert main(["pause"]) == 0
    assert capsys.readouterr().out.startswith("mine: pause: ")
    assert (len(mine.sent), other.sent) == (1, [])


def test_what_a_command_adds_to_its_row_is_told_to_its_sender(
    serve: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head = {"trainer": "trainer", "iteration": 7, "epoch": 1, "seconds": 0.5, "time": 5.0, "command": "undo"}
    send = FakeView.send

    def note(view: FakeView, command: str, **arguments: Any) -> Ticket:
        view.noted += [
            {**head, "undoes": "set", "to": float("nan"), "who": "Ada", "cause": ""},
            {**head, "iteration": 6, "undoes": "earlier"},
            {**head, "command": "pause", "undoes": "another"},
        ]
        return send(view, command, **arguments)

    monkeypatch.setattr(FakeView, "send", note)
    view = serve()
    view.noted = [{**head, "undoes": "before", "more": 1}]
    assert main(["undo"]) == 0
    assert capsys.readouterr().out.endswith(": undo: trainer at iteration 7, epoch 1, undoes = set, to = nan\n")
    view.noted += [{**head, "undoes": "between", "more": 1}]
    assert main(["undo", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["applied"] == {
        "trainer": {"iteration": 7, "epoch": 1, "row": {"undoes": "set", "to": "nan"}}
    }


def test_a_pattern_of_a_trainer_is_suggested_for_one_that_starts_at_the_root(
    serve: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    serve()
    assert main(["get", "optimiser.*.weights.learning_rate"]) == 2
    assert capsys.readouterr().err == (
        "optimiser.*.weights.learning_rate: matches no value. Did you mean "
        "'trainer.optimiser.*.weights.learning_rate'?\n"
    )


def test_runs_are_listed(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ps"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("No run can be steered.")
    serve()
    assert main(["ps"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["RUN", "STATE", "EPOCH", "ITERATION", "PROCESS"]
    assert row.split()[3:6] == ["running", "3", "120"]
    assert main(["ps", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert (found["name"], found["state"], found["trainers"]["trainer"]["values"]["trainer.validation.accuracy"]) == (
        "fake",
        "running",
        0.75,
    )


def test_workers_of_a_group_have_a_row_each(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    view = serve()
    for number in (10, 2):
        for name, value in {"rate": 1234.5, "shards": 2, "generation": 3, "seen": 0.06}.items():
            view.values[f"trainer.group.{number}.{name}"] = value
    view.values |= {"trainer.group.2.training": 0.5, "trainer.group.mean.rate": 0.5}  # of hooks
    assert main(["ps"]) == 0
    _, _, empty, head, *rows = capsys.readouterr().out.splitlines()
    assert (empty, head.split()) == ("", ["RUN", "WORKER", "ROWS/S", "SHARDS", "GENERATION", "SEEN"])
    assert [row.split()[3:] for row in rows] == [
        [number, "1234", "2", "3", "0.1", "s", "ago"] for number in ("2", "10")
    ]
    assert main(["ps", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    row = {"rate": 1234.5, "shards": 2, "generation": 3, "seen": 0.06}
    assert found["trainers"]["trainer"]["workers"] == {"2": row, "10": row}
    assert main(["get", "trainer.group.10.rate"]) == 0
    assert capsys.readouterr().out.split() == ["trainer.group.10.rate", "1234.5"]


def test_values_are_printed_in_columns(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    serve()
    assert main(["get", "**.loss", "every"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "trainer.training.loss     0.25",
        "trainer.validation.loss   0.5",
        "trainer.hooks.loss.every  1 epoch",
    ]
    assert main(["get", "trainer.epoch*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"trainer.epoch": 3, "trainer.epochs": "inf"}


def test_values_of_training_say_which_they_are(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    view = serve()
    for name, words in {"loss": "Of the last iteration.", "epoch.loss": "Mean of the epoch so far."}.items():
        address = f"trainer.training.{name}"
        view.values[address] = 0.25
        view.entries_of[address] = AddressEntry(address, "number", 0.25, doc=words)
    assert main(["get", "trainer.training.**"]) == 0
    assert {tuple(line.split(maxsplit=2)) for line in capsys.readouterr().out.splitlines()} >= {
        ("trainer.training.loss", "0.25", "of the last iteration"),
        ("trainer.training.epoch.loss", "0.25", "mean of the epoch so far"),
    }
    assert main(["get", "trainer.training.loss", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"trainer.training.loss": 0.25}


def test_a_terminal_gets_lines_of_its_width(
    serve: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    view = serve()
    view.values["trainer." + "long." * 20 + "name"] = "x" * 200
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["get", "**"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("…" in line for line in lines)
    assert any(line.startswith("trainer.optimiser.learning_rate ") and line.endswith(" 0.1") for line in lines)


def test_a_watch_prints_a_line_for_each_change(serve: Any, capsys: pytest.CaptureFixture[str]) -> None:
    serve()
    assert main(["watch", "**.loss", "accuracy", "--count", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "4.5  trainer.training.loss        0.25",
        "4.5  trainer.validation.loss      0.5",
        "4.5  trainer.validation.accuracy  0.75",
    ]
    assert main(["watch", "epochs", "--count", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"second": 4.5, "values": {"trainer.epochs": "inf"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1e-3", 0.001), ("true", True), ("adam", "adam"), ("2 epochs", "2 epochs"), ('"a b"', "a b"),
     ("[1, 2]", [1, 2]), ("-inf", float("-inf")), ("a = 1\nb", "a = 1\nb"), ("1\nb = 2", "1\nb = 2")],
)  # fmt: skip
def test_a_value_is_a_toml_literal_or_a_text(text: str, value: Any) -> None:
    assert literal(text) == value
    assert type(literal(text)) is type(value)


def setting(name: str, type: str = "a value", required: bool = True, choices: Sequence[str] = ()) -> dict[str, Any]:
    return {"name": name, "type": type, "required": required, "choices": choices, "doc": ""}


ROWS = [setting("rows", "a list"), setting("label"), setting("split", "a string", required=False)]
COUNT = [setting("count", required=False), setting("scale", "a string", False, ["epoch"])]


@pytest.mark.parametrize(
    ("settings", "texts", "fields"),
    [
        (ROWS, ["3", "5-7", "0", "cat"], {"rows": [3, 5, 6, 7, 0], "label": "cat"}),
        (ROWS, ["3", "4"], {"rows": [3], "label": 4}),
        (ROWS, ["3", "4", "label=cat"], {"rows": [3, 4], "label": "cat"}),
        (ROWS, ["cat", "rows=[1, 2]", "split=1"], {"rows": [1, 2], "label": "cat", "split": "1"}),
        (COUNT, ["2", "epochs"], {"count": 2, "scale": "epoch"}),
        (COUNT, ["2", "scale=epochs"], {"count": 2, "scale": "epoch"}),
        (COUNT, ["2", "hours"], {"count": 2, "scale": "hours"}),
        (COUNT, ["a=b"], {"count": "a=b"}),
        (COUNT, [], {}),
    ],
)
def test_values_are_bound_to_the_fields_of_a_command(
    settings: list[dict[str, Any]], texts: list[str], fields: dict[str, Any]
) -> None:
    assert live.bind_texts("a", settings, texts) == fields


def test_a_value_too_many_is_refused_with_what_a_command_takes() -> None:
    with pytest.raises(SigmaConfigError, match=r"^a: takes \[COUNT\] \[SCALE\]\. Leave out what .* that: '4 5'\.$"):
        live.bind_texts("a", COUNT, ["2", "epochs", "4", "5"])
    with pytest.raises(SigmaConfigError, match="^pause: takes no values"):
        live.bind_texts("pause", [], ["now"])


def test_values_are_shown_on_one_line() -> None:
    array = {"shape": [3, 2], "dtype": "float32", "low": -1.0, "high": 2.0, "mean": 0.5, "deviation": 1.0}
    assert show({"array": array}) == "3 x 2 float32, -1 to 2, mean 0.5"
    assert show({"array": {"shape": [], "dtype": "<U3"}}) == "one <U3"
    assert [show(value) for value in (True, 0.1 + 0.2, 7, "a", None)] == ["true", "0.3", "7", "a", ""]


def test_control_characters_of_names_and_values_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    columns([("a\x1b[2J", "b\x9b"), ("\u202ename", "value")])
    print_moments("set \x07", "run", {"tr\x1bainer": {"iteration": 1, "epoch": 0}}, False)
    out = capsys.readouterr().out
    assert out.splitlines() == [
        "a\\u001b[2J  b\\u009b",
        "\\u202ename  value",
        "run: set \\u0007: tr\\u001bainer at iteration 1, epoch 0",
    ]
