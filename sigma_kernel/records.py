"""The run that an environment writes to, in a store: its records as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from attrs import define, field

from sigma_kernel.contracts import Chart
from sigma_kernel.contracts.running import Lifecycle
from sigma_kernel.contracts.storing import Excerpt, Log, StoredRun
from sigma_kernel.encoding import json_document
from sigma_kernel.errors import SigmaError, error_text
from sigma_kernel.plugins.catalogue import Catalogue
from sigma_kernel.plugins.resolver import Resolver, default_store
from sigma_kernel.summary import Summary

CURVES = "default:curves"  # the chart of every run


@define(eq=False)
class RunRecords:
    """The stored run of an environment, if it has one by now, and the plugins that are noted in it."""

    catalogue: Catalogue
    log: Log
    run: StoredRun | None = field(default=None, init=False)
    _noted: dict[str, str] = field(factory=dict, init=False)  # plugins in use, with versions
    _noting: threading.Lock = field(factory=threading.Lock, init=False)

    @property
    def folder(self) -> Path | None:
        """Return the folder of the run, if it has one."""
        return None if self.run is None else self.run.path

    def create(self, parent: Path, name: str, describe: Callable[[StoredRun], str], exact: str | None) -> StoredRun:
        """Create a run of a new name, or of an ``exact`` one, and write to it from now on."""
        store, which = default_store(self.catalogue), (name, False) if exact is None else (exact, True)
        self.run = store.create(parent, which[0], self.log, describe, self.note_plugins, which[1])
        return self.run

    def open(self, path: Path) -> StoredRun:
        """Return a run for reading."""
        return default_store(self.catalogue).open(path, self.log, self.note_plugins)

    def reopen(
        self, path: Path, trainers: Mapping[str, Lifecycle], edits: Sequence[str], configuration: str, log: Log
    ) -> tuple[StoredRun, Excerpt]:
        """Restore the trainers from a run, and write to it from now on; return it, and its journal since then.

        With ``edits`` the ``configuration`` is new.
        """
        self.release()
        run = self.open(path)
        run.lock()
        try:
            run.recover(log)
            journal = restore(run, trainers, edits, log)
            run.reopen(configuration if edits else None, journal)
        except BaseException:
            run.release()
            raise
        self.run, self._noted = run, self.catalogue.versions()
        return run, journal

    def note_plugins(self, run: StoredRun | None = None) -> None:
        """Write the plugins in use to a new run, or to the current one if they have changed."""
        used, there = self.catalogue.versions(), run or self.run
        with self._noting:  # not the gate, for whose holder the thread that mends a folder would wait
            if there is not None and (run is not None or used != self._noted):
                there.write("plugins.json", json_document({"plugins": used}))
            self._noted = used

    def leave(self, summary: Summary) -> None:
        """Write summary, curves, the plugins in use (hooks may have attached others) and all rows to the run."""
        if self.run is not None:
            error = self.run.journal.durable()
            self.run.write("summary.json", json_document(summary.to_dict()))
            if self.catalogue.offers("chart", CURVES):
                self.draw(self.run)
            self.note_plugins()
            if error is not None:
                raise error

    def attach(self, trainers: Iterable[Lifecycle]) -> None:
        """Let trainers write to the run, if there is one, and no other process."""
        if self.run is not None:
            for trainer in trainers:
                trainer.attach(self.run)
            self.run.lock()

    def draw(self, run: StoredRun) -> None:
        """Draw the curves of a run, labelled with the names of trainers."""
        try:
            chart: Chart = Resolver(self.catalogue)(Chart, CURVES, "curves")
            drawn = str(chart.draw(Path(run.place).name, run.curves(self.log)))
        except Exception as error:  # a failing plugin must not fail the run
            self.log(f"curves.svg is not drawn: {error_text(error)}")
        else:
            run.write("curves.svg", drawn)

    def release(self) -> None:
        """Let others write to the run."""
        if self.run is not None:
            self.run.release()

    def wait(self) -> None:
        """Wait until all checkpoints are written or have failed."""
        if self.run is not None:
            self.run.wait()

    def flush(self) -> None:
        """Wait until everything is written; raise SigmaCheckpointError if the newest checkpoint failed."""
        if self.run is not None:
            self.run.flush()


def restore(run: StoredRun, trainers: Mapping[str, Lifecycle], edits: Sequence[str], log: Log) -> Excerpt:
    """Restore the newest checkpoint of each trainer; return the journal since then.

    The whole journal is read if the rows after the newest bookmarks are not enough.  Raises SigmaCheckpointError if the
    run cannot be resumed, SigmaConfigError for edits that do not fit it.
    """
    lines = list[str]()
    try:
        journal = run.excerpt([*trainers], lines.append, whole=False)
        reached = [trainer.restore(run, journal, edits, lines.append) for trainer in trainers.values()]
    except SigmaError:  # reading all of it raises the error
        reached = [False]
    if not all(reached):
        journal = run.excerpt([*trainers], log)
        for trainer in trainers.values():
            trainer.restore(run, journal, edits, log)
        return journal
    for line in lines:
        log(line)
    return journal
