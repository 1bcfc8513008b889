"""Save checkpoints while training goes on, and say which of them stay."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_kernel.clock import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge, in_, optional


@define(eq=False, kw_only=True)
class SaveCheckpoint(Hook):
    """Save a checkpoint whenever this hook is due.

    All that it saves stay, if nothing else is said; else, of all that the run has saved, the newest ``last``, 1 or more
    of them, and the ``best``.  What is best is said by ``value``, and by ``better``, which way that is.  An older one
    goes only when a newer one is whole on the disk; one that still waits to be written may give way to a newer one.
    """

    every: TimeStep = every(1, "epoch")
    last: int | None = field(default=None, validator=optional(ge(1)))
    best: int | None = field(default=None, validator=optional(ge(1)))
    value: str | None = None
    better: str = field(default="lower", validator=in_(("lower", "higher")))
    priority: int = -75  # after everything that measures or changes, before what stops

    def __attrs_post_init__(self) -> None:
        """Refuse a best without a value to tell it by."""
        if self.best is not None and self.value is None:
            raise SigmaConfigError("checkpoint: best of what? Give the address of a value, such as 'validation.loss'.")

    @property
    def reads(self) -> Sequence[str]:
        """Return the value that is best."""
        return [] if self.value is None else [self.value]

    @property
    def retains(self) -> Mapping[str, Any]:
        """Return which checkpoints stay."""
        if self.last is None and self.best is None:
            return {}
        prefer = "least" if self.better == "lower" else "greatest"
        return {"last": self.last or 1, "best": self.best or 0, "prefer": prefer}

    def fire(self, context: HookContext) -> None:
        """Save, with the score."""
        score = None if self.value is None else context.read(self.value)
        known = None if score is None or math.isnan(score) else float(score)
        context.command("save", score=known, keep=not self.retains)
