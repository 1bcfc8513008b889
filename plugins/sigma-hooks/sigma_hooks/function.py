"""Hook that calls a Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext


@define(eq=False, kw_only=True)
class FunctionHook(Hook):
    """Call ``function(context)``, which reads the addresses ``inputs`` and publishes the addresses ``outputs``.

    Args:
        function: Function of the hook's context.
        inputs: Addresses that it reads.
        outputs: Addresses that it publishes.
        ends: Whether the function may end training, by ``context.command("stop")``.
    """

    every: TimeStep = every(1, "epoch")
    function: Callable[[HookContext], Any] = field(kw_only=False)
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    ends: bool = False

    @property
    def reads(self) -> Sequence[str]:
        """Return the addresses that the function reads."""
        return self.inputs

    @property
    def writes(self) -> Sequence[str]:
        """Return the addresses that the function publishes."""
        return self.outputs

    def fire(self, context: HookContext) -> None:
        """Call the function."""
        self.function(context)
