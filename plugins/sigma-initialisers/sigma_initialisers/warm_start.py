"""Warm start: initialise parameters from the checkpoint of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from attrs import define, field

from sigma_initialisers.naming import fitting, translate_address
from sigma_initialisers.saved import read_saved
from sigma_kernel.contracts import Draws, Initialiser, Parameter
from sigma_kernel.errors import SigmaCheckpointError, suggest_name

Saved = tuple[Mapping[str, np.ndarray], Mapping[str, Mapping[str, Sequence[Any]]]]  # parameters, and names of the data


@define(eq=False)
class WarmStart(Initialiser):
    """Load the values of the same address from the newest intact checkpoint of a run.

    Raises SigmaCheckpointError if no checkpoint is intact or if it lacks that address, and SigmaConfigError if the
    shapes differ.  Training raises SigmaDataError if the columns that matched parameters read, or the classes that they
    choose among, have other names than in that run, or are in another order.

    Args:
        run: Folder of the run.
        trainer: Trainer of that run; needed only if it had several.
        map: Names of layers or parameters in that run, where they differ: ``{"4-output": "2-output"}``.
    """

    outside: ClassVar[bool] = True

    run: Path = field(converter=Path)
    trainer: str | None = field(default=None, kw_only=True)
    map: Mapping[str, str] = field(factory=dict, kw_only=True)
    _saved: Saved | None = field(default=None, init=False, repr=False)

    def values(self, address: str, parameter: Parameter, draws: Draws) -> np.ndarray:
        """Return the saved values, in float64."""
        name, saved = translate_address(address, self.map), self.load_parameters()
        if name not in saved:
            raise SigmaCheckpointError(
                f"{address}: {self.run} has no parameter {name!r}.{suggest_name(name, saved)} "
                "Give its name there in `map`, or match fewer parameters."
            )
        return fitting(address, parameter, saved[name], f"{name!r} of {self.run}")

    @property
    def learned(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Return the columns and the classes of the run."""
        return self._read()[1]

    def load_parameters(self) -> Mapping[str, np.ndarray]:
        """Return the parameters of the newest intact checkpoint by address."""
        return self._read()[0]

    def _read(self) -> Saved:
        """Return the parameters and the names of the run; the file is read once."""
        if self._saved is None:
            self._saved = read_saved(self.run, self.trainer)
        return self._saved
