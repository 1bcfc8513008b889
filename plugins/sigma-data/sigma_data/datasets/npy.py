"""Your own .npy files as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays, scale_numbers
from sigma_data.datasets.splits import Divided
from sigma_data.readers.npy import NpyReader
from sigma_data.readers.samples import SamplesReader
from sigma_data.sources import local


@define(eq=False)
class Npy(Divided):
    """Two .npy files, one row per sample, for inputs and targets.

    Args:
        inputs: Path of the inputs.
        targets: Path of the targets.
        scale: Factor on the inputs.
    """

    inputs: Path = field(converter=Path)
    targets: Path = field(converter=Path)
    scale: float = field(default=1.0, kw_only=True)

    def all_rows(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all rows."""
        inputs, targets = (NpyReader().read(local(path))["values"] for path in (self.inputs, self.targets))
        return Arrays(inputs=scale_numbers(inputs, self.scale), targets=targets), ()

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the samples of another file, multiplied by the same ``scale``."""
        return SamplesReader(shape, white, self.scale).read(local(path))["values"]
