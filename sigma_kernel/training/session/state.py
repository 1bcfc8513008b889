"""The state of a run: everything that its future depends on, as plain data.

A state is never modified: functions return a new one.  So a command that fails leaves no trace, and undo, rewind and
resume restore former values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from sigma_kernel.clock import Moment
from sigma_kernel.training.commands.changes import Changes
from sigma_kernel.training.data.feed import Cursor
from sigma_kernel.training.hooks.order import Memory
from sigma_kernel.training.step.live import Live


@frozen(eq=False, kw_only=True, repr=False)
class RunState:
    """The state of a run.  ``arrays`` are on the device, by name; hooks write to their ``memory`` in place."""

    arrays: Mapping[str, Any]
    kept: Mapping[str, np.ndarray] = field(factory=dict)  # on the host, by KEPT or UNDO and their names
    moment: Moment = Moment()
    cursor: Cursor
    live: Live
    memory: Memory
    published: Mapping[str, Any] = field(factory=dict)
    changes: Changes = field(factory=dict)  # how the components differ from those of the settings
    undo: Sequence[Mapping[str, Any]] = ()  # entries to undo the last commands


def plain(published: Mapping[str, Any]) -> dict[str, Any]:
    """Return the published values that a snapshot saves: numbers, strings, booleans."""
    return {name: value for name, value in published.items() if isinstance(value, int | float | str | bool)}
