"""Keep snapshots in memory for rewind."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from attrs import define, field

from sigma_kernel.clock import Moment, time_scale
from sigma_kernel.contracts.storing import Checkpoint, thin
from sigma_kernel.errors import SigmaStateError

MOST_BYTES = 64 * 2**20  # of snapshots in memory; at least one is kept
MOST = 64  # of them
SHARE = 0.01  # of training time that snapshots may take at most
LATE = 10.0  # seconds after which a snapshot is taken within an epoch, too

Entry = tuple[Moment, Checkpoint]


@define(eq=False)
class RewindBuffer:
    """Snapshots of a session over the whole run, the older, the further apart, within a limit of memory and time."""

    states: list[Entry] = field(factory=list)  # oldest first
    _pinned: dict[int, Entry] = field(factory=dict, init=False)  # to which a replayed rewind goes, by iteration
    _next: float = field(default=0.0, init=False)  # when the next one may be taken
    _late: float = field(factory=lambda: time.perf_counter() + LATE, init=False)  # when it is taken within an epoch

    def due(self) -> bool:
        """Return whether another snapshot stays within its share of the time."""
        return time.perf_counter() >= self._next

    def is_late(self) -> bool:
        """Return whether the last snapshot is so old that another is taken before the epoch ends."""
        return time.perf_counter() >= self._late

    def took(self, seconds: float, apart: float = 0.0) -> None:
        """Record the seconds that a snapshot took; the next is taken this long ``apart`` at the earliest."""
        now = time.perf_counter()
        self._next, self._late = now + max(seconds / SHARE, apart), now + LATE

    def keep(self, moment: Moment, state: Checkpoint, pinned: bool = False) -> None:
        """Keep a snapshot; drop those after it, on an abandoned branch, and thin out the others but those pinned."""
        if pinned:
            self._pinned[moment.iteration] = moment, state
        size = sum(value.nbytes for value in state.arrays.values())
        entries = [*(entry for entry in self.states if entry[0].iteration < moment.iteration), (moment, state)]
        kept = {*thin((at.iteration for at, _ in entries), min(MOST, max(1, MOST_BYTES // max(size, 1))))}
        self.states = [entry for entry in entries if entry[0].iteration in kept]  # another list: others read this one

    def forget_after(self, iteration: int) -> None:
        """Drop the snapshots after an iteration."""
        self.states = [entry for entry in self.states if entry[0].iteration <= iteration]

    def rewind_to(self, to: int, scale: str, saved: Callable[[int], Sequence[Entry]] = lambda after: ()) -> Entry:
        """Return the newest snapshot at or before a moment; SigmaStateError if there is none.

        One on disk counts if it is later than all in memory: those ``saved`` after an iteration.
        """
        held = [*reversed(self.states), *self._pinned.values()]
        entries = [entry for entry in held if entry[0].count(time_scale(scale)) <= to]
        entries += saved(max((moment.iteration for moment, _ in entries), default=-1))
        if not entries:
            iterations = ", ".join(str(moment.iteration) for moment, _ in self.states) or "none yet"
            raise SigmaStateError(f"rewind: no snapshot of {scale} {to} or before; kept are iterations {iterations}.")
        return max(entries, key=lambda entry: entry[0].iteration)
