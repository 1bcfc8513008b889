"""A criterion: whether a value has settled."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from attrs import field, frozen

from sigma_kernel import Moment
from sigma_kernel.contracts import Criterion
from sigma_kernel.settings import ge, whole


@frozen
class Plateau(Criterion):
    """Whether a value has settled: its latest values are close together.

    It holds if the last ``window`` evaluations differ by at most ``tolerance`` times the largest magnitude among them,
    and is unknown until there are that many. A value that is not finite restarts the window.

    Args:
        value: Address of the value.
        window: Number of evaluations that are compared, the present one included.
        tolerance: Greatest difference among them, relative to the largest magnitude.
    """

    value: str
    window: int = field(default=10, validator=[whole, ge(2)])
    tolerance: float = field(default=0.01, validator=ge(0.0))

    def addresses(self) -> tuple[str, ...]:
        """Return the address of the value."""
        return (self.value,)

    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        """Add the present value to the window, and compare its extremes."""
        value = lookup(self.value)
        if value is None:
            return None
        seen: list[float] = [*memory.get("seen", ()), float(value)][-self.window :] if isfinite(value) else []
        memory["seen"] = seen
        if len(seen) < self.window:
            return None
        return max(seen) - min(seen) <= self.tolerance * max(map(abs, seen))
