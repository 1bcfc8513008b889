"""Each command of the trainer passes the suite of commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigma_kernel.contracts.commanding import Command
from sigma_kernel.environment import Environment
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_testing import CommandSuite
from sigma_training.commands.attach import Attach
from sigma_training.commands.detach import Detach
from sigma_training.commands.go import Go
from sigma_training.commands.pause import Pause
from sigma_training.commands.reset import Reset
from sigma_training.commands.rewind import Rewind
from sigma_training.commands.save import Save
from sigma_training.commands.set import Set
from sigma_training.commands.step import StepBy
from sigma_training.commands.stop import StopTraining
from sigma_training.commands.swap import Swap
from sigma_training.commands.undo import Undo

RATE = "optimiser.learning_rate"


class TestSet(CommandSuite):
    def make(self) -> Command:
        return Set(RATE, 0.25)

    def mistakes(self) -> Sequence[Command]:
        return [Set(RATE, -1.0), Set("optimiser.learning_rat", 0.1), Set("iteration", 3)]


class TestPause(CommandSuite):
    def make(self) -> Command:
        return Pause()


class TestGo(CommandSuite):
    def make(self) -> Command:
        return Go()


class TestStepBy(CommandSuite):
    def make(self) -> Command:
        return StepBy(2)


class TestStopTraining(CommandSuite):
    def make(self) -> Command:
        return StopTraining()


class TestReset(CommandSuite):
    def make(self) -> Command:
        return Reset()


class TestUndo(CommandSuite):
    def make(self) -> Command:
        return Undo()

    def prepare(self, environment: Environment) -> None:
        environment.set(f"trainer.{RATE}", 0.5)


class TestDetach(CommandSuite):
    def make(self) -> Command:
        return Detach("slow")

    def mistakes(self) -> Sequence[Command]:
        return [Detach("fast")]


class TestAttach(CommandSuite):
    def make(self) -> Command:
        return Attach("end", {"type": "stop", "when": "epoch reaches 90"})

    def mistakes(self) -> Sequence[Command]:
        return [Attach("a.b", "loss"), Attach("slow", "loss")]


class TestSwap(CommandSuite):
    def make(self) -> Command:
        return Swap("optimiser", {"type": "adam", "learning_rate": 0.01})

    def mistakes(self) -> Sequence[Command]:
        return [Swap("optimiser", "sequential"), Swap("optimisers.head", "adam")]


class TestRewind(CommandSuite):
    def make(self) -> Command:
        return Rewind(4)

    def prepare(self, environment: Environment) -> None:
        environment.trainer("trainer").fit(epochs=1)  # at its end, a state is kept


class TestSave(CommandSuite):
    def make(self) -> Command:
        return Save(keep=True)


def test_every_command_of_the_trainer_has_a_suite() -> None:
    made: set[Any] = {type(suite().make()) for suite in CommandSuite.__subclasses__() if suite.__module__ == __name__}
    own = [record for record in catalogue().components("command") if record.distribution == "sigma-training"]
    assert made == {load(record) for record in own}
