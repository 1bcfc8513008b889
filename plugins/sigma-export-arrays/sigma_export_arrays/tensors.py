"""Parameters as a safetensors file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from attrs import frozen
from safetensors.numpy import save

from sigma_kernel import Exporter, Inference


@frozen
class SafeTensors(Exporter):
    """Write parameters and layer state as a safetensors file: one tensor per address below ``network.layers``.

    Its metadata has one entry, ``sigma``: a JSON document with the ``architecture`` and the names of the ``classes``.
    """

    def export(self, network: Inference, path: Path) -> None:
        """Write the file."""
        about = json.dumps({"architecture": network.architecture, "classes": network.classes})
        path.write_bytes(save({name: np.ascontiguousarray(x) for name, x in network.arrays.items()}, {"sigma": about}))
