"""A diary of one value."""

from collections.abc import Sequence
from pathlib import Path

from attrs import define

from sigma_kernel import Hook, HookContext, TimeStep, every


@define(eq=False, kw_only=True)
class Diary(Hook):
    """Append the epoch and a value to a file, once an epoch."""

    every: TimeStep = every(1, "epoch")
    value: str = "training.loss"
    file: Path

    @property
    def reads(self) -> Sequence[str]:
        """Return the address of the value."""
        return [self.value]

    def fire(self, context: HookContext) -> None:
        """Write one line."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{context.moment.epoch} {context.read(self.value)}\n")
