"""View a run folder that cannot be read, or holds nothing yet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field, frozen

from sigma_kernel.contracts import (
    AddressEntry,
    Branch,
    Checkpoint,
    HookEntry,
    LayerEntry,
    MediaEntry,
    RowHistory,
    RowLosses,
    StateEntry,
    Stretch,
    Ticket,
    TrainerView,
    WorkEntry,
)
from sigma_kernel.curves import Window
from sigma_kernel.errors import SigmaAddressError, SigmaStateError
from sigma_kernel.periods import Period

OVER = "the run is not training. Resume it first."


@define(eq=False)
class EndedRun:
    """A run that is not training and has no readable file."""

    folder: Path
    reason: str = ""  # why nothing can be read
    _tickets: list[Ticket] = field(factory=list, init=False)

    @property
    def name(self) -> str:
        """Return the name of the folder."""
        return self.folder.name

    def status(self) -> str:
        """Return ``interrupted`` if the run cannot be read."""
        return "interrupted" if self.reason else "finished"

    def why(self) -> str:
        """Return why nothing can be read."""
        return self.reason

    def wait(self, seconds: float) -> bool:
        """Sleep; such a run has no end to wait for."""
        return threading.Event().wait(seconds)

    def log(self, text: str) -> None:
        """Raise SigmaStateError: an ended run is read-only."""
        raise self.ended_error()

    def ended_error(self) -> SigmaStateError:
        """Return the error of what an ended run cannot do."""
        return SigmaStateError(self.reason or f"{self.folder}: {OVER}")

    # -- values --------------------------------------------------------------------------------------------------------
    def get(self, address: str) -> Any:
        """Raise SigmaAddressError: there are no values."""
        raise SigmaAddressError(f"{address}: has no recorded values. {self.ended_error()}")

    def find(self, pattern: str) -> list[tuple[str, Any]]:
        """Return the last values at the addresses that match a pattern."""
        return [(entry.address, entry.value) for entry in self.entries(pattern)]

    def entries(self, pattern: str = "**") -> list[AddressEntry]:
        """Return none."""
        return []

    def stretches(self, address: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return none."""
        return 0, []

    def points(self, address: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return none."""
        return 0, []

    # -- trainers ------------------------------------------------------------------------------------------------------
    def trainers(self) -> list[str]:
        """Return the default name of a single trainer."""
        return ["trainer"]

    def trainer(self, name: str) -> TrainerView:
        """Return the view of an unknown trainer."""
        return EndedTrainer(self.ended_error)

    # -- commands ------------------------------------------------------------------------------------------------------
    def send(self, command: str, **arguments: Any) -> Ticket:
        """Refuse a command: the run is not training."""
        self._tickets.append(ticket := Ticket(len(self._tickets) + 1, command, arguments))
        ticket.answer.set_exception(SigmaStateError(f"{command}: {OVER}"))
        return ticket

    def tickets(self, after: int = 0) -> list[Ticket]:
        """Return the refused command."""
        return self._tickets[after:]

    def journal(self, after: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
        """Return no rows."""
        return []

    def messages(self, after: int) -> list[tuple[int, str]]:
        """Return no messages: runs do not store them."""
        return []


@frozen(eq=False)
class EndedTrainer:
    """A trainer without any readable values."""

    error: Callable[[], SigmaStateError]

    def stretches(self, name: str, after: int = 0, most: int = 2000) -> tuple[int, list[Stretch]]:
        """Return none."""
        return 0, []

    def points(self, name: str, window: Window, after: int = 0) -> tuple[int, list[Stretch]]:
        """Return none."""
        return 0, []

    def media(self) -> list[MediaEntry]:
        """Return none."""
        return []

    def media_version(self) -> None:
        """Return that there are none."""

    def read_media(self, key: str) -> None:
        """Return that there are none."""

    def branches(self) -> list[Branch]:
        """Return the first."""
        return [Branch(0)]

    def periods(self) -> list[Period]:
        """Return none."""
        return []

    def network(self) -> list[LayerEntry]:
        """Return no layers."""
        return []

    def work(self) -> list[WorkEntry]:
        """Return none."""
        return []

    def record(self, readings: Mapping[str, float], units: Mapping[str, str]) -> None:
        """Raise SigmaStateError: nothing trains."""
        raise self.error()

    def hooks(self) -> list[HookEntry]:
        """Return none."""
        return []

    def states(self) -> list[StateEntry]:
        """Return none."""
        return []

    def state(self, iteration: int) -> TrainerView:
        """Raise SigmaStateError."""
        raise self.error()

    def with_state(self, state: Checkpoint) -> TrainerView:
        """Raise SigmaStateError."""
        raise self.error()

    def parameters(self) -> dict[str, np.ndarray]:
        """Return none."""
        return {}

    def splits(self) -> dict[str, int]:
        """Raise SigmaStateError, like every method below that needs the data or the network."""
        raise self.error()

    def classes(self) -> list[Any]:
        """Return none."""
        return []

    def columns(self) -> dict[str, list[str]]:
        """Return none."""
        return {}

    def targets(self) -> dict[str, list[str]]:
        """Return none."""
        return {}

    def rows(self, split: str, numbers: Sequence[int], prepared: bool = False) -> dict[str, np.ndarray]:
        """Raise SigmaStateError."""
        raise self.error()

    def losses(self, split: str, most: int | None = None) -> RowLosses:
        """Raise SigmaStateError."""
        raise self.error()

    def row_history(self, split: str) -> RowHistory:
        """Raise SigmaStateError."""
        raise self.error()

    def activations(self, samples: Any) -> dict[str, np.ndarray]:
        """Raise SigmaStateError."""
        raise self.error()

    def predict(self, samples: Any) -> dict[str, np.ndarray]:
        """Raise SigmaStateError."""
        raise self.error()

    def edits(self) -> dict[str, dict[str, Any]]:
        """Return none."""
        return {}
