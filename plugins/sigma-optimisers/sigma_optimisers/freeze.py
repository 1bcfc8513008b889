"""Freeze parameters by pattern."""

from __future__ import annotations

from attrs import frozen

from sigma_kernel import CommandedRun, CommandPlan, PatternCommand, SigmaAddressError

HEAD = "network.layers."
FLAGS = ("optimiser.**.frozen", "optimisers.*.**.frozen")


def find_flags(run: CommandedRun, command: str, pattern: str) -> list[str]:
    """Return the addresses that freeze the parameters that a pattern matches; raise SigmaAddressError if none does."""
    parameters = [name.removeprefix(HEAD) for name in run.addresses(pattern) if name.startswith(HEAD)]
    endings = tuple(f".{name}.frozen" for name in parameters)
    matches = [flag for flags in FLAGS for flag in run.addresses(flags) if endings and flag.endswith(endings)]
    if not matches:
        raise SigmaAddressError(
            f"{run.name}: {command}: {pattern} matches no parameter that is trained. Write such as {HEAD}1-dense.*."
        )
    return matches


@frozen
class Freeze(PatternCommand):
    """Freeze parameters: they have no gradient, and neither they nor their slots are updated."""

    command = "freeze"

    def plan(self, run: CommandedRun) -> CommandPlan:
        """Set the flags of the parameters, without which the step is compiled."""
        return CommandPlan(run.with_values(dict.fromkeys(find_flags(run, self.command, self.pattern), True)))
