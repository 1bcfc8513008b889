"""Commands that change something: whole or not at all, and undone again.

What a command changed is found by comparing the session before and after it, whatever it was.  The former state of the
last few commands is part of the state tree, so that a run that was resumed, rewound or done again can undo them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from attrs import frozen

from sigma_kernel.contracts import Backend
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.training.commands.changes import FORMER
from sigma_kernel.training.commands.types import NAMES, Command, Undo
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.session.state import plain
from sigma_kernel.training.step.model import OPTIMISER

MOST = 16  # commands that can be undone
MOST_BYTES = 64 * 2**20  # of arrays that are kept for that, in all


@frozen(eq=False)
class Former:
    """What a command may change, as it was."""

    backend: Backend
    changes: Mapping[str, Any]
    arrays: Mapping[str, Any]
    kept: Mapping[str, np.ndarray]
    live: Mapping[str, float]
    published: Mapping[str, Any]
    memory: Mapping[str, Any]

    @classmethod
    def of(cls, session: Session) -> Former:
        """Return what is now."""
        parts = session.arrays, session.kept, session.live.base, session.published, session.runner.memory
        return cls(session.programs.backend, session.makeup.changes, *map(dict, parts))

    def give_back(self, session: Session) -> None:
        """Put everything back, as if the command had never been."""
        session.remake(session, self.changes)
        session.arrays, session.kept = dict(self.arrays), dict(self.kept)
        session.live.restore(self.live)
        session.published, session.runner.memory = dict(self.published), dict(self.memory)

    # -- what has changed since ----------------------------------------------------------------------------------------
    def values(self, session: Session) -> dict[str, Any]:
        """Return the former of what has changed and is no array, as plain values."""
        swapped = self.changes.get("optimiser") != session.makeup.changes.get("optimiser")  # one comes as configured
        settings = {name: old for name, old in self.live.items() if swapped and name.startswith(OPTIMISER)}
        return {
            "changes": dict(self.changes),
            "live": settings | _changed(self.live, session.live.base),
            "published": plain(_changed(self.published, session.published)),
            "new": [name for name in session.published if name not in self.published],
            "memory": deepcopy(_changed(self.memory, session.runner.memory)),
        }

    def held(self, session: Session) -> dict[str, np.ndarray]:
        """Return the former arrays that have changed; what another backend holds now is the same."""
        found = _changed(self.kept, session.kept)
        if session.programs.backend is self.backend:
            found |= {n: self.backend.to_host(old) for n, old in _changed(self.arrays, session.arrays).items()}
        return {name: value for name, value in found.items() if not name.startswith(FORMER)}


def _changed(old: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the former of what is another object now, or none."""
    return {name: value for name, value in old.items() if now.get(name) is not value}


def carry_out(session: Session, command: Command, act: Callable[[], Any]) -> None:
    """Let a command act and write it to the journal, or change nothing; from outside, it can be undone then."""
    if session.makeup.changing:  # a part of what another command does
        act()
        return
    former, session.makeup.changing = Former.of(session), True
    try:
        act()
        session.note(command.to_dict())
    except Exception:
        former.give_back(session)
        raise
    finally:
        session.makeup.changing = False
    if not session.chronicle.inside:
        _remember(session, NAMES[type(command)], former)


def check_free(session: Session) -> None:
    """Raise SigmaStateError between a resume and the training that does again what its journal holds."""
    if session.chronicle.behind and not session.control.busy:
        now = session.clock.moment.iteration
        raise SigmaStateError(
            f"{session.name}: was resumed at iteration {now}, and what its journal holds after that is not done again "
            "yet. Change it once it trains: that acts afterwards."
        )


def _remember(session: Session, command: str, former: Former) -> None:
    """Keep what it takes to undo a command, unless that is too much; of old ones only so many."""
    number = session.makeup.undone[-1]["number"] + 1 if session.makeup.undone else 0
    entry = {"number": number, "command": command, **former.values(session)}
    held = former.held(session)
    size = sum(value.nbytes for value in held.values())
    if size > MOST_BYTES:
        entry["lost"] = f"its former state of {size / 2**20:,.0f} MiB was not kept"
    else:
        session.kept |= {f"{FORMER}{number}.{name}": value for name, value in held.items()}
    session.makeup.undone.append(entry)
    while len(session.makeup.undone) > MOST or (len(session.makeup.undone) > 1 and _bytes(session) > MOST_BYTES):
        _forget(session, session.makeup.undone.pop(0))


def _bytes(session: Session) -> int:
    return sum(value.nbytes for name, value in session.kept.items() if name.startswith(FORMER))


def _forget(session: Session, entry: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Take away and return the arrays that are kept to undo one command."""
    head = f"{FORMER}{entry['number']}."
    return {name.removeprefix(head): session.kept.pop(name) for name in [*session.kept] if name.startswith(head)}


# -- undoing -----------------------------------------------------------------------------------------------------------
def undoable(session: Session) -> Mapping[str, Any]:
    """Return what is known of the last command that can be undone; SigmaStateError with the reason if none can."""
    if not session.makeup.undone:
        raise SigmaStateError(
            f"{session.name}: there is nothing to undo. What can be is the last {MOST} times that somebody outside "
            "set, attached, detached or swapped something."
        )
    entry: Mapping[str, Any] = session.makeup.undone[-1]
    if "lost" in entry:
        raise SigmaStateError(f"{session.name}: cannot undo {entry['command']}: {entry['lost']}. Change it by hand.")
    return entry


def undo(session: Session) -> None:
    """Undo the last command that can be undone, and write that to the journal."""
    entry, there = undoable(session), set(session.runner.hooks)
    session.remake(session, entry["changes"])
    arrays = _forget(session, session.makeup.undone.pop())
    session.kept |= {name: value for name, value in arrays.items() if name.startswith("kept.")}
    place = session.programs.backend.to_device
    session.arrays |= {name: place(value) for name, value in arrays.items() if name not in session.kept}
    session.live.restore({**session.live.base, **entry["live"]})
    for name in entry["new"]:
        session.published.pop(name, None)
    session.published |= entry["published"]
    for name, old in deepcopy(entry["memory"]).items():
        now = session.runner.memory.get(name, old)
        session.runner.memory[name] = {**now, "criterion": old["criterion"]} if name in there else old
    session.note({**Undo().to_dict(), "undoes": entry["command"]})
