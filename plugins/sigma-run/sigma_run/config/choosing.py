"""Choose the checkpoints of a run to load from: that of an iteration, the newest, or the best by its score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Any

from sigma_kernel.contracts.storing import Checkpoint, Log
from sigma_kernel.errors import SigmaCheckpointError
from sigma_store.checkpoints.store import list_checkpoints, newest_good, read, read_manifest

Which = int | str | None  # an iteration, ``best`` or ``newest``; None: the best if a hook keeps it, else the newest

Use = Callable[[Path, Checkpoint], None]


def chosen(run: Path, trainer: str, which: Which, log: Log, use: Use) -> tuple[Path, Checkpoint]:
    """Return the first of the wanted checkpoints that is intact and that ``use`` accepts; log the others.

    ``use`` refuses one by raising SigmaCheckpointError.  Raises SigmaCheckpointError if none is left.
    """
    paths = wanted(run, trainer, which)
    if which in (None, "best", "newest"):
        return newest_good(run, trainer, log, use, paths)
    found = read(paths[0], log)
    use(paths[0], found)
    return paths[0], found


def wanted(run: Path, trainer: str, which: Which) -> Sequence[Path]:
    """Return the wanted checkpoints of a trainer in the order in which to try them.

    Raises SigmaCheckpointError if there is none, unless the newest would do.
    """
    there = list_checkpoints(run, trainer)[::-1]
    if which not in (None, "best", "newest"):
        found = [path for path in there if path.name == str(which)]
        if not found:
            known = ", ".join(path.name for path in reversed(there)) or "none"
            raise SigmaCheckpointError(f"{run}: has no checkpoint {which!r} of {trainer!r}. There are: {known}.")
        return found
    best = [] if which == "newest" else _best(there, asked=which == "best")
    if which == "best" and not best:
        remedy = "The hook checkpoint ranks them by its value, such as 'validation.loss'"
        raise SigmaCheckpointError(f"{run}: no checkpoint of {trainer!r} has a score. {remedy}.")
    return best if which == "best" else [*best, *(path for path in there if path not in best)]


def _best(there: Sequence[Path], asked: bool) -> list[Path]:
    """Return the checkpoints with a score, best first; none if no hook keeps the best, unless they are asked for."""
    manifests = dict[Path, Mapping[str, Any]]()
    for path in there:
        with suppress(SigmaCheckpointError):  # reading it raises the error
            manifests[path] = read_manifest(path, lambda text: None)
    rankings = (m["values"]["ranking"] for m in manifests.values() if "ranking" in m["values"])
    ranking: Mapping[str, Any] = next(rankings, {})
    if not asked and not ranking.get("best"):
        return []
    sign = 1 if ranking.get("prefer") == "least" else -1
    scores = {path: m["score"] for path, m in manifests.items() if m["score"] is not None and not isnan(m["score"])}
    return sorted(scores, key=lambda path: (sign * scores[path], int(path.name)))
