"""Find what a hook has recorded of the rows of a split, in the memory of hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigma_kernel.contracts import RowHistory
from sigma_kernel.errors import SigmaStateError
from sigma_kernel.network.tracing import Resolve

RECORDER = "default:row-history"  # the hook that records rows, and reads its record


def find_row_history(resolve: Resolve, memory: Mapping[str, Mapping[str, Any]], on: str) -> RowHistory:
    """Return the record of the rows of a split, from the memory of all hooks by name; SigmaStateError if none has."""
    recorder: Any = resolve("hook", RECORDER)
    for own in memory.values():
        if own["hook"].get("on") == on and (history := recorder.read_history(own["hook"])) is not None:
            return history  # type: ignore[no-any-return]
    raise SigmaStateError(
        f"row_history: nothing is recorded of the rows of {on!r}. Give the trainer the hook 'row_history' with on = "
        f"{on!r}, or attach it, and wait until it was due."
    )
