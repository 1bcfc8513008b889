"""Log published values by address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class Report(Hook):
    """Log the values of addresses, such as ``["validation.loss", "optimiser.learning_rate"]``.

    Args:
        values: Addresses of the values.
    """

    every: TimeStep = every(1, "epoch")
    values: Sequence[str] = field(factory=list)

    @property
    def reads(self) -> Sequence[str]:
        """Return the addresses to log."""
        return self.values

    def fire(self, context: HookContext) -> None:
        """Log the values on one line."""
        text = ", ".join(f"{address} {format_value(context.read(address))}" for address in self.reads)
        context.log(f"epoch {context.moment.epoch}, iteration {context.moment.iteration}: {text}")


def format_value(value: Any) -> str:
    """Return a value as text: floats with four significant digits, arrays by their shape."""
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"array{tuple(value.shape)}" if hasattr(value, "shape") and value.shape else str(value)
