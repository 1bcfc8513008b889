"""Requests about an earlier moment: ``at`` is the iteration of a state that is kept, or was computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
from attrs import define

from sigma_kernel.contracts import AddressEntry, Checkpoint, RowLosses, TrainerView, View
from sigma_kernel.errors import SigmaAddressError, SigmaConfigError
from sigma_monitor_control.protocol.arguments import fits
from sigma_monitor_control.protocol.reading import select_trainer
from sigma_monitor_control.protocol.recalls import find_recalled

AT = "at"
ASKED = frozenset({"layer", "activations", "losses", "confusion", "predict", "map", "surface"})  # with a moment


@define(eq=False)
class EarlierTrainer:
    """A trainer whose parameters are those of a state, which is read once they are needed; all else is of now."""

    now: TrainerView
    iteration: int
    recalled: Checkpoint | None = None  # the state, if it was computed again

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)

    @cached_property
    def past(self) -> TrainerView:
        """Return the trainer in that state."""
        return self.now.state(self.iteration) if self.recalled is None else self.now.with_state(self.recalled)

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        """Return the losses of rows by the parameters of then."""
        return self.past.losses(split, most)

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the predictions by the parameters of then."""
        return self.past.predict(samples)

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Return the activations by the parameters of then."""
        return self.past.activations(samples)

    @cached_property
    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return the parameters of then, by address."""
        return self.past.parameters()


@define(eq=False)
class EarlierView:
    """A view of a run in which one trainer is in an earlier state; hooks have published nothing there."""

    now: View
    name: str
    shown: EarlierTrainer

    def trainers(self) -> Sequence[str]:
        """Return the names of the trainers."""
        return self.now.trainers()

    def trainer(self, name: str) -> TrainerView:
        """Return the trainer in its earlier state; others are as they are now."""
        return cast("TrainerView", self.shown) if name == self.name else self.now.trainer(name)

    def get(self, address: str) -> Any:
        """Return a parameter; raise SigmaAddressError for any other value."""
        if address not in self.shown.arrays:
            raise SigmaAddressError(f"{address}: is not kept in states. Ask for a parameter.")
        return self.shown.arrays[address]

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return nothing: what hooks publish is in no state."""
        return []

    def entries(self, pattern: str) -> list[AddressEntry]:
        """Return the iteration of the state."""
        address = f"{self.name}.iteration"
        return [AddressEntry(address, "whole", self.shown.iteration)] if pattern == address else []


def select_moment(view: View, do: str, arguments: Mapping[str, Any]) -> tuple[View, dict[str, Any]]:
    """Return the view that a request is about, and its other arguments; raise SigmaConfigError for a wrong ``at``."""
    if do not in ASKED or arguments.get(AT) is None:
        return view, {name: value for name, value in arguments.items() if do not in ASKED or name != AT}
    others = {name: value for name, value in arguments.items() if name != AT}
    at, trainer = arguments[AT], others.get("trainer")
    if not fits(at, int) or not fits(trainer, str | None):
        raise SigmaConfigError(f"{do}.{AT}: must be the iteration of a state of a trainer (got {at!r:.100}).")
    name = select_trainer(view, trainer)
    shown = EarlierTrainer(view.trainer(name), at, find_recalled(view, name, at))
    return cast("View", EarlierView(view, name, shown)), others


def origin(view: View) -> View:
    """Return the view of the run as it is now."""
    return view.now if isinstance(view, EarlierView) else view
