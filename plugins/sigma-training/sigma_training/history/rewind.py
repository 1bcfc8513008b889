"""Keep snapshots in memory for rewind."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from attrs import define, field

from sigma_kernel.clock import Moment, time_scale
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import SigmaStateError

MOST_BYTES = 64 * 2**20  # of snapshots in memory; at least one is kept
SHARE = 0.01  # of training time that snapshots may take at most

Entry = tuple[Moment, Checkpoint]


@define(eq=False)
class RewindBuffer:
    """The newest snapshots of a session, within a limit of memory and time."""

    states: deque[tuple[Moment, Checkpoint]] = field(factory=lambda: deque(maxlen=8))
    _pinned: dict[int, Entry] = field(factory=dict, init=False)  # to which a replayed rewind goes, by iteration
    _next: float = field(default=0.0, init=False)  # when the next one may be taken

    def due(self) -> bool:
        """Return whether another snapshot stays within its share of the time."""
        return time.perf_counter() >= self._next

    def took(self, seconds: float, apart: float = 0.0) -> None:
        """Record the seconds that a snapshot took; the next is taken this long ``apart`` at the earliest."""
        self._next = time.perf_counter() + max(seconds / SHARE, apart)

    def keep(self, moment: Moment, state: Checkpoint, pinned: bool = False) -> None:
        """Keep a snapshot; drop the oldest ones beyond the limits of number and bytes, except those that are pinned."""
        if pinned:
            self._pinned[moment.iteration] = moment, state
        if self.states and self.states[-1][0] == moment:
            self.states.pop()
        size = sum(value.nbytes for value in state.arrays.values())
        while len(self.states) > 1 and size * (len(self.states) + 1) > MOST_BYTES:
            self.states.popleft()
        self.states.append((moment, state))

    def forget_after(self, iteration: int) -> None:
        """Drop the snapshots after an iteration."""
        self.states = deque((entry for entry in self.states if entry[0].iteration <= iteration), self.states.maxlen)

    def rewind_to(self, to: int, scale: str, saved: Callable[[], Sequence[Entry]] = tuple) -> Entry:
        """Return the newest snapshot at or before a moment; SigmaStateError if there is none.

        If none in memory is that old, it is among those ``saved``.
        """
        held = [*reversed(self.states), *self._pinned.values()]
        entries = [entry for entry in held if entry[0].count(time_scale(scale)) <= to] or saved()
        if not entries:
            iterations = ", ".join(str(moment.iteration) for moment, _ in self.states) or "none yet"
            raise SigmaStateError(f"rewind: no snapshot of {scale} {to} or before; kept are iterations {iterations}.")
        return max(entries, key=lambda entry: entry[0].iteration)

    def go_back(self, entry: Entry) -> None:
        """Drop the snapshots after one of them: they are on an abandoned branch."""
        while self.states and self.states[-1] is not entry and self.states[-1][0].iteration >= entry[0].iteration:
            self.states.pop()
        if not self.states or self.states[-1] is not entry:
            self.states.append(entry)
