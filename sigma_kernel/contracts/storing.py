"""Contracts of what is kept of a run: checkpoints, and the configuration that describes it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen
from attrs.converters import optional

from sigma_kernel.settings import Settled

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


class ConfigurationFormat(Settled):
    """Write runs that were made in Python as configurations (component kind ``configuration``).

    The kernel uses the default for the role ``run``: for ``config.toml`` of a run folder, and for ``trainer.save``.
    """

    @abstractmethod
    def describe(self, environment: Any, run: Path) -> str:
        """Return the text that describes an environment; save the arrays that it refers to in its run folder.

        What cannot be written is a SigmaWarning, at the line of the caller's code.
        """

    @abstractmethod
    def save(self, environment: Any, trainer: Any, path: Path | str) -> Path:
        """Write configuration, parameters and state of a trainer to a directory, atomically; return its path.

        Another saved network there is replaced.  Raises SigmaConfigError if a setting cannot be written, and
        SigmaStateError if the directory holds anything else, or cannot be written.
        """
