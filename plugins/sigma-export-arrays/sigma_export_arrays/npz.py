"""Parameters as an NPZ file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from attrs import frozen

from sigma_kernel import Exporter, Inference


@frozen
class Npz(Exporter):
    """Write parameters and layer state as an NPZ file: one array per address below ``network.layers``."""

    def export(self, network: Inference, path: Path) -> None:
        """Write the file."""
        with path.open("wb") as file:  # given a path, NumPy appends .npz
            np.savez(file, allow_pickle=False, **network.arrays)
