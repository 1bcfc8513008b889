"""Stop training after a time limit."""

from __future__ import annotations

import re

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaConfigError

UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@define(eq=False, kw_only=True)
class TimeLimit(Hook):
    """Stop training after ``limit``, such as ``"90 seconds"`` or ``"1.5 hours"``.

    Time before a resume counts, pauses do not.  Raises SigmaConfigError if ``limit`` is not a duration.

    Args:
        limit: Duration, such as ``"90 seconds"`` or ``"1.5 hours"``.
    """

    every: TimeStep = every(0.1, "second")
    limit: str = field(kw_only=False)
    priority: int = -100  # after all hooks that may still measure

    ends = True

    def __attrs_post_init__(self) -> None:
        """Validate the limit."""
        self.seconds()

    def seconds(self) -> float:
        """Return the limit in seconds."""
        match = re.fullmatch(r"(\d++\.?\d*+) ?([a-z]++)", str(self.limit).strip())
        unit = match[2].removesuffix("s") if match else ""
        if match is None or unit not in UNITS or float(match[1]) <= 0:
            raise SigmaConfigError(f"time_limit: {self.limit!r} is not a duration. Write '90 seconds' or '2 hours'.")
        return float(match[1]) * UNITS[unit]

    def fire(self, context: HookContext) -> None:
        """Stop if the limit is reached."""
        if context.moment.second >= self.seconds():
            context.log(f"stopped: the time limit of {self.limit} is over")
            context.command("stop")
