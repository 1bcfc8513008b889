"""Profile training: time spent in bursts, data, hooks and evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext

PHASES = ("burst", "data", "hooks", "evaluation")


@define(eq=False, kw_only=True)
class PhaseTime(Hook):
    """Publish ``phase_time.<phase>``, the seconds spent in each phase since the last firing.

    Phases are ``burst`` (training steps), ``data`` (waiting for data), ``evaluation``, and ``hooks`` (without
    evaluation).
    """

    every: TimeStep = every(1, "epoch")

    timed = True

    @property
    def reads(self) -> Sequence[str]:
        """Return the seconds of all phases since the start."""
        return [f"phases.{phase}" for phase in PHASES]

    @property
    def writes(self) -> Sequence[str]:
        """Return one address for each phase."""
        return [f"phase_time.{phase}" for phase in PHASES]

    def fire(self, context: HookContext) -> None:
        """Publish the differences."""
        now = {phase: context.read(f"phases.{phase}") or 0.0 for phase in PHASES}
        now["hooks"] -= now["evaluation"]
        last = context.memory.get("last", {})
        if any(now[phase] < seconds for phase, seconds in last.items()):  # a resumed process counts from 0
            last = {}
        for phase, seconds in now.items():
            context.publish(f"phase_time.{phase}", seconds - last.get(phase, 0.0))
        context.memory["last"] = now
