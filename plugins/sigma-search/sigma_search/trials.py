"""The trials of a search as members of a study: proposed, compared with earlier ones, repeated, told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from sigma_kernel.errors import SigmaConfigError
from sigma_run.study import LOST, Member, Study
from sigma_search.protocol import FAILED, Outcome, Protocol
from sigma_search.pruning import describe_rule, find_bounds
from sigma_search.results import inline, read_outcome, read_values
from sigma_search.sampling import propose
from sigma_search.settings import SearchSettings

COUNTED = ("finished", "stopped", "pruned")


@define(eq=False)
class TrialQueue:
    """A queue of members that the outcomes of earlier ones add.

    ``hook`` is the key of the hook of trials, such as ``hooks.trial``, and ``address`` that of its value.
    """

    folder: Path
    settings: SearchSettings
    seed: int
    hook: str
    address: str
    protocol: Protocol
    members: dict[int, Member] = field(factory=dict)

    def take(self) -> Member | None:
        """Return the next trial, or one to be repeated."""
        if (number := self.protocol.next_number()) is None:
            return None
        if number not in self.members:
            self.members[number] = self.plan(number)
        self.protocol = self.protocol.begin(number)
        return self.members[number]

    def plan(self, number: int) -> Member:
        """Return a trial with the values that it is asked for, and what it is compared with."""
        outcomes = self.protocol.outcomes_for(number)
        before = [read_values(self.members[earlier], (*self.settings.space,)) for earlier in range(number)]
        pairs = list(zip(before, outcomes, strict=False))
        values = propose(self.settings, self.seed, number, pairs, before[len(outcomes) :])
        overrides = (*(f"{address}={inline(value)}" for address, value in values.items()), self._assign_hook(outcomes))
        return Member(folder=str(number), overrides=overrides)

    def _assign_hook(self, outcomes: list[Outcome]) -> str:
        """Return the assignment of the hook of a trial, to record its values and to prune it."""
        settings: dict[str, Any] = {"type": "sigma-search:trial", "value": self.address}
        settings["maximise"] = self.settings.maximise is not None
        if (pruning := self.settings.prune) is not None:
            settings["every"] = str(pruning.every)
            settings["start"] = f"after {inline(pruning.first_count)} {pruning.from_.scale.value}s"
            settings["best"] = pruning.type == "median"
            settings["rule"] = describe_rule(pruning)
            settings["bounds"] = find_bounds(pruning, outcomes, settings["maximise"])
        return f"{self.hook}={inline(settings)}"

    def settle(self, member: Member) -> Member:
        """Tell the protocol the results of a trial; return what is kept of them."""
        number = int(member.folder)
        if member.status in (LOST, FAILED):
            return self._repeat(number, member)
        self.protocol = self.protocol.end(
            number, read_outcome(self.folder / member.folder, member, self.settings.value)
        )
        self.members[number] = member
        return member

    def _repeat(self, number: int, member: Member) -> Member:
        self.protocol = self.protocol.lose(number)
        tried = self.protocol.tried[number]
        is_over = number in self.protocol.told
        why = member.why or (f"its process was lost, {tried} times in all" if is_over else "")
        self.members[number] = evolve(member, status=FAILED if is_over else member.status, attempts=tried, why=why)
        return self.members[number]


def reopen_trials(queue: TrialQueue, study: Study) -> TrialQueue:
    """Return a queue that goes on with the trials of a study: those that have not ended are repeated first."""
    members = {int(member.folder): member for member in study.members}
    protocol = evolve(queue.protocol, asked=len(members))
    for number, member in members.items():
        if member.status == "running":
            raise SigmaConfigError(f"{queue.folder / member.folder}: another process trains it. Wait for it.")
        if member.status in COUNTED:
            outcome = read_outcome(queue.folder / member.folder, member, queue.settings.value)
            protocol = protocol.end(number, outcome)
        elif member.status == FAILED and member.attempts >= protocol.attempts:
            protocol = protocol.end(number, Outcome(FAILED))
        else:
            tried = {**protocol.tried, number: member.attempts} if member.attempts else protocol.tried
            protocol = evolve(protocol, again=protocol.again | {number}, tried=tried)
    return evolve(queue, protocol=protocol, members=members)
