from __future__ import annotations

from pathlib import Path

import numpy as np

from sigma_export_arrays import Npz
from sigma_kernel import Exporter
from sigma_testing import ExporterSuite, inference


class TestNpz(ExporterSuite):
    def make(self) -> Exporter:
        return Npz()


def test_a_file_holds_every_array_under_its_address(tmp_path: Path) -> None:
    network = inference()
    Npz().export(network, tmp_path / "small.npz")
    with np.load(tmp_path / "small.npz", allow_pickle=False) as found:
        assert {name: found[name].tolist() for name in found} == {n: x.tolist() for n, x in network.arrays.items()}
        assert {found[name].dtype for name in found} == {np.dtype("float32")}
