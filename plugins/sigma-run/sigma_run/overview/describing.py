"""What a list shows of a run, or of a study: status, length, results, settings, and what a person says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import inf, isfinite
from pathlib import Path
from typing import Any

from sigma_kernel.contracts.storing import Log, StoredRun
from sigma_kernel.errors import SigmaError
from sigma_run.config.document import read
from sigma_run.config.stored import SUMMARY, read_configuration, read_document
from sigma_run.config.stores import BASE
from sigma_run.overview.marks import read_marks
from sigma_run.study.folder import read_study
from sigma_run.study.plan import Study, lengths, representative
from sigma_training.history.replay import is_fork

LENGTH = ("epochs", "iterations", "seconds")
ROOM, WHY, NAME = 1 << 18, 4000, 100  # characters: of the values of one run, of why it failed, of its status
BASELINES = 20  # of a run, and sentences about its results


def describe_run(run: Path, stored: StoredRun, log: Log) -> dict[str, Any]:
    """Return folder, status, length, results and settings by dotted key, as files say; nothing of them is executed.

    What cannot be read is logged.
    """
    summary = read_document(stored, SUMMARY, log)
    measured = _numbers(summary.get("metrics"))
    baselines = {name: _numbers(values) for name, values in _pairs(summary.get("baselines"))[:BASELINES]}
    advice = [str(text)[:WHY] for text in _list(summary.get("advice"))[:BASELINES]]
    settings = {name: _to_json(value) for name, value in _settings(stored, run, log)}
    return {
        "folder": str(run),
        **read_marks(stored, log).to_plain(),
        "status": str(summary.get("status", "unfinished"))[:NAME],
        **({"why": str(summary["why"])[:WHY]} if summary.get("why") else {}),
        **{key: _number(summary.get(key)) for key in LENGTH},
        "metrics": _limit_length(run, "metrics", measured, log),
        **({"baselines": _limit_length(run, "baselines", baselines, log)} if baselines else {}),
        **({"advice": advice} if advice else {}),
        **({"parent": parent} if (parent := parent_of(stored)) else {}),
        "settings": _limit_length(run, "settings", settings, log),
    }


def parent_of(stored: StoredRun) -> dict[str, Any] | None:
    """Return the run, the branch and the iteration at which a fork begins, as its journal says; None for other runs."""
    first = next(iter(stored.journal_rows()), {})
    parent = first.get("parent")
    if not is_fork(first) or not isinstance(parent, Mapping):
        return None
    return {
        "run": str(parent.get("run"))[:NAME],
        **{name: to_whole(parent.get(name)) for name in ("branch", "iteration")},
    }


def to_whole(value: Any) -> int:
    """Return a whole number; 0 for anything else."""
    return value if isinstance(value, int) else 0


def describe_study(path: Path, log: Log) -> dict[str, Any]:
    """Return folder, status, length, mean results and settings of a study, and how many members it has."""
    study, settings = Study(name="", varies=(), members=()), dict[str, Any]()
    try:
        study = read_study(path)
        written = read(path / BASE, regular=True).values
        settings = dict(flat({name: table for name, table in written.items() if name != "monitors"}))
    except SigmaError as error:
        log(str(error))
    return {
        "folder": str(path),
        "status": study.status if study.members else "unfinished",
        **lengths(study),
        "metrics": representative(study),
        "settings": _limit_length(path, "settings", {name: _to_json(value) for name, value in settings.items()}, log),
        "members": len(study.members),
    }


def _pairs(found: Any) -> list[tuple[str, Any]]:
    return [(str(name), value) for name, value in found.items()] if isinstance(found, Mapping) else []


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _numbers(found: Any) -> dict[str, int | float | None]:
    """Return the values of an object as numbers; nothing for anything else."""
    return {name: _number(value) for name, value in _pairs(found)}


def _number(value: Any) -> int | float | None:
    """Return a number; None for anything else, and for one that JSON has no number for, such as 1e999."""
    return value if isinstance(value, int | float) and isfinite(_float(value)) else None


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of hundreds of digits
        return inf


def _to_json(value: Any) -> Any:
    """Return a setting as a value that JSON has: dates, and numbers that are not finite, as text."""
    if isinstance(value, list):
        return [_to_json(inner) for inner in value]
    if isinstance(value, Mapping):
        return {name: _to_json(inner) for name, inner in value.items()}
    return value if isinstance(value, str) or _number(value) is not None else str(value)


def _limit_length(run: Path, what: str, values: Mapping[str, Any], log: Log) -> dict[str, Any]:
    """Return the values that fit into the room that one run has in a list; log how many do not."""
    ends = accumulate(len(name) + len(str(value)) for name, value in values.items())
    shown = {name: value for (name, value), end in zip(values.items(), ends, strict=True) if end <= ROOM}
    if len(shown) < len(values):
        log(f"{run}: {len(values) - len(shown)} of its {what} are not listed: they are longer than {ROOM:,}.")
    return shown


def _settings(stored: StoredRun, run: Path, log: Log) -> Iterator[tuple[str, Any]]:
    try:
        written = read_configuration(stored, run).values
        described = {name: table for name, table in written.items() if name != "monitors"}
        yield from flat(described)
    except SigmaError as error:
        log(str(error))


def flat(values: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested tables by dotted key."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{head}{name}.")
        else:
            yield f"{head}{name}", value
