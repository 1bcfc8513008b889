"""A new command is one file: a class that the record of a plugin names."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs
import pytest

from sigma_kernel.clock import after
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_kernel.plugins import catalogue as plugins
from sigma_kernel.plugins.kinds import problems
from sigma_kernel.views import EnvironmentView
from sigma_run.launcher import main
from sigma_testing.doing import Do
from sigma_testing.steering import Sweep, small_environment, state_bytes
from sigma_training.plugin import COMMANDS

RATE = "trainer.optimiser.learning_rate"
DAMP = '''"""Multiply values by a factor."""

from attrs import field, frozen

from sigma_kernel import CommandedRun, CommandPlan, PatternCommand
from sigma_kernel.settings import gt


@frozen
class Damp(PatternCommand):
    """Multiply the values that match by a factor.

    Args:
        factor: The factor.
    """

    command = "acme-damper:damp"
    factor: float = field(default=0.5, validator=gt(0))

    def plan(self, run: CommandedRun) -> CommandPlan:
        values = {address: run.get(address) * self.factor for address in run.addresses(self.pattern)}
        return CommandPlan(run.with_values(values))
'''


@pytest.fixture
def damper(distribution: Callable[..., Any]) -> None:
    record = '"command", "damp", "acme_damper.damp:Damp", "Multiply values by a factor."'
    plugin = distribution("acme-damper", record, damp=DAMP)
    assert plugin.state == "ready", plugin.reason


def trained(folder: Path | None = None, **settings: Any) -> Environment:
    sigma = small_environment(Sweep(), **settings)
    sigma.folder = folder
    sigma.trainer("trainer").fit(iterations=3)
    return sigma


def test_it_is_sent_by_name_and_undone(damper: None) -> None:
    with trained() as sigma:
        assert sigma.send("damp", pattern="**.learning_rate")["trainer"].iteration == 3
        assert sigma.get(RATE) == 0.025
        sigma.send("acme-damper:damp", pattern="optimiser.learning_rate", factor=2.0, trainer="trainer")
        assert sigma.get(RATE) == 0.05
        sigma.undo()
        assert sigma.get(RATE) == 0.025
        for wrong, message in (({"factor": 0}, "factor: must be more than 0"), ({"factr": 1}, "has no 'factr'")):
            with pytest.raises(SigmaStateError, match=message):
                sigma.send("damp", pattern=RATE, **wrong)
        assert sigma.get(RATE) == 0.025


def test_a_hook_sends_it(damper: None) -> None:
    hook = Do(
        does=lambda context: context.command("damp", pattern="optimiser.learning_rate"), every=after(2, "iteration")
    )
    with trained(hooks={"damp": hook}) as sigma:
        assert sigma.get(RATE) == 0.025


def test_the_journal_holds_its_full_name_and_is_replayed_and_resumed(damper: None, tmp_path: Path) -> None:
    with trained(tmp_path) as sigma:
        sigma.send("damp", pattern="**.learning_rate")
        sigma.trainer("trainer").fit(iterations=3)
        run, expected = sigma.run_folder, state_bytes(sigma.trainer("trainer"))
    assert run is not None
    rows = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    (row,) = [row for row in rows if row.get("command") == "acme-damper:damp"]
    assert (row["pattern"], row["factor"]) == ("**.learning_rate", 0.5)
    with small_environment(Sweep()) as again:
        assert again.replay(run)[1] == {}
        assert state_bytes(again.trainer("trainer")) == expected
        assert again.get(RATE) == 0.025


def test_without_its_plugin_a_run_is_refused_where_the_command_would_be_applied(
    damper: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trained(tmp_path) as sigma:
        sigma.send("damp", pattern="**.learning_rate")
        sigma.trainer("trainer").fit(iterations=3)
        run = sigma.run_folder
    assert run is not None
    monkeypatch.setenv(plugins.DISABLE, "acme-damper")
    plugins._catalogue.cache_clear()
    why = r"journal\.jsonl: iteration 3 .*: command 'damp'.*acme-damper.*Install the plugin that offered this command"
    with small_environment(Sweep()) as again, pytest.raises(SigmaCheckpointError, match=why):
        again.replay(run)


@pytest.mark.rooms
def test_the_protocol_lists_and_sends_it(damper: None) -> None:
    protocol = pytest.importorskip("sigma_monitor_control.protocol")

    with trained() as sigma:
        conversation = protocol.Conversation(EnvironmentView(sigma, threading.Event()))

        def ask(**request: Any) -> Any:
            lines = conversation.receive(json.dumps({"id": 1, **request}))
            while not any("result" in line for line in lines):
                lines = conversation.answers()
            return json.loads(lines[-1])["result"]

        (about,) = [one for one in ask(do="commands") if one["name"] == "acme-damper:damp"]
        assert about["undoable"]
        assert [one["name"] for one in about["settings"]] == ["pattern", "factor"]
        found = ask(do="command", name="damp", arguments={"pattern": "learning_rate", "factor": 0.1})
        assert found["state"] == "applied"
        assert sigma.get(RATE) == pytest.approx(0.005)


@pytest.mark.rooms
def test_the_shell_derives_a_verb_from_it(
    damper: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    live = pytest.importorskip("sigma_monitor_control.commands.live")
    sent: list[Any] = []

    class Client(nullcontext[Any]):
        title = "a run"

        def __enter__(self) -> Client:
            return self

        def send(self, command: str, trainer: str | None, **fields: Any) -> dict[str, Any]:
            sent.append((command, trainer, fields))
            return {}

    monkeypatch.setattr(live, "connect_to_steer", lambda run: Client())
    assert main(["damp", "--help"]) == 0
    assert "sigma damp [OPTIONS] PATTERN [FACTOR]\n\n  Multiply values by a factor.\n" in capsys.readouterr().out
    assert main(["damp", "**.learning_rate", "0.1"]) == 0
    assert main(["acme-damper:damp", "factor=2", "**.learning_rate", "--trainer", "trainer"]) == 0
    assert main(["send", "damp", "**.learning_rate"]) == 0
    assert sent == [
        ("acme-damper:damp", None, {"pattern": "**.learning_rate", "factor": 0.1}),
        ("acme-damper:damp", "trainer", {"pattern": "**.learning_rate", "factor": 2}),
        ("acme-damper:damp", None, {"pattern": "**.learning_rate"}),
    ]


def test_a_name_of_the_kernel_means_its_own_command_whatever_plugins_offer(distribution: Callable[..., Any]) -> None:
    distribution("acme-damper", '"command", "set", "acme_damper.damp:Damp", "Set nothing."', damp=DAMP)
    with trained() as sigma:
        sigma.set(RATE, 0.5)
        assert sigma.get(RATE) == 0.5


def test_a_command_is_refused_whose_name_in_the_journal_would_not_find_it(distribution: Callable[..., Any]) -> None:
    plugin = distribution(
        "acme-damper", '"command", "damp", "acme_damper.damp:Damp", "Multiply."', damp=DAMP.replace("-damper:", ":")
    )
    (why,) = problems(plugin.components)
    assert why == (
        "command 'acme-damper:damp': journals would hold it as 'acme:damp', by which it is not found. Write command = "
        "'acme-damper:damp' in acme_damper.damp:Damp."
    )


# -- the commands of the kernel ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_method_of_the_environment_takes_the_fields_of_its_command(name: str) -> None:
    made: Any = plugins.catalogue().load("command", name)
    fields = {one.name: one.default for one in attrs.fields(made) if one.name not in made.by_hand}
    given = dict(inspect.signature(getattr(Environment, name)).parameters)
    del given["self"]
    given.pop("trainer", None)
    assert given.keys() == fields.keys()
    for field, default in fields.items():
        expected = inspect.Parameter.empty if default is attrs.NOTHING else default
        assert given[field].default == expected, field
