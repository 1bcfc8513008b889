"""Write a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import field, frozen

from sigma_kernel import settings
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandEffects, CommandPlan
from sigma_kernel.contracts.storing import NAMED
from sigma_kernel.errors import SigmaStateError

STATE = settings.must(
    lambda name: name == "" or (re.fullmatch(r"[A-Za-z][\w+-]*+", str(name), re.A) and name not in ("best", "newest")),
    "a name of letters, digits, - and _, other than best and newest, that begins with a letter",
)
NUMBER = settings.must(lambda x: isinstance(x, int | float) and not isinstance(x, bool), "a number")  # or infinite, NaN


@frozen
class Save(Command):
    """Write a checkpoint; one that a person asks for is never removed by hooks.

    Args:
        cause: Why, unless a person asked for it.
        score: Its rank for retention of the best.
        keep: Whether it is exempt from removal.
        name: The name of the state, by which it is found again; a named state is never removed.
        note: A remark on it.
    """

    command = "save"
    undoable = False
    by_hand: ClassVar[Mapping[str, Any]] = {"cause": "", "score": None, "keep": True}
    cause: str = ""
    score: float | None = field(default=None, validator=settings.optional(NUMBER))
    keep: bool = False
    name: str = field(default="", validator=STATE)
    note: str = field(default="", validator=settings.instance_of(str, "a text"))

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Leave the run as it is; the row is written with the checkpoint."""
        if not run.internals.checkpoints.can_save:
            raise SigmaStateError("save: this environment has no folder. Give it one: Environment(..., folder='runs').")
        if self.name:
            run.internals.checkpoints.check_free(self.name)
        return CommandPlan(run, row=None)

    def to_row(self) -> dict[str, Any]:
        """Return its row, without what older journals do not hold either."""
        return {name: value for name, value in super().to_row().items() if value or name not in NAMED}

    def act(self, effects: CommandEffects, before: CommandedRun, at: int) -> None:
        """Write the checkpoint."""
        effects.save(self)
