"""List the runs in a directory; a run that reads slowly does not delay the others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.contracts import Store
from sigma_kernel.errors import SigmaCheckpointError, SigmaError, SigmaStateError
from sigma_monitor_control.aside import Aside
from sigma_monitor_web.readers import AGAIN, RunLister
from sigma_monitor_web.run_table import TableQuery
from sigma_run.launcher import say
from sigma_run.overview import RunIndex, describe_run, read_versions, reproduce_run
from sigma_store import FolderStore

STORE: Store = FolderStore()  # of the runs in a directory: plugins with other stores are not asked
PROMPT = 5.0  # seconds after which a list is shown without the runs that are not read yet
RESULTS = ("metrics", "baselines", "advice")  # of a run that has ended
MOST, COMMANDS = 10, 1000  # complaints about a run, and commands of one
UNREADABLE = "unreadable"  # the status of a run that cannot be read, or has not been read yet
EMPTY: Mapping[str, Any] = {"epochs": None, "iterations": None, "seconds": None, "metrics": {}, "settings": {}}

Versions = list[Any]


@define(eq=False)
class RunList:
    """The list entries of the runs directly below a directory; changed runs are read again."""

    folder: Path
    lister: RunLister = field(factory=RunLister)
    # each run's entry, the versions of its files, and the time of reading
    _known: dict[Path, tuple[Versions, dict[str, Any], float]] = field(factory=dict, init=False)
    _index: RunIndex | None = field(default=None, init=False)  # once it was read
    _reader: Aside = field(factory=Aside, init=False)  # the only user of the lister
    _waiter: Aside = field(factory=Aside, init=False)
    _reading: Future[None] | None = field(default=None, init=False)
    _began: float = field(default=0.0, init=False)

    def begin(self) -> None:
        """Start the reading process, so that the first list need not wait for it."""
        self._reader.do(self.lister.begin)

    def paths(self) -> list[Path]:
        """Return the run folders, oldest first."""
        return [*STORE.runs([self.folder])] if self.folder.is_dir() else []

    def runs(self) -> Future[list[dict[str, Any]]]:
        """Return a future of status, length, settings and results of all runs, oldest first."""
        return self._waiter.do(self._runs)

    def names(self) -> Future[list[list[str]]]:
        """Return a future of the name, the title and the status of all runs, newest first."""
        return self._waiter.do(lambda: [_name(run) for run in reversed(self._runs())])

    def table(self, query: TableQuery) -> Future[dict[str, Any]]:
        """Return a future of a part of the table of runs; its exception says what is wrong with a filter."""
        return self._waiter.do(lambda: query.answer(self._runs()))

    def commands(self, path: Path) -> Future[list[dict[str, Any]]]:
        """Return a future of the commands of a run, as they were applied."""
        return self._reader.do(lambda: self.lister.ask("commands", path))

    def reproduce(self, path: Path) -> Future[dict[str, Any]]:
        """Return a future of the commands that train a run again; its exception says why there are none."""
        return self._reader.do(lambda: check_answer(self.lister.ask("reproduce", path)))

    def results(self, path: Path) -> Future[dict[str, Any]]:
        """Return a future of the metrics and baselines of a run; its exception says why none can be read."""
        return self._reader.do(lambda: select_results(self.lister.ask("describe", path)))

    def expose_run(self, path: Path) -> tuple[bytes, str]:
        """Return the Prometheus exposition of a run and its media type; raise SigmaStateError if it cannot be read."""
        body, type_ = self._reader.do(lambda: self.lister.ask("expose", path)).result()
        return body.encode(), type_

    def end(self) -> None:
        """End the threads and the process."""
        self._reader.do(self.lister.close)
        self._reader.end()
        self._waiter.end()

    def _runs(self) -> list[dict[str, Any]]:
        paths = self.paths()
        if self._reading is None or self._reading.done():
            self._began, self._reading = time.monotonic(), self._reader.do(lambda: self._read(paths))
        with suppress(TimeoutError):
            self._reading.result(max(0.0, self._began + PROMPT - time.monotonic()))
        return [self._present_description(path) for path in paths]

    def _read(self, paths: Sequence[Path]) -> None:
        """Read new and changed runs, retry some failed ones, and drop deleted ones; keep the index."""
        if self._index is None:
            self._index = RunIndex(self.folder)
            self._known = {self.folder / name: (*pair, 0.0) for name, pair in self._index.open().items()}
        self._known = {path: self._known[path] for path in paths if path in self._known}
        for path in paths:
            versions = _read_versions(path)
            before, description, since = self._known.get(path, ([], {}, 0.0))
            failed_long_ago = description.get("status") == UNREADABLE and time.monotonic() - since > AGAIN
            if before != versions or failed_long_ago:
                self._known[path] = versions, self._ask_description(path), time.monotonic()
        pairs = {path.name: (versions, entry) for path, (versions, entry, _) in self._known.items()}
        self._index.save({name: pair for name, pair in pairs.items() if pair[1]["status"] != UNREADABLE})

    def _ask_description(self, path: Path) -> dict[str, Any]:
        try:
            return dict(self.lister.ask("describe", path))
        except SigmaStateError as error:
            return _unread(path, str(error))

    def _present_description(self, path: Path) -> dict[str, Any]:
        _, description, _ = self._known.get(path, ([], _unread(path, f"{path}: is being read."), 0.0))
        own = {"folder": str(path), "name": path.name}
        return {**description, **own, **({"status": "running"} if STORE.is_locked(path) else {})}


def _name(run: Mapping[str, Any]) -> list[str]:
    return [run["name"], str(run.get("title", "")), str(run["status"])]


def _unread(path: Path, why: str) -> dict[str, Any]:
    return {"folder": str(path), "status": UNREADABLE, "why": why, **EMPTY}


def _read_versions(run: Path) -> Versions:
    """Return what tells whether what a list shows of a run has changed; nothing if the run is gone."""
    try:
        stored = STORE.open(run, _silent, lambda run: None)
    except SigmaCheckpointError:  # reading it says so
        return []
    return read_versions(stored)


def _silent(text: str) -> None:
    """Log nothing: the process that reads a run does."""


def describe_folder(folder: Path) -> dict[str, Any]:
    """Return what a list shows of a run folder, without asking plugins for other stores.

    A run with ``complaints`` is not kept in the index, so that these are made again.
    """
    complaints = list[str]()
    description = describe_run(folder, STORE.open(folder, say, lambda run: None), complaints.append)
    for text in complaints:
        say(text, "yellow")
    return {**description, **({"complaints": complaints[:MOST]} if complaints else {})}


def list_commands(folder: Path) -> list[dict[str, Any]]:
    """Return the commands in the journal of a run folder, the first of many."""
    rows = STORE.open(folder, say, lambda run: None).journal_rows()
    return [dict(row) for row in islice((row for row in rows if "command" in row), COMMANDS)]


def reproduce_folder(folder: Path) -> dict[str, Any]:
    """Return the commands that train the run of a folder again; or, as ``error``, why there are none."""
    try:
        return reproduce_run(folder, STORE.open(folder, _silent, lambda run: None))
    except SigmaError as error:
        return {"error": str(error)}


def check_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of another process; raise SigmaStateError for one that says why there is none."""
    if "error" in answer:
        raise SigmaStateError(answer["error"])
    return dict(answer)


def select_results(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results in a description of a run; those that it does not have are left out."""
    return {name: description[name] for name in RESULTS if description.get(name)}
