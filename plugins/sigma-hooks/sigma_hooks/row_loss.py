"""Find the rows of a split with the greatest losses."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from sigma_kernel import TimeStep, every
from sigma_kernel.contracts import Hook, HookContext
from sigma_kernel.settings import and_, ge, le, whole


@define(eq=False, kw_only=True)
class RowLoss(Hook):
    """Publish the rows of the split ``on`` with the greatest losses, such as mislabelled or unusual ones.

    ``<on>.row_loss.rows`` holds the numbers of the rows in their split, before they are shuffled, and
    ``<on>.row_loss.losses`` their losses, both as lists in falling order.  Rows that are left out are not among them.
    A loss that is not a number comes first.

    Args:
        on: Split of the data.
        most: Number of rows to publish.
    """

    every: TimeStep = every(1, "epoch")
    on: str = "training"
    most: int = field(default=20, validator=and_(whole, ge(1), le(1000)))

    @property
    def splits(self) -> Sequence[str]:
        """Return the split to measure on."""
        return [self.on]

    @property
    def writes(self) -> Sequence[str]:
        """Return the two addresses."""
        return [f"{self.on}.row_loss.rows", f"{self.on}.row_loss.losses"]

    def fire(self, context: HookContext) -> None:
        """Measure the loss of every row, and publish the worst."""
        worst = context.losses(self.on, self.most)
        context.publish(f"{self.on}.row_loss.rows", worst.rows.tolist())
        context.publish(f"{self.on}.row_loss.losses", worst.losses.tolist())
