"""Set values by address."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from attrs import field, frozen

from sigma_kernel.arrays import as_numpy
from sigma_kernel.contracts.commanding import Command, CommandedRun, CommandPlan, CommandTarget, PatternCommand
from sigma_kernel.registry.registry import Registry


def _to_plain(value: Any) -> Any:
    """Return an array of another library as the journal holds it; one that cannot be read is left to be refused."""
    with suppress(TypeError, RuntimeError, BufferError):
        if hasattr(value, "__dlpack__"):
            array = as_numpy(value)
            return array if array.ndim else array.item()
    return value


@frozen
class Set(PatternCommand):
    """Set the values that an address or a pattern matches.

    These are rates, parameters, whether they are frozen, intervals of hooks, the batch size, the number of epochs.

    Args:
        value: The value.
    """

    command = "set"
    value: Any = field(converter=_to_plain)

    def check(self, run: CommandedRun) -> None:
        """Check the value, and compile for a new batch size."""
        run.internals.check_values({self.pattern: self.value})

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Set the values."""
        return CommandPlan(run.with_values({self.pattern: self.value}))

    def for_trainers(self, root: Registry, trainers: Mapping[str, CommandTarget]) -> Mapping[str, Command]:
        """Return the command of each trainer; values that belong to none are set at once."""
        for address in root.check(self.pattern, self.value):
            if address.partition(".")[0] not in trainers:
                root.set(address, self.value)
        return super().for_trainers(root, trainers)
