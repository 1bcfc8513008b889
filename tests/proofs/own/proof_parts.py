"""Parts of the recorded runs that no plugin offers; their configurations name this module, which keeps its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Monitor, Operator, View, Work

SCRIPT: dict[int, Callable[[], Any]] = {}  # what a person does at iterations, each once; empty but while it is recorded
PRESENT: list[str] = []  # not empty while somebody attends a run that may fail


@define(eq=False)
class Steered(Operator):
    """Train iteration by iteration, and let a script send commands in between, as a person would."""

    def train(self, work: Work) -> None:
        while work.boundary():
            if act := SCRIPT.pop(work.moment.iteration, None):
                act()
            else:
                work.advance(1)
                work.settle()


@define(eq=False, kw_only=True)
class Says(Hook):
    """Send commands at iterations.

    Args:
        plan: Rows ``part iteration command {arguments}``; those of the part of the run in which it is are sent.
    """

    every: TimeStep = every(1, "iteration")
    plan: Sequence[str] = field(factory=tuple)

    @property
    def settable(self) -> Mapping[str, float]:
        return {"says.part": 0.0}  # set after a rewind, so that the same commands are not sent again

    @property
    def reads(self) -> Sequence[str]:
        return ["says.part"]

    def fire(self, context: HookContext) -> None:
        here = (int(context.read("says.part")), context.moment.iteration)  # before commands that lead elsewhere
        for row in self.plan:
            wanted, iteration, command, arguments = row.split(" ", 3)
            if (int(wanted), int(iteration)) == here:
                context.command(command, **json.loads(arguments))


@define(eq=False, kw_only=True)
class Remembers(Hook):
    """Publish the mean of what another trainer publishes, remembered from firing to firing."""

    every: TimeStep = every(2, "iteration")
    of: str
    to: str

    @property
    def reads(self) -> Sequence[str]:
        return [self.of]

    @property
    def writes(self) -> Sequence[str]:
        return [self.to]

    def fire(self, context: HookContext) -> None:
        seen = context.memory.setdefault("seen", [])
        if (value := context.read(self.of)) is not None:
            seen.append(value)
        context.publish(self.to, sum(seen) / max(len(seen), 1))
        if len(seen) == 4:
            context.command("set", pattern="optimiser.learning_rate", value=0.01 / (1 + seen[-1]))


@define(eq=False, kw_only=True)
class Clock(Hook):
    """Change the learning rate by what the wall clock shows, and end training after a number of firings."""

    every: TimeStep = every(0.002, "second")
    ends = True

    def fire(self, context: HookContext) -> None:
        fired = context.memory["fired"] = context.memory.get("fired", 0) + 1
        if fired <= 4:
            context.command("set", pattern="optimiser.learning_rate", value=0.01 + context.moment.second / 1000)
        if fired == 8:
            context.command("stop")


@define(eq=False)
class Visitor(Monitor):
    """Attend a run that may fail."""

    def watch(self, view: View) -> None:
        view.over.wait()

    def is_attended(self) -> bool:
        return bool(PRESENT)
