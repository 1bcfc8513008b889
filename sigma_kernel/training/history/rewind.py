"""Keep snapshots in memory for rewind."""

from __future__ import annotations

import time
from collections import deque

from attrs import define, field

from sigma_kernel.clock import Moment, scaled
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.checkpoints.format import Checkpoint

MOST_BYTES = 64 * 2**20  # of snapshots in memory; at least one is kept
SHARE = 0.01  # of training time that snapshots may take at most


@define(eq=False)
class Past:
    """The newest snapshots of a session, within a limit of memory and time."""

    states: deque[tuple[Moment, Checkpoint]] = field(factory=lambda: deque(maxlen=8))
    _next: float = field(default=0.0, init=False)  # when the next one may be taken

    def due(self) -> bool:
        """Return whether another snapshot stays within its share of the time."""
        return time.perf_counter() >= self._next

    def took(self, seconds: float) -> None:
        """Record the seconds that a snapshot took."""
        self._next = time.perf_counter() + seconds / SHARE

    def keep(self, moment: Moment, state: Checkpoint) -> None:
        """Keep a snapshot; drop the oldest ones beyond the limits of number and bytes."""
        if self.states and self.states[-1][0] == moment:
            self.states.pop()
        size = sum(value.nbytes for value in state.arrays.values())
        while len(self.states) > 1 and size * (len(self.states) + 1) > MOST_BYTES:
            self.states.popleft()
        self.states.append((moment, state))

    def before(self, to: int, scale: str) -> tuple[Moment, Checkpoint]:
        """Return the newest snapshot at or before a moment, and drop later ones; SigmaStateError if there is none."""
        found = [entry for entry in self.states if entry[0].on(scaled(scale)) <= to]
        if not found:
            known = ", ".join(str(moment.iteration) for moment, _ in self.states) or "none yet"
            raise SigmaStateError(f"rewind: no snapshot of {scale} {to} or before; kept are iterations {known}.")
        while self.states[-1][0] is not found[-1][0]:
            self.states.pop()  # on the abandoned branch
        return found[-1]
