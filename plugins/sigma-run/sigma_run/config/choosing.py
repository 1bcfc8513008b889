"""Choose the checkpoints of a run to load from: that of an iteration, the newest, or the best by its score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import isnan
from pathlib import Path
from typing import Any

from sigma_kernel.contracts.storing import Checkpoint, Checkpoints, Log, StoredRun
from sigma_kernel.errors import SigmaCheckpointError

Which = int | str | None  # an iteration, a name, ``best`` or ``newest``; None: the best if a hook keeps it, or newest

Use = Callable[[Path, Checkpoint], None]


def select_checkpoint(run: StoredRun, trainer: str, which: Which, log: Log, use: Use) -> tuple[Path, Checkpoint]:
    """Return the first of the wanted checkpoints that is intact and that ``use`` accepts, and its place; log others.

    ``use`` refuses one by raising SigmaCheckpointError.  Raises SigmaCheckpointError if none is left.
    """
    there, numbers = run.checkpoints(trainer), rank_checkpoints(run, trainer, which)
    if which in (None, "best", "newest"):
        label, checkpoint = there.newest(log, lambda label, checkpoint: use(there.place(label), checkpoint), numbers)
        return there.place(label), checkpoint
    place, checkpoint = there.place(str(numbers[0])), there.read(str(numbers[0]), log)
    use(place, checkpoint)
    return place, checkpoint


def rank_checkpoints(run: StoredRun, trainer: str, which: Which) -> Sequence[int]:
    """Return the wanted checkpoints of a trainer in the order in which to try them.

    Raises SigmaCheckpointError if there is none, unless the newest would do.
    """
    checkpoints = run.checkpoints(trainer)
    there = checkpoints.numbers()[::-1]
    if which not in (None, "best", "newest"):
        named = {number: name for number, (name, _) in checkpoints.names().items()}
        numbers = [number for number in there if str(which) in (str(number), named.get(number))]
        if not numbers:
            names = ", ".join(f"{n} ({named[n]})" if n in named else str(n) for n in reversed(there)) or "none"
            raise SigmaCheckpointError(f"{run.place}: has no checkpoint {which!r} of {trainer!r}. There are: {names}.")
        return numbers
    best = [] if which == "newest" else _best(checkpoints, there, asked=which == "best")
    if which == "best" and not best:
        remedy = "The hook checkpoint ranks them by its value, such as 'validation.loss'"
        raise SigmaCheckpointError(f"{run.place}: no checkpoint of {trainer!r} has a score. {remedy}.")
    return best if which == "best" else [*best, *(number for number in there if number not in best)]


def _best(checkpoints: Checkpoints, there: Sequence[int], asked: bool) -> list[int]:
    """Return the checkpoints with a score, best first; none if no hook keeps the best, unless they are asked for."""
    manifests = dict[int, Mapping[str, Any]]()
    for number in there:
        with suppress(SigmaCheckpointError):  # reading it raises the error
            manifests[number] = checkpoints.read_manifest(str(number), lambda text: None)
    rankings = (m["values"]["ranking"] for m in manifests.values() if "ranking" in m["values"])
    ranking: Mapping[str, Any] = next(rankings, {})
    if not asked and not ranking.get("best"):
        return []
    sign = 1 if ranking.get("prefer") == "least" else -1
    scores = {n: m["score"] for n, m in manifests.items() if m["score"] is not None and not isnan(m["score"])}
    return sorted(scores, key=lambda number: (sign * scores[number], number))
