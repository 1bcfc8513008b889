"""Record the journal and the metrics of a trainer, keep snapshots for rewind, and compare both during replay."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from attrs import Factory, define, field

from sigma_kernel.clock import Moment
from sigma_kernel.contracts.storing import Checkpoint, Journal, NoRows, RowWriter, StoredRun
from sigma_kernel.encoding import pack, unpack
from sigma_kernel.periods import Period, Periods
from sigma_training.history.digests import digests
from sigma_training.history.media import MediaRecorder
from sigma_training.history.metrics import History, Samples
from sigma_training.history.replay import AGES, RESUMED, Replay, end_of_training
from sigma_training.history.rewind import Entry, RewindBuffer
from sigma_training.hooks.order import HookOrder

MOST_LOSSES = 2**14  # between two digests
THINNING = 2**22  # by the number of rows in the journal: losses between two digests
APART = 1e-4  # seconds between two digests, for each row in the journal
SAVING = 2  # rows of a save, before the place of its checkpoint


@define(eq=False)
class Recorder:
    """Record one trainer: journal, metrics, log; without a run folder, in memory only."""

    trainer: str
    log: Callable[[str], None] = lambda text: None
    tell: Callable[[Mapping[str, Any]], None] = lambda row: None  # of every row of the journal
    history: History = field(factory=History)
    settings: History = field(factory=History)  # the numbers that can be set, each time one has changed
    past: RewindBuffer = field(factory=RewindBuffer)
    journal: Journal = field(factory=NoRows)
    stored: StoredRun | None = field(default=None, init=False)  # for what hooks write
    media: MediaRecorder = field(default=Factory(lambda made: MediaRecorder(made.trainer, made.log), takes_self=True))
    replay: Replay | None = field(default=None, init=False)
    branch: int = field(default=0, init=False)
    by: str = field(default="", init=False)  # the hook that acts; empty for commands from outside
    _set: Mapping[str, float] = field(factory=dict, init=False)  # the numbers that can be set, as they were last
    _session: int = field(default=0, init=False)  # how often the run has been resumed
    _start: int = field(default=0, init=False)  # the iteration at which this branch or this session began, or -_resets
    _resets: int = field(default=0, init=False)  # in this session
    _rows: int = field(default=0, init=False)  # of this trainer in the journal
    _followed: int = field(default=0, init=False)  # of these, those before this session
    _periods: Periods = field(factory=Periods, init=False)  # of this session
    _earlier: list[Period] | None = field(default=None, init=False)  # periods before it, once somebody has asked
    _end: int | None = field(default=None, init=False)  # the row at which training ended last, unless it went on
    _samples: Samples = field(default=Factory(lambda made: Samples(NoRows(), made.history), takes_self=True))
    _early: deque[Mapping[str, Any]] = field(factory=lambda: deque(maxlen=1000))  # rows before the journal was opened
    _losses: bytearray = field(factory=bytearray)  # float32, for the next digest

    # -- files ---------------------------------------------------------------------------------------------------------
    def open(self, journal: Journal, metrics: RowWriter, run: StoredRun | None = None) -> None:
        """Write to the journal and the metrics of a run from now on."""
        self.stored, self.journal, self._samples = run, journal, Samples(metrics, self.history)
        self.media.open(run)
        while self._early:
            self._append(self._early.popleft())

    def forget_early(self) -> None:
        """Drop the rows from before the journal was opened."""
        self._early.clear()

    def follow(self, rows: Sequence[Mapping[str, Any]], before: tuple[int, int], branch: int, iteration: int) -> None:
        """Continue a journal with these rows of this trainer, and those ``before`` them: their number, and of resumes.

        Training goes on from an iteration of a branch.
        """
        self._rows = self._followed = before[0] + len(rows)
        self._session = before[1] + sum(row.get("event") == RESUMED for row in rows) + 1
        self.begin(branch, iteration)
        for row in rows:
            self.tell(row)

    def head(self, moment: Moment) -> dict[str, Any]:
        """Return the entries that every row starts with."""
        return {"trainer": self.trainer, "iteration": moment.iteration, "epoch": moment.epoch, "seconds": moment.second}

    def place(self, moment: Moment) -> dict[str, Any]:
        """Return the entries of rows of what was measured or published: trainer, moment, branch, session and start."""
        return {**self.head(moment), "branch": self.branch, "session": self._session, "start": self._start}

    def record_values(self, values: Mapping[str, np.ndarray], before: Moment, after: Moment) -> None:
        """Record the values of a burst between two moments, one per iteration."""
        self._losses += np.asarray(values.get("training.loss", ()), "<f4").tobytes()
        del self._losses[: -4 * MOST_LOSSES]
        self.history.record(values, before, after)

    def record_settings(self, numbers: Mapping[str, float], moment: Moment) -> None:
        """Record the numbers that can be set, as far as they have changed."""
        for address, value in numbers.items():
            if self._set.get(address) != value:
                self.settings.add(address, float(value), moment)
        self._set = numbers

    def row(self, moment: Moment, force: bool, edited: Sequence[str] = ()) -> None:
        """Write a row of metrics if the interval has passed, or with ``force``; it names the splits that are edited."""
        self._samples.write({**self.place(moment), **({"edited": [*edited]} if edited else {})}, force)

    def keep_media(self, moment: Moment, name: str, about: Mapping[str, Any], data: bytes | None = None) -> None:
        """Keep media that a hook has published, by their description; without ``data``, their bytes are there."""
        self.media.keep(self.place(moment), name, about, data)

    def note(self, moment: Moment, what: Mapping[str, Any]) -> None:
        """Write a row to the journal; during replay, compare it with the journal instead."""
        now = {"time": round(time.time(), 3)}
        row = {**self.head(moment), **now, **what, **({"by": self.by} if self.by else {})}
        if self.replay is None or not self.replay.met(row):
            self._write(row)

    def _write(self, row: Mapping[str, Any]) -> None:
        self.tell(row)
        self._periods.take(row)
        if not self.journal.is_kept:
            self._early.append(row)
        else:
            self._append(row)

    def _append(self, row: Mapping[str, Any]) -> None:
        self.journal.append(row)
        self._end = end_of_training(row, self._rows, self._end)
        self._rows += 1

    def chain(self, place: int) -> dict[str, Any]:
        """Return the end of the journal for a checkpoint at a place, with a bookmark for a resume from there.

        The lines after the bookmark must tell how training ended; a resume that is not over needs those that it has.
        """
        before = place if self._end is None else min(place, self._end)
        return self.journal.chain(self.trainer, -1 if self.replay is not None else before - SAVING)

    def periods(self) -> list[Period]:
        """Return when it trained, before this session too; other threads may call this."""
        if self._earlier is None:
            before, rows = Periods(), self.stored.journal_rows() if self._followed and self.stored else ()
            for row in islice((row for row in rows if row.get("trainer") == self.trainer), self._followed):
                before.take(row)
            self._earlier = before.found
        return [*self._earlier, *self._periods.found]

    # -- branches and hooks --------------------------------------------------------------------------------------------
    def begin(self, branch: int, iteration: int) -> None:
        """Begin at an iteration of a branch, with nothing measured before."""
        self.branch, self._start, self.settings, self._set = branch, iteration, History(), {}
        self._periods = Periods(branch)
        self.history.begin(branch)
        self.settings.begin(branch)

    def go_back(self, branch: int, iteration: int, entry: Entry | None = None) -> None:
        """Leave the present branch, and go on from an earlier iteration: on a new one, or after a reset.

        Snapshots after an ``entry``, or after a reset, are dropped.
        """
        if entry is not None:
            self.past.keep(*entry)
        else:
            self.past.forget_after(iteration)
        is_reset = branch == self.branch
        self._resets += is_reset
        self.branch, self._start = branch, -self._resets if is_reset else iteration  # which differs after each reset
        for history in (self.history, self.settings):
            history.leave(branch, iteration)

    @contextmanager
    def on_behalf(self, hook: str) -> Iterator[None]:
        """Attribute the rows written inside to a hook: a replay reproduces them by running the hook."""
        before, self.by = self.by, hook
        try:
            yield
        finally:
            self.by = before

    # -- replay --------------------------------------------------------------------------------------------------------
    def compare(self, replay: Replay | None) -> None:
        """Compare with the rows of a journal from now on, instead of writing; without a replay, write again."""
        self.replay = replay
        if self.replays_only:
            self.history.keep_all()

    @property
    def position(self) -> int:
        """Return the number of rows so far, without those still to be replayed."""
        place = self.replay.place if self.replay is not None else None
        return self._rows if place is None else place

    @property
    def replays_only(self) -> bool:
        """Return whether training ends where the replayed journal ends."""
        return self.replay is not None and not self.replay.goes_on

    @property
    def is_behind(self) -> bool:
        """Return whether rows are still to be replayed before new commands are accepted."""
        return self.replay is not None and self.replay.goes_on and bool(self.replay.rows) and not self.replay.acting

    def judge(self, moment: Moment, hook: str, scope: str, holds: Callable[[], bool]) -> float | None:
        """Return the second at which a hook that depends on the wall clock fires now, if it does; record that first.

        During replay, both are those of the journal.
        """
        what, second = {"event": "fired", "hook": hook, "scope": scope}, moment.second
        if self.replay is not None:
            row = self.replay.next_row(moment.iteration, **what)
            acts, second = row is not None, float((row or {}).get("seconds", second))
        else:
            acts = holds()
        if acts:
            self.note(moment, what)
        return second if acts else None

    def hear(self, moment: Moment, hook: str, now: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a hook newly reads of other trainers; record it first, as a replay takes it from the journal."""
        what, values = {"event": "heard", "hook": hook}, pack(now)
        if self.replay is not None:
            values = (self.replay.next_row(moment.iteration, **what) or {"values": {}})["values"]
        if values:
            self.note(moment, {**what, "values": values})
        return dict(unpack(values))

    def ages(self, moment: Moment) -> str:
        """Return the ages of gradients in the burst that is replayed from here on; empty if none lacked an update."""
        row = None if self.replay is None else self.replay.next_row(moment.iteration, event=AGES)
        return "" if row is None else str(row[AGES])

    # -- digests and snapshots -----------------------------------------------------------------------------------------
    def digest(self, moment: Moment, snapshot: Checkpoint, order: HookOrder) -> None:
        """Write the digests of a snapshot, and the losses since the previous digest, if there is a journal."""
        if not self.journal.is_kept and self.replay is None:
            return
        most = 4 * max(1, THINNING // max(1, self._rows))
        self.note(moment, {"event": "digest", "state": digests(snapshot, order), "losses": self._losses[-most:].hex()})
        self._losses.clear()

    def keep(self, moment: Moment, snapshot: Checkpoint) -> None:
        """Keep a snapshot for rewind; during replay, for as long as a later one goes back to it."""
        self.past.keep(moment, snapshot, self.replay is not None and self.replay.rewinds_to(moment.iteration))

    def remember(self, moment: Moment, snapshot: Callable[[], Checkpoint], order: HookOrder, wanted: bool) -> None:
        """Keep a snapshot for rewind, and write its digests, if it is ``wanted`` and the last one is not too recent.

        It is also wanted if the last one is old.  During replay, the journal decides.
        """
        digested, kept = (wanted or self.past.is_late()) and self.past.due(), False
        if self.replay is not None:
            digested = self.replay.next_row(moment.iteration, event="digest") is not None
            kept = self.replay.rewinds_to(moment.iteration)
        if digested or kept:
            began, checkpoint = time.perf_counter(), snapshot()
            self.keep(moment, checkpoint)
            if digested:
                self.digest(moment, checkpoint, order)
            self.past.took(time.perf_counter() - began, self._rows * APART)
