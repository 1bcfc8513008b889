"""A command is checked in the thread of its sender while training goes on: it must not mix parts of two moments."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define, evolve, field

from sigma_curation.commands import Exclude
from sigma_kernel.clock import every
from sigma_kernel.contracts.commanding import Command
from sigma_kernel.errors import SigmaStateError
from sigma_testing.doing import Do
from sigma_testing.steering import Sweep, small_environment
from sigma_training.commands.attach import Attach
from sigma_training.commands.detach import Detach
from sigma_training.commands.set import Set
from sigma_training.commands.undo import Undo
from sigma_training.session.current import CurrentRun


@define
class Moving:
    """A current run in which training would go on between any two readings."""

    current: CurrentRun
    readings: list[str] = field(factory=list)

    def __getattr__(self, name: str) -> Any:
        if name in ("present", "setup", "state", "progress", "moment"):
            self.readings.append(name)
        return getattr(self.current, name)


@pytest.mark.parametrize(
    "command",
    [
        Set("batch_size", 7),
        Set("epochs", 9),
        Exclude([1, 2]),
        Attach("other", {"type": "stop", "when": "iteration reaches 9"}),
        Detach("it"),
    ],
    ids=["batch_size", "epochs", "exclude", "attach", "detach"],
)
def test_a_command_is_checked_against_one_reading_of_the_run(command: Command) -> None:
    with small_environment(Sweep(), hooks={"it": Do(does=lambda _: None, every=every(1, "epoch"))}) as sigma:
        sigma.prepare()
        commands = sigma.trainer("trainer").session.commands
        moving = Moving(commands.current)
        evolve(commands, current=moving).check(command)
        assert moving.readings == ["present"]


def test_a_command_that_cannot_be_undone_is_refused_by_one_reading_of_the_run() -> None:
    with small_environment(Sweep()) as sigma:
        sigma.prepare()
        commands = sigma.trainer("trainer").session.commands
        moving = Moving(commands.current)
        with pytest.raises(SigmaStateError, match="there is nothing to undo"):
            evolve(commands, current=moving).check(Undo())
        assert moving.readings == ["present"]
