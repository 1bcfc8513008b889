"""Whether a value lies within two limits."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from sigma_kernel import Criterion, Moment


@frozen
class InRange(Criterion):
    """Whether a value lies within two limits.

    Args:
        value: Address of the value.
        low: Least value.
        high: Greatest value.
    """

    value: str
    low: float = 0.0
    high: float = 1.0

    def addresses(self) -> tuple[str, ...]:
        """Return what it reads."""
        return (self.value,)

    def answer(self, lookup: Callable[[str], Any], memory: dict[str, Any], moment: Moment) -> bool | None:
        """Return whether it holds, or None if nobody has published the value; state is kept in ``memory`` only."""
        value = lookup(self.value)
        return None if value is None else self.low <= value <= self.high
