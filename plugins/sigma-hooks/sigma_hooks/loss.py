"""Log the training loss."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from sigma_hooks.report import Report


@define(eq=False, kw_only=True)
class Loss(Report):
    """Log the loss of the last training step."""

    values: Sequence[str] = field(default=("training.loss",), init=False)
