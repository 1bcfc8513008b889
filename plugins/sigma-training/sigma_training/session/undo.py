"""Undo commands: record the former values of what they changed, and restore them.

The changes of a command are found by comparing the states before and after it.  The entries of the last commands are
part of the state, so that they can also be undone after a resume, rewind or replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from attrs import evolve

from sigma_kernel.errors import SigmaStateError
from sigma_training.names import KEPT, UNDO
from sigma_training.session.state import Present, RunState, Setup, plain_values

MOST = 16  # commands that can be undone
MOST_BYTES = 64 * 2**20  # of former arrays, in total


def record_undo(command: str, former: Present, present: Present) -> RunState:
    """Add an undo entry to the state after a command; drop the oldest entries beyond the limits."""
    before, after, old, new = former.state, present.state, former.setup, present.setup
    number = after.undo[-1]["number"] + 1 if after.undo else 0
    entry = {"number": number, "command": command, **_values(before, after)}
    arrays = _arrays(before, after, old, new)
    size = sum(value.nbytes for value in arrays.values())
    if size > MOST_BYTES:
        entry["lost"] = f"its former state of {size / 2**20:,.0f} MiB was not kept"
        arrays = {}
    kept = {**after.kept, **{f"{UNDO}{number}.{name}": value for name, value in arrays.items()}}
    state = evolve(after, kept=kept, undo=[*after.undo, entry])
    while len(state.undo) > MOST or (len(state.undo) > 1 and _bytes(state) > MOST_BYTES):
        state, _ = _remove_entry(state, 0)
    return state


def _values(before: RunState, after: RunState) -> dict[str, Any]:
    """Return the former values of everything that changed, except arrays, as plain values."""
    slots = {*before.changes, *after.changes}  # a new optimiser starts as configured
    swapped = tuple(f"{slot}." for slot in slots if before.changes.get(slot) != after.changes.get(slot))
    settings = {name: old for name, old in before.live.base.items() if name.startswith(swapped)}
    return {
        "changes": dict(before.changes),
        "live": settings | {n: old for n, old in before.live.base.items() if after.live.base.get(n) != old},
        "published": plain_values(_old_values(before.published, after.published)),
        "new": [name for name in after.published if name not in before.published],
        "memory": deepcopy(_old_values(before.memory, after.memory)),
    }


def _arrays(before: RunState, after: RunState, old: Setup, new: Setup) -> dict[str, np.ndarray]:
    """Return the former arrays that changed; a swapped backend holds the same ones."""
    arrays = {name: value for name, value in _old_values(before.kept, after.kept).items() if not name.startswith(UNDO)}
    if new.parts.backend is not old.parts.backend:
        return arrays
    return arrays | {name: old.to_host(value) for name, value in _old_values(before.arrays, after.arrays).items()}


def _old_values(old: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the former value of each entry that is now another object, or missing."""
    return {name: value for name, value in old.items() if now.get(name) is not value}


def _bytes(state: RunState) -> int:
    return sum(value.nbytes for name, value in state.kept.items() if name.startswith(UNDO))


def _remove_entry(state: RunState, place: int) -> tuple[RunState, dict[str, np.ndarray]]:
    """Remove one entry; return the state without it, and the arrays that the entry kept."""
    head = f"{UNDO}{state.undo[place]['number']}."
    arrays = {name.removeprefix(head): value for name, value in state.kept.items() if name.startswith(head)}
    kept = {name: value for name, value in state.kept.items() if not name.startswith(head)}
    return evolve(state, kept=kept, undo=[entry for entry in state.undo if entry is not state.undo[place]]), arrays


# -- undoing -----------------------------------------------------------------------------------------------------------
def check_undoable(trainer: str, state: RunState) -> Mapping[str, Any]:
    """Return the entry of the last command; raise SigmaStateError, with the reason, if it cannot be undone."""
    if not state.undo:
        raise SigmaStateError(
            f"{trainer}: there is nothing to undo. The last {MOST} commands from outside can be undone that "
            "changed values, components or rows."
        )
    entry = state.undo[-1]
    if "lost" in entry:
        raise SigmaStateError(f"{trainer}: cannot undo {entry['command']}: {entry['lost']}. Change it by hand.")
    return entry


def restore_former(state: RunState, setup: Setup, entry: Mapping[str, Any], there: Mapping[str, Any]) -> RunState:
    """Undo the last entry of a state, on a setup that has the former changes already.

    ``there`` are the hooks before the undo: those keep their memory, except that of criteria.
    """
    state, arrays = _remove_entry(state, -1)
    kept = {name: value for name, value in arrays.items() if name.startswith(KEPT)}
    former = {name: setup.to_device(value) for name, value in arrays.items() if name not in kept}
    published = {name: value for name, value in state.published.items() if name not in entry["new"]}
    memory: dict[str, Any] = dict(state.memory)
    for name, old in deepcopy(dict(entry["memory"])).items():
        now = memory.get(name) or old
        memory[name] = {**now, "criterion": old["criterion"]} if name in there else old
    return evolve(
        state,
        arrays={**state.arrays, **former},
        kept={**state.kept, **kept},
        live=state.live.with_base({**state.live.base, **entry["live"]}),
        memory=memory,
        published={**published, **entry["published"]},
    )
