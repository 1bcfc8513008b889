"""Undo the last command."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan, CommandTarget
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.registry.registry import Registry
from sigma_training.session.planning import PlannedRun
from sigma_training.session.undo import check_undoable, restore_former


@frozen
class Undo(Command):
    """Undo the last command from outside that changed values, components or rows."""

    command = "undo"
    undoable = False

    def check(self, run: CommandedRun) -> None:
        """Check that there is one."""
        now: PlannedRun = run.internals
        check_undoable(now.name, now.present.state)

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Restore the former components, then the former values."""
        now: PlannedRun = run.internals
        entry = check_undoable(now.name, now.present.state)
        former = now.with_changes(entry["changes"]).present
        there = now.present.setup.order.hooks
        return CommandPlan(
            now.with_present(former.with_state(restore_former(former.state, former.setup, entry, there))),
            {"undoes": entry["command"]},
        )

    def for_trainers(self, root: Registry, trainers: Mapping[str, CommandTarget]) -> Mapping[str, Command]:
        """Return it for the trainer with something to undo, or for all if none has.

        Raises SigmaStateError if several have, as the order of their commands is unknown.
        """
        names = [name for name, target in trainers.items() if target.can_undo]
        if len(names) > 1:
            raise SigmaStateError(f"undo: {', '.join(names)} have something to undo. Name one: undo(trainer='...').")
        return dict.fromkeys(names or trainers, self)
