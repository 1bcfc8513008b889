"""The suite of commands fails for planted faults, and passes commands of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import frozen

from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan, CommandTarget, PatternCommand
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.registry.registry import Registry
from sigma_testing import CommandSuite

from .faults import check_fails

RATE = "optimiser.learning_rate"


@frozen
class Halve(PatternCommand):
    """Halve values."""

    command = "set"  # so that the catalogue knows it; the suites of plugins check the name

    def plan(self, run: CommandedRun) -> CommandPlan:
        return CommandPlan(run.with_values({one: run.get(one) / 2 for one in run.addresses(self.pattern)}))


@frozen
class Wordless(Halve):
    pattern: str
    times: int = 1


@frozen
class Forgets(Halve):
    """Hold less in the journal than it is."""

    times: int = 2

    def to_row(self) -> dict[str, Any]:
        return {"command": self.command, "pattern": self.pattern}


@frozen
class Impure(Halve):
    """Change the run while it plans."""

    def plan(self, run: CommandedRun) -> CommandPlan:
        run.internals.present.state.memory["slow"]["hook"]["seen"] = True
        return super().plan(run)


@frozen
class Idle(Halve):
    """Change nothing."""

    def plan(self, run: CommandedRun) -> CommandPlan:
        return CommandPlan(run)


@frozen
class Careless(Halve):
    """Change the run before it is refused."""

    def plan(self, run: CommandedRun) -> CommandPlan:
        run.internals.present.state.memory["slow"]["hook"]["seen"] = True
        return CommandPlan(run.with_values({RATE: -1.0}))


COUNT = iter(range(1, 1000))


@frozen
class Moody(Halve):
    """Depend on what is in no journal."""

    def plan(self, run: CommandedRun) -> CommandPlan:
        return CommandPlan(run.with_values({RATE: 0.01 * next(COUNT)}))


@frozen
class Nobodys(Halve):
    """Concern no trainer, unless it is named."""

    def for_trainers(self, root: Registry, trainers: Mapping[str, CommandTarget]) -> Mapping[str, Command]:
        return {}


FAULTS: dict[Command, str] = {
    Wordless(RATE): "test_it_describes_itself_and_each_of_its_fields",
    Forgets(RATE, 3): "test_the_journal_holds_all_of_it",
    Impure(RATE): "test_planning_changes_nothing",
    Idle(RATE): "test_undo_restores_the_run",
    Careless(RATE): "test_a_mistake_is_refused_and_changes_nothing",
    Nobodys(RATE): "test_sent_without_a_trainer_it_does_the_same",
    Moody(RATE): "test_a_replay_of_the_journal_gives_the_same_bits",
}


def suite_of(made: Command) -> CommandSuite:
    class Suite(CommandSuite):
        def make(self) -> Command:
            return made

        def mistakes(self) -> list[Command]:
            return [made]

    return Suite()


@pytest.mark.parametrize("made", FAULTS, ids=lambda made: type(made).__name__)
def test_a_fault_in_a_command_is_caught(made: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Catalogue.load

    def find(self: Catalogue, of: str, name: str) -> Any:
        return type(made) if (of, name) == ("command", "set") else load(self, of, name)

    monkeypatch.setattr(Catalogue, "load", find)
    check_fails(suite_of(made), FAULTS[made])
