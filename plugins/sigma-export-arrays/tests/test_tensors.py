from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from attrs import evolve
from safetensors import safe_open

from sigma_export_arrays import SafeTensors
from sigma_kernel import Exporter
from sigma_testing import ExporterSuite, inference


class TestSafeTensors(ExporterSuite):
    def make(self) -> Exporter:
        return SafeTensors()


def test_a_file_holds_every_array_the_architecture_and_the_classes(tmp_path: Path) -> None:
    network = evolve(inference(), classes=("no", "ja, später"))
    turned = {name: np.asfortranarray(values) for name, values in network.arrays.items()}
    SafeTensors().export(evolve(network, arrays=turned), tmp_path / "small.safetensors")
    with safe_open(tmp_path / "small.safetensors", "numpy") as found:
        assert json.loads(found.metadata()["sigma"]) == {
            "architecture": network.architecture,
            "classes": ["no", "ja, später"],
        }
        for name, values in network.arrays.items():
            np.testing.assert_array_equal(found.get_tensor(name), values)
