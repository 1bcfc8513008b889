"""Parameters as text, one line each."""

from pathlib import Path

import numpy as np
from attrs import frozen

from sigma_kernel import Exporter, Inference


@frozen
class Lines(Exporter):
    """Parameters as text, one line each."""

    def export(self, network: Inference, path: Path) -> None:
        """Write the file: addresses with their numbers."""
        lines = [f"{address}: {np.ravel(values).tolist()}" for address, values in network.arrays.items()]
        path.write_text("\n".join(lines), encoding="utf-8")
