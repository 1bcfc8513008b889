"""Contract of stores: where checkpoints, journals and curves of runs are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from attrs import field, frozen
from attrs.converters import optional

Log = Callable[[str], Any]


@frozen(repr=False)
class Checkpoint:
    """A saved state: arrays by name, everything else as plain JSON values, and metadata.

    ``made_with`` are versions by name; retention of the best compares ``score``, and never removes a checkpoint with
    ``keep``; ``chain`` is the end of the journal at the time of saving.
    """

    arrays: Mapping[str, np.ndarray]
    values: Mapping[str, Any]
    made_with: Mapping[str, str] = field(factory=dict)
    score: float | None = field(default=None, converter=optional(float))
    keep: bool = False
    chain: Mapping[str, Any] = field(factory=dict)

    def __repr__(self) -> str:
        return f"Checkpoint({len(self.arrays)} arrays, iteration {self.values.get('clock', {}).get('iteration')})"
