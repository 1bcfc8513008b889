"""The setup of a session: its components, and the programs, feed, evaluator and hook order built from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.training.commands.changes import Factory, Parts
from sigma_kernel.training.data.feed import Feed
from sigma_kernel.training.hooks.order import HookOrder
from sigma_kernel.training.step.evaluator import Evaluator
from sigma_kernel.training.step.live import LiveValue, live_values
from sigma_kernel.training.step.model import Model
from sigma_kernel.training.step.programs import Programs


@frozen(eq=False, kw_only=True)
class Setup:
    """Everything that computes a run.  A command that changes a component replaces the whole setup."""

    name: str  # of the trainer
    factory: Factory
    parts: Parts
    programs: Programs
    feed: Feed
    evaluator: Evaluator
    classes: Sequence[str] = ()  # class names of the data set, by index
    learned: Mapping[str, Any] = field(factory=dict)  # what the data set needs to read samples for predictions
    order: HookOrder = field(init=False)
    live_values: dict[str, LiveValue] = field(init=False)

    @order.default
    def _(self) -> HookOrder:
        return HookOrder(self.parts.hooks)

    @live_values.default
    def _(self) -> dict[str, LiveValue]:
        return live_values(self.model)

    @property
    def model(self) -> Model:
        """Return the model."""
        return self.programs.model

    def to_device(self, value: np.ndarray) -> Any:
        """Return a copy of a host array on the device."""
        return self.programs.backend.to_device(value)

    def to_host(self, value: Any) -> np.ndarray:
        """Return a copy of a device array on the host."""
        return self.programs.backend.to_host(value)

    def group(self, address: str) -> list[str]:
        """Return the live values that an address sets: one, or one per parameter (``optimiser.<setting>``)."""
        if address in self.live_values:
            return [address]
        setting = address.removeprefix("optimiser.")
        return [f"optimiser.{parameter}.{setting}" for parameter in self.model.trainable()]

    def close(self) -> None:
        """Stop all background work."""
        self.feed.close()
        self.evaluator.close()
