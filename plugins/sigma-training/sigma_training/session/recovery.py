"""Find the newest good state of a session that failed, without a copy of the state before each burst.

A state is good if its parameters and slots are finite, and the loss that the next iteration measures at it.  Snapshots
are taken within a share of the time; the iterations since one of them are computed again, to the same bits.  Where rows
are drawn anew, or bits depend on time, this cannot be: the snapshot itself is the newest state that is known.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from attrs import define, evolve, field, frozen

from sigma_kernel.contracts import Compute
from sigma_kernel.contracts.storing import Checkpoint
from sigma_kernel.errors import error_text
from sigma_step.live import Live
from sigma_step.model import LAYERS
from sigma_step.steps import compute_fused
from sigma_training.names import KEPT, UNDO
from sigma_training.session.progress import TrainingProgress
from sigma_training.session.snapshot import snapshot
from sigma_training.session.state import RunState, Setup, repeat_iterations

SHARE = 0.01  # of training time that snapshots may take at most

P = ParamSpec("P")
R = TypeVar("R")


@frozen(eq=False)
class BurstStart:
    """The beginning of a burst, or of training: a state without its arrays, and its position in the journal."""

    setup: Setup
    state: RunState
    memory: bytes  # pickled: hooks change theirs in place
    progress: TrainingProgress
    position: int

    @property
    def iteration(self) -> int:
        """Return the iteration after which it stands."""
        return self.state.moment.iteration

    def state_with(self, arrays: Any) -> RunState:
        """Return the state with these arrays."""
        return evolve(self.state, arrays=arrays, memory=pickle.loads(self.memory))

    def snapshot_of(self, state: RunState) -> Checkpoint:
        """Return a snapshot of a state that follows from this one."""
        base = snapshot(state, self.setup)
        return evolve(base, values={**base.values, "progress": self.progress.to_list(), "journal": self.position})


@frozen(eq=False)
class Base:
    """A finite snapshot, and the iterations that have run since, by the live values in force."""

    mark: BurstStart
    saved: Checkpoint
    runs: list[tuple[Live, int]] = field(factory=list)

    def recompute(self, mark: BurstStart, iteration: int, compute: Compute) -> Checkpoint:
        """Return the state of an iteration after a mark, computed again."""
        setup, arrays = self.mark.setup, self.mark.state.arrays
        state = self.mark.state_with({name: setup.to_device(self.saved.arrays[name]) for name in arrays})
        left = mark.iteration - self.mark.iteration
        for live, n in self.runs:
            state, left = repeat_iterations(evolve(state, live=live), setup, min(n, left), compute), left - min(n, left)
        state = repeat_iterations(mark.state_with(state.arrays), mark.setup, iteration - mark.iteration, compute)
        return mark.snapshot_of(state)


@define(eq=False)
class Recovery:
    """What is known of the last states of a session; ``found`` is the newest good one, once it was looked for."""

    found: Checkpoint | None = field(default=None, init=False)
    _bases: deque[Base] = field(factory=lambda: deque(maxlen=2), init=False)  # the last may not be known to be good
    _marks: deque[BurstStart] = field(factory=lambda: deque(maxlen=2), init=False)
    _compute: Compute = field(default=compute_fused, init=False)
    _arrays: Any = field(factory=dict, init=False)  # those that the last burst returned
    _reached: int = field(default=0, init=False)  # the iteration after it
    _finite: bool = field(default=True, init=False)  # its last loss
    _records: bool = field(default=False, init=False)  # the states since the last snapshot are finite, as far as known
    _exempt: set[str] | None = field(default=None, init=False)  # arrays that are not finite from the beginning
    _next: float = field(default=0.0, init=False)  # when the next snapshot may be taken

    def forget(self) -> None:
        """Forget states of an abandoned branch."""
        self._bases.clear()
        self._marks.clear()
        self._arrays, self._records, self._finite, self._next, self.found = {}, False, True, 0.0, None

    def record_start(
        self, setup: Setup, state: RunState, progress: TrainingProgress, position: int, compute: Compute | None = None
    ) -> None:
        """Record the state before a burst; take a snapshot if one is due.

        After a command that has replaced arrays or components, nothing is recorded until then.
        """
        mark = BurstStart(setup, state.without_arrays(), pickle.dumps(state.memory), progress, position)
        self._compute = compute or compute_fused
        self._records &= self._finite and self._is_continued(mark, state.arrays)
        if self._finite and time.perf_counter() >= self._next:
            self._snapshot(mark, state)
        if self._records:
            self._marks.append(mark)
            self._reached, self.found = mark.iteration, None

    def record_burst(self, state: RunState, done: int, finite: bool) -> None:
        """Record a burst: the state after it, and whether its last loss is finite."""
        self._arrays, self._finite = state.arrays, finite
        if not self._records:
            return
        runs, live, self._reached = self._bases[-1].runs, self._marks[-1].state.live, state.moment.iteration
        before = runs.pop()[1] if runs and runs[-1][0] is live else 0
        runs.append((live, before + done))
        if finite and len(self._bases) > 1:
            self._bases.popleft()

    def find_good(self, log: Callable[[str], None]) -> None:
        """Compute the newest good state, if any is known, unless it was found already."""
        if self.found is not None or not self._bases:
            return
        first = self._marks[0].iteration
        ran = self._reached > self._marks[-1].iteration
        goal = max(first, self._reached - (0 if not ran else 1 if self._finite else 2))
        mark = next(mark for mark in reversed(self._marks) if mark.iteration <= goal)
        base = next((base for base in reversed(self._bases) if base.mark.iteration <= mark.iteration), self._bases[0])
        if base.mark.setup.feed.dataset.drawn_anew or not base.mark.setup.is_reproducible:  # they would be others
            self.found = base.saved
            return
        try:
            checkpoint = base.recompute(mark, goal, self._compute)
        except Exception as error:
            log(f"iteration {goal} cannot be computed again ({error_text(error)}): an earlier snapshot is saved")
            checkpoint = base.saved
        self.found = checkpoint if self._is_finite(checkpoint) else base.saved

    def _is_continued(self, mark: BurstStart, arrays: Any) -> bool:
        same_setup = bool(self._bases) and mark.setup is self._bases[-1].mark.setup
        return same_setup and all(x is self._arrays.get(name) for name, x in arrays.items())

    def _snapshot(self, mark: BurstStart, state: RunState) -> None:
        began, saved = time.perf_counter(), mark.snapshot_of(state)
        self._records, self._arrays = self._is_finite(saved), state.arrays
        if self._records:
            self._bases.append(Base(mark, saved))
        now = time.perf_counter()
        self._next = now + (now - began) / SHARE

    def _is_finite(self, saved: Checkpoint) -> bool:
        own = {name: x for name, x in saved.arrays.items() if not name.startswith((KEPT, UNDO)) and x.dtype.kind == "f"}
        wrong = {name for name, x in own.items() if not np.isfinite(x).all()}
        if self._exempt is None:  # a slot may begin at infinity
            self._exempt = {name for name in wrong if not name.startswith(LAYERS)}
        return wrong <= self._exempt


def recovering(act: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Let a method of the loop look for the newest good state if it raises, while its operator can still compute."""

    @wraps(act)
    def wrapper(loop: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return act(loop, *args, **kwargs)
        except Exception:
            loop.recovery.find_good(loop.current.recorder.log)
            raise

    return wrapper
