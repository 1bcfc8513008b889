"""Save checkpoints during training, with a retention policy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from sigma_hooks.direction import DIRECTIONS, check_direction, say_if_unknown
from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext, Outlook
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.settings import ge, in_, optional


@define(eq=False, kw_only=True)
class SaveCheckpoint(Hook):
    """Save a checkpoint whenever this hook fires, and keep the newest, the best, and some of the whole run.

    By default all checkpoints are kept. An older checkpoint is deleted only once a newer one is complete on disk; one
    still queued for writing may be replaced by a newer one.

    Args:
        last: Number of newest checkpoints to keep, at least 1 if others are deleted.
        best: Number of best checkpoints to keep.
        spread: Number of checkpoints to keep over the whole run: the first, and the older, the further apart.
        value: Address of the value that ranks them.
        better: Whether lower or higher values are better; ``automatic`` asks the metric published there; for losses,
            costs and values without a metric, lower is better.
    """

    every: TimeStep = every(1, "epoch")
    last: int | None = field(default=None, validator=optional(ge(1)))
    best: int | None = field(default=None, validator=optional(ge(1)))
    spread: int | None = field(default=None, validator=optional(ge(1)))
    value: str | None = None
    better: str = field(default="automatic", validator=in_(DIRECTIONS))
    priority: int = -75  # after hooks that measure or change values, before those that stop training

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError if ``best`` is set without ``value``."""
        if self.best is not None and self.value is None:
            raise SigmaConfigError("checkpoint: best needs a value to rank by. Set value, such as 'validation.loss'.")

    @property
    def reads(self) -> Sequence[str]:
        """Return the value that ranks checkpoints."""
        return [] if self.value is None else [self.value]

    @property
    def retains(self) -> Mapping[str, Any]:
        """Return the retention policy."""
        ranks: dict[str, Any] = {} if self.value is None else {"value": self.value}
        if ranks and self.better != "automatic":
            ranks = {"prefer": "greatest" if self.better == "higher" else "least"}
        counts = {"last": self.last or 1, "best": self.best or 0, "spread": self.spread or 0}
        return {**counts, **ranks} if self._removes else ranks

    @property
    def _removes(self) -> bool:
        return (self.last, self.best, self.spread) != (None, None, None)

    def check(self, outlook: Outlook) -> None:
        """Raise SigmaConfigError if neither setting nor metric decides which values are better."""
        if self.value is not None:
            check_direction(outlook, self.better, self.value)

    def fire(self, context: HookContext) -> None:
        """Save, with the score."""
        score = None if self.value is None else context.read(self.value)
        if self.value is not None:
            say_if_unknown(context, self.better, self.value)
        number = None if score is None or math.isnan(score) else float(score)
        context.command("save", score=number, keep=not self._removes)
