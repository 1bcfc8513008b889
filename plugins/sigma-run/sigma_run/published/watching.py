"""What the import of a plugin takes and changes, examined in child processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from attrs import field, frozen

PROBE = (sys.executable, "-P", "-m", "sigma_run.published.probe")
SECONDS = 60  # after which an import is ended
SLOW = 0.5  # seconds of an import that are worth a note
FREE = ("attr", "attrs", "pluggy", "sigma_kernel")  # every command has imported these
STATEFUL = ("numpy",)  # libraries with a state of their own


@frozen
class ImportReport:
    """What the import of a plugin did: faults, each a sentence, and notes; ``ends`` is whether it ended the process."""

    faults: list[str] = field(factory=list)
    notes: list[str] = field(factory=list)
    ends: bool = False


def watch_imports(names: Iterable[str], seconds: float = SECONDS) -> dict[str, ImportReport]:
    """Import each plugin in a process of its own, several at a time; return a report for each distribution."""
    wanted = [*names]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(wanted, pool.map(lambda name: watch_import(name, seconds), wanted), strict=True))


def watch_import(name: str, seconds: float = SECONDS) -> ImportReport:
    """Import a plugin in a process of its own, and report what that did."""
    outcome = _probe(name, (), seconds)
    if isinstance(outcome, str):
        return ImportReport([f"{name}: {outcome}"], ends=True)
    changed = outcome["changed"]
    if loaded := [module for module in STATEFUL if module in outcome["modules"]]:  # their changes are not its
        again = _probe(name, loaded, seconds)
        changed = again["changed"] if isinstance(again, dict) else changed
    faults = [f"{name}: its import changes {what}. Leave that to the user." for what in changed]
    return ImportReport(faults, [f"{name}: {note}" for note in _notes(outcome)])


def _notes(outcome: Mapping[str, Any]) -> Iterator[str]:
    """Yield what an import takes and prints, which spoils nothing."""
    if first := outcome["output"].strip().partition("\n")[0]:
        yield f"its import prints {first[:80]!r}. Leave that out."
    if heavy := [module for module in outcome["modules"] if module not in {*FREE, *outcome["own"]}]:
        which = ", ".join(module for module in heavy if not module.startswith("_"))
        yield f"its import brings {which} with it. Import them in the modules of components, which are imported on use."
    if outcome["seconds"] > SLOW:
        yield f"its import takes {outcome['seconds']:.1f} seconds of every command that needs components."


def _probe(name: str, first: Iterable[str], seconds: float) -> dict[str, Any] | str:
    """Return what an import did, or why it did not end well."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path}
    try:
        done = subprocess.run(
            [*PROBE, name, *first], capture_output=True, text=True, errors="replace", timeout=seconds, env=environment,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"its import has not ended after {seconds:g} seconds. Move what waits out of its module."
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        return f"its import ended the process with exit code {done.returncode}. Move what ends it out of its module."
