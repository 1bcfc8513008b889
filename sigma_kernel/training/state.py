"""The state tree of a session: everything that decides what comes next, taken out and put back exactly.

Arrays lie in it by name; everything else is plain JSON values.  What depends on the wall clock (seconds, and what hooks
that go by them remember and publish) is saved too, but has no part in the digests, which tell two runs apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Protocol

import numpy as np

from sigma_kernel.clock import Clock, Moment
from sigma_kernel.errors import SigmaTrainingError
from sigma_kernel.training.changes import Makeup
from sigma_kernel.training.checkpoint import Checkpoint
from sigma_kernel.training.control import Control
from sigma_kernel.training.feed import Cursor, Feed
from sigma_kernel.training.hooks import Runner
from sigma_kernel.training.live import Live
from sigma_kernel.training.programs import Programs


class Holder(Protocol):
    """What a session holds that is state, or is needed to save it."""

    name: str
    programs: Programs
    feed: Feed
    live: Live
    runner: Runner
    control: Control
    clock: Clock
    arrays: dict[str, Any]
    kept: dict[str, np.ndarray]
    classes: tuple[str, ...]
    published: dict[str, Any]
    observed: dict[str, np.ndarray]
    makeup: Makeup
    settled: Moment
    pause_at: int | None
    until: int | None
    midway: str
    halted: bool

    def adopt(self, changes: Mapping[str, Any]) -> None:
        """Go over to components that differ so from those of the settings."""


FORMER = "undo."  # arrays that are kept to undo commands


def capture(held: Holder) -> Checkpoint:
    """Return the whole state tree."""
    arrays = {name: held.programs.backend.to_host(value) for name, value in held.arrays.items()}
    cursor = held.feed.cursor
    values = {
        "trainer": held.name,
        "clock": held.clock.state(),
        "cursor": [cursor.epoch, cursor.block, cursor.row],
        "live": dict(held.live.base),
        "configured": {name: value.base for name, value in held.live.values.items()},
        "hooks": {name: _remembered(name, memory) for name, memory in held.runner.memory.items()},
        "streams": dict(held.programs.model.shapes.streams.numbers),
        "classes": list(held.classes),  # this and the next for who predicts without the data
        "batch_size": held.feed.batch_size,
        "published": plain(held.published),
        "changes": deepcopy(dict(held.makeup.changes)),
        "undone": deepcopy(held.makeup.undone),
        "goals": [held.pause_at, held.until],
        "midway": _midway(held),
    }
    return Checkpoint({**arrays, **held.kept}, values)


def _remembered(hook: str, memory: Mapping[str, Any]) -> Any:
    """Return a copy of what a hook remembers; raises SigmaTrainingError for what cannot be saved."""
    for key, value in memory["hook"].items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise SigmaTrainingError(
                f"hook {hook!r}: memory[{key!r}] cannot be saved: {error}. Keep plain values in it: numbers, texts, "
                "lists, dictionaries."
            ) from error
    return deepcopy(memory)


def plain(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published values that are saved."""
    return {name: value for name, value in published.items() if isinstance(value, int | float | str | bool)}


def _midway(held: Holder) -> str:
    """Return how training is under way, if it is: running, paused, or over; who was stopped from outside goes on."""
    status = held.control.status if held.control.status in ("running", "paused") else ""
    return "over" if status and held.control.over and not held.halted else status


def put_back(held: Holder, saved: Checkpoint) -> None:
    """Put a state tree back; what it does not hold starts afresh.

    Where a live value was configured otherwise when the state was saved, the present configuration holds.
    """
    values = saved.values
    held.adopt(values.get("changes", {}))
    held.makeup.undone = deepcopy(values.get("undone", []))
    to_device = held.programs.backend.to_device
    held.kept = {name: value for name, value in saved.arrays.items() if name.startswith(("kept.", FORMER))}
    held.arrays = {name: to_device(value) for name, value in saved.arrays.items() if name not in held.kept}
    held.clock = Clock()
    if "clock" in values:
        held.clock.restore(values["clock"])
    held.feed.rewind()
    if "cursor" in values:
        held.feed.cursor = Cursor(*values["cursor"])
    held.live.restore(_steered(held.live, values))
    held.runner.forget()
    memories = deepcopy(values.get("hooks", {}))
    held.runner.memory.update({name: memory for name, memory in memories.items() if name in held.runner.hooks})
    held.published, held.observed = dict(values.get("published", {})), {}
    midway = values.get("midway") or ""
    held.settled, held.midway = held.clock.moment, midway if isinstance(midway, str) else "running"
    if held.midway:
        held.pause_at, held.until = values["goals"]


def _steered(live: Live, values: Mapping[str, Any]) -> dict[str, float]:
    """Return the saved bases of live values, but for those whose configuration has changed since."""
    now = {name: value.base for name, value in live.values.items()}
    then = {**now, **values.get("configured", {})}
    return {n: base for n, base in values.get("live", {}).items() if n in now and then[n] == now[n]}


def digests(saved: Checkpoint, runner: Runner) -> dict[str, str]:
    """Return a short sha256 of every array by its name, and of what else does not depend on the wall clock."""
    values, timed = saved.values, runner.timed
    parts = {
        "clock": {scale: count for scale, count in values["clock"].items() if scale != "second"},
        "cursor": values["cursor"],
        "live": values["live"],
        "published": {name: v for name, v in values["published"].items() if not _aside(name, runner)},
        **{f"hooks.{name}": memory for name, memory in values["hooks"].items() if name not in timed},
    }
    parts |= {"changes": values["changes"]} if values.get("changes") else {}
    found = {name: _short(_bytes(value)) for name, value in saved.arrays.items() if not name.startswith(FORMER)}
    return found | {name: _short(json.dumps(part, sort_keys=True).encode()) for name, part in parts.items()}


def _aside(name: str, runner: Runner) -> bool:
    """Return whether a published value depends on the wall clock, or on how many workers there are."""
    return runner.by_clock(name) or name.startswith("workers.")


def _bytes(value: np.ndarray) -> bytes:
    return value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes()


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
