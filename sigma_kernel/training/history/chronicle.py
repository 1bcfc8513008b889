"""What a session writes down of its history, keeps in memory to come back to, and compares when it lives again."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define, field

from sigma_kernel.clock import Moment
from sigma_kernel.training.checkpoints.format import Checkpoint
from sigma_kernel.training.commands.types import Save
from sigma_kernel.training.history.digests import digests
from sigma_kernel.training.history.recorder import Records
from sigma_kernel.training.history.replay import Replay
from sigma_kernel.training.history.rewind import Past
from sigma_kernel.training.hooks.runner import Runner

MOST_LOSSES = 2**14  # between two digests


Saves = Sequence[tuple[str, Save]]  # wanted at one boundary, each with the hook that wants it


@define(eq=False)
class Chronicle:
    """The journal of one session, written or read again."""

    records: Records
    replay: Replay | None = None
    past: Past = field(factory=Past)
    branch: int = 0
    waits: bool = False  # stay paused where the run that is resumed was
    _by: str = ""  # the hook whose commands act
    _late: list[tuple[str, Save]] | None = None  # wanted by hooks that act together
    _save: Callable[[Saves], None] = lambda wanted: None
    _losses: deque[float] = field(factory=lambda: deque(maxlen=MOST_LOSSES))

    def note(self, moment: Moment, what: Mapping[str, Any]) -> None:
        """Write down what happens now; while the journal is read again, compare instead."""
        row = {**self.records.head(moment), **what}
        row |= {"by": self._by} if self._by else {}
        if self.replay is None or not self.replay.met(row):
            self.records.event(row)

    @property
    def position(self) -> int:
        """Return the number of rows that lie behind: what is still to be done again does not."""
        place = self.replay.place if self.replay is not None else None
        return self.records.position if place is None else place

    @property
    def behind(self) -> bool:
        """Return whether something is still to be done again before others may act."""
        return self.replay is not None and self.replay.goes_on and bool(self.replay.rows) and not self.replay.acting

    @property
    def inside(self) -> bool:
        """Return whether a hook acts, rather than somebody outside."""
        return bool(self._by)

    @contextmanager
    def on_behalf(self, hook: str) -> Iterator[None]:
        """Let commands inside be those of a hook, which come about again by themselves."""
        before, self._by = self._by, hook
        try:
            yield
        finally:
            self._by = before

    @contextmanager
    def together(self) -> Iterator[None]:
        """Save once, after all hooks inside, if any of them wants that: a checkpoint stands between two boundaries."""
        outer, self._late = self._late, [] if self._late is None else self._late
        try:
            yield
        finally:
            late, self._late = self._late, outer
        if late and outer is None:
            with self.on_behalf(late[-1][0]):
                self._save(late)

    def lastly(self, wanted: Save, save: Callable[[Saves], None]) -> None:
        """Save now, or after all hooks that are due with the one that acts, once for all of them."""
        if self._late is None:
            save([(self._by, wanted)])
        else:
            self._late.append((self._by, wanted))
            self._save = save

    # -- hooks that go by the wall clock -------------------------------------------------------------------------------
    def due(self, runner: Runner, before: Moment, now: Moment) -> list[str]:
        """Return the hooks that are due, and while the journal is read all that go by the clock: it decides there."""
        due = runner.due(before, now)
        if self.replay is None:
            return due
        return [name for name in runner.order if name in due or name in runner.judged]

    def judge(self, moment: Moment, hook: str, scope: str, holds: Any) -> bool:
        """Return whether a hook that goes by the wall clock acts now; if so, that is written down before it does."""
        what = {"event": "fired", "hook": hook, "scope": scope}
        acts = holds() if self.replay is None else self.replay.next(moment.iteration, **what) is not None
        if acts:
            self.note(moment, what)
        return bool(acts)

    # -- digests -------------------------------------------------------------------------------------------------------
    def measured(self, losses: np.ndarray) -> None:
        """Take the losses of a burst, for the next digest."""
        self._losses.extend(losses)

    def digest(self, moment: Moment, state: Checkpoint, runner: Runner) -> None:
        """Write down what the state and the losses since the last digest are, if there is a journal."""
        if self.records.journal.path is None and self.replay is None:
            return
        text = np.array(self._losses, "<f4").tobytes().hex()
        self._losses.clear()
        self.note(moment, {"event": "digest", "state": digests(state, runner), "losses": text})

    def remember(self, moment: Moment, state: Any, runner: Runner, wanted: bool) -> None:
        """Keep what ``state()`` returns and write its digest, if it is wanted and was not done a moment ago."""
        told, kept = wanted and self.past.due(), False
        if self.replay is not None:
            told = self.replay.next(moment.iteration, event="digest") is not None
            kept = self.replay.rewinds_to(moment.iteration)
        if told or kept:
            began, saved = time.perf_counter(), state()
            self.past.keep(moment, saved)
            if told:
                self.digest(moment, saved, runner)
            self.past.took(time.perf_counter() - began)
