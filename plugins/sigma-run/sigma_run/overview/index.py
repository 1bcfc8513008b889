"""The index of a folder of runs: what a list shows of each, so that only changed runs are read again.

It is one file beside the runs, of those that were read without complaint. It can be deleted, and is written again;
small folders have none. A folder may come from elsewhere, so that entries are checked like the files of a run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from sigma_kernel.contracts.storing import Log, Store, StoredRun
from sigma_kernel.errors import SigmaCheckpointError, SigmaConfigError, SigmaStateError
from sigma_run.config.stored import SUMMARY
from sigma_run.config.stores import CONFIGURATION
from sigma_run.overview.describing import LENGTH, describe_run
from sigma_run.overview.marks import MARKS, make_marks
from sigma_store import files

INDEX = ".runs.json"
FORMAT = 1
WORTH = 100  # changed entries, from which on the file is written
LARGEST = 1 << 28  # bytes of the file
READ = (CONFIGURATION, SUMMARY, MARKS)  # what an entry is made of
KINDS = {
    "parent": dict,
    "metrics": dict,
    "settings": dict,
    "baselines": dict,
    "advice": list,
    "status": str,
    "why": str,
}
NUMBER = (int, float, type(None))

Versions = list[Any]
Entry = dict[str, Any]
Known = tuple[Versions, Entry]  # the versions of what was read of a run, and its description


@define(eq=False)
class RunIndex:
    """The file with the descriptions of the runs directly below a folder, each with the versions of what was read."""

    folder: Path
    _held: Mapping[str, Known] = field(factory=dict, init=False)  # what the file says

    def open(self) -> dict[str, Known]:
        """Return what the file says, as far as it is intact, by the names of run folders."""
        with suppress(SigmaCheckpointError):  # it is made again
            path = self.folder / INDEX
            document = files.document(path, files.get_bytes(path, LARGEST)) if os.path.lexists(path) else {}
            runs = document.get("runs") if document.get("format") == FORMAT else None
            pairs = runs.items() if isinstance(runs, dict) else ()
            self._held = {name: (pair[0], pair[1]) for name, pair in pairs if _is_pair(pair)}
        return dict(self._held)

    def save(self, pairs: Mapping[str, Known]) -> None:
        """Write the file, if enough has changed; a folder that cannot be written to has none."""
        whole = {name: pair for name, pair in pairs.items() if is_entry(pair[1])}
        changed = sum(self._held.get(name) != pair for name, pair in whole.items())
        if changed + len(self._held.keys() - whole.keys()) < WORTH:
            return
        with suppress(SigmaStateError):  # of a folder of somebody else: its runs are read each time
            files.put_text(self.folder / INDEX, json.dumps({"format": FORMAT, "runs": whole}, allow_nan=False))
        self._held = whole


def read_runs(store: Store, runs: Sequence[Path], index: RunIndex | None, log: Log) -> Iterator[dict[str, Any]]:
    """Yield the descriptions of runs, reading those that are new or have changed since the index was written."""
    before = index.open() if index is not None else {}
    pairs = dict[str, Known]()
    for run in runs:
        stored = store.open(run, log, lambda run: None)
        versions, pair, complaints = read_versions(stored), before.get(run.name), list[str]()
        if pair is None or pair[0] != versions:
            pair = versions, describe_run(run, stored, complaints.append)
        for text in complaints:
            log(text)
        if not complaints:  # else they are made each time
            pairs[run.name] = pair
        yield {**pair[1], "folder": str(run)}
    if index is not None:
        index.save(pairs)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and is_entry(pair[1])


def read_versions(stored: StoredRun) -> Versions:
    """Return a JSON value that changes with what a list shows of a run."""
    versions = map(stored.version, READ)
    return [[*version] if isinstance(version, tuple) else version for version in versions]


def is_entry(entry: Any) -> bool:
    """Return whether a JSON value describes a run as :func:`describe_run` does."""
    if not isinstance(entry, dict) or not {"metrics", "settings", "status", *LENGTH} <= entry.keys():
        return False
    rest = {name: value for name, value in entry.items() if name not in (*KINDS, *LENGTH, "folder")}
    numbers = [entry[name] for name in LENGTH], entry["metrics"].values() if isinstance(entry["metrics"], dict) else []
    typed = all(isinstance(entry.get(name, kind()), kind) for name, kind in KINDS.items())
    if not typed or not all(isinstance(value, NUMBER) for values in numbers for value in values):
        return False
    if "parent" in entry and entry["parent"].keys() != {"run", "branch", "iteration"}:
        return False
    if not all(isinstance(values, dict) for values in entry.get("baselines", {}).values()):
        return False
    with suppress(SigmaConfigError):
        make_marks("", rest)
        return True
    return False
