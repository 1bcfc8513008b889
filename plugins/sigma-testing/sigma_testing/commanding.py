"""Conformance suite for commands, live changes of a run, to inherit in a plugin's tests.

::

    class TestFreeze(CommandSuite):
        def make(self) -> Command:
            return Freeze("network.layers.**")
"""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest

from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, PatternCommand
from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaError
from sigma_testing.hooks import small_classifier
from sigma_testing.steering import Slow, Sweep, decisive
from sigma_testing.suite import Suite, alike

FEW = 3  # iterations before and after the command


class CommandSuite(Suite):
    """Conformance tests of a command: inherit, and override :meth:`make`; also :meth:`environment` for another network.

    The command is sent to the trainer of the environment after three iterations. One that is ``undoable``, as commands
    are by default, has to change it then; one with ``undoable = False`` need not, such as one that only notes something
    in the journal. One that ``concerns`` training in progress is only made, checked and sent.
    """

    @abstractmethod
    def make(self) -> Command:
        """Return the command under test, with arguments that fit the environment; its addresses start at a trainer."""

    def mistakes(self) -> Sequence[Command]:
        """Return commands that must be refused; none by default."""
        return ()

    def environment(self) -> Environment:
        """Return an environment with a trainer called ``trainer``."""
        return small_classifier(Sweep(), hooks={"slow": Slow()})

    def prepare(self, environment: Environment) -> None:
        """Send commands that it needs to come before it; none by default."""
        return

    def send(self, environment: Environment, command: Command) -> None:
        """Send a command to the trainer, as people do."""
        row = command.to_row()
        environment.send(row.pop("command"), trainer="trainer", **row)

    def send_from_root(self, environment: Environment, command: Command) -> None:
        """Send a command to all trainers that it concerns, as a shell does; a pattern then begins with the trainer."""
        row = command.to_row()
        if isinstance(command, PatternCommand) and not command.pattern.startswith("**"):
            row["pattern"] = f"trainer.{command.pattern}"
        environment.send(row.pop("command"), **row)

    @contextmanager
    def begin_training(self) -> Iterator[Environment]:
        """Begin training inside, so that the command is legal."""
        concerns = self.make().concerns
        with TemporaryDirectory() as folder, warnings.catch_warnings(), self.environment() as environment:
            warnings.simplefilter("ignore")
            environment.folder = Path(folder)
            environment.trainer("trainer").fit(iterations=FEW)
            self.prepare(environment)
            if concerns:
                environment.run_async()
            if concerns and "running" not in concerns:
                environment.pause()
            yield environment
            environment.stop()

    def use(self) -> None:
        """Make it, and send it once."""
        with self.begin_training() as environment:
            self.send(environment, self.make())

    def test_it_describes_itself_and_each_of_its_fields(self) -> None:
        """Write a docstring of a sentence, with the fields below a line `Args:`."""
        cls = type(self.make())
        first = (cls.__doc__ or "").strip().partition("\n")[0]
        assert first.endswith("."), f"the first line of the docstring of {cls.__name__} is not a sentence"
        lacking = [field.name for field in attrs.fields(cls) if field.name not in settings.read_docs(cls)]
        assert not lacking, f"Args: lacks {', '.join(lacking)}"

    def test_the_journal_holds_all_of_it(self) -> None:
        """Declare fields of plain JSON values, and convert others."""
        command = self.make()
        row = json.loads(json.dumps(command.to_row(), allow_nan=False))
        assert row.pop("command") == command.command
        again = type(command)(**row)
        assert again == command, f"the journal holds {again!r}"

    def test_planning_changes_nothing(self) -> None:
        """Return another run from plan(), and leave its argument unchanged."""
        with self.begin_training() as environment:
            session = environment.trainer("trainer").session
            if self.make().concerns:
                return
            before = decisive(environment.trainer("trainer"))
            session.commands.plan(self.make())
            assert alike(decisive(environment.trainer("trainer")), before), "plan() changed the run"

    def test_undo_restores_the_run(self) -> None:
        """Change the run through its methods alone; if undo cannot restore it, declare undoable = False."""
        if self.make().concerns or not self.make().undoable:
            return
        with self.begin_training() as environment:
            trainer = environment.trainer("trainer")
            before = decisive(trainer)
            self.send(environment, self.make())
            assert not alike(_without_undo(decisive(trainer)), _without_undo(before)), "it changed nothing"
            environment.undo()
            assert alike(_without_undo(decisive(trainer)), _without_undo(before)), "undo does not restore the run"

    def test_sent_without_a_trainer_it_does_the_same(self) -> None:
        """Return the command of each trainer from for_trainers(); inherit PatternCommand if it has a pattern."""
        if self.make().concerns:
            return
        states = []
        for send in (self.send, self.send_from_root):
            with self.begin_training() as environment:
                send(environment, self.make())
                states.append(_without_undo(decisive(environment.trainer("trainer"))))
        assert alike(*states), "it does something else, or nothing, if it is sent without a trainer"

    def test_a_mistake_is_refused_and_changes_nothing(self) -> None:
        """Raise a SigmaError in check() or plan(), before anything is changed."""
        with self.begin_training() as environment:
            for wrong in self.mistakes():
                before = decisive(environment.trainer("trainer"))
                with pytest.raises(SigmaError):
                    self.send(environment, wrong)
                assert alike(decisive(environment.trainer("trainer")), before), f"{wrong} changed the run"

    def test_a_replay_of_the_journal_gives_the_same_bits(self) -> None:
        """Depend on the fields and the run alone: neither on time nor on other state."""
        if self.make().concerns:
            return
        with self.begin_training() as environment:
            self.send(environment, self.make())
            environment.trainer("trainer").fit(iterations=FEW)
            assert environment.run_folder is not None
            with self.environment() as again:
                _, differences = again.replay(environment.run_folder, progress=False)
            assert differences == {}, "; ".join(differences.values())


def _without_undo(state: tuple[dict[str, bytes], dict[str, Any]]) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return a state without what undo itself keeps, which grows."""
    arrays, values = state
    kept = {name: value for name, value in arrays.items() if not name.startswith("undo.")}
    return kept, {name: value for name, value in values.items() if name != "undo"}
