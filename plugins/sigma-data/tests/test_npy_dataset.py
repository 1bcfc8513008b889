from __future__ import annotations

import numpy as np
import pytest

from sigma_data import Npy
from sigma_kernel import SigmaDataError


def test_two_files_are_inputs_and_targets(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(60, dtype=np.uint8).reshape(10, 3, 2))
    np.save(tmp_path / "y.npy", np.arange(10))
    data = Npy(tmp_path / "x.npy", tmp_path / "y.npy", scale=0.5, split={"training": 1.0}, split_by="block")
    block = data["training"].block(0)
    assert block["inputs"].dtype == np.float32
    assert block["inputs"][9].tolist() == [[27, 27.5], [28, 28.5], [29, 29.5]]
    assert block["targets"].tolist() == list(range(10))


def test_files_of_different_lengths_are_reported(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((10, 3)))
    np.save(tmp_path / "y.npy", np.zeros(9))
    with pytest.raises(SigmaDataError, match="different numbers of rows: 'inputs' 10, 'targets' 9"):
        Npy(tmp_path / "x.npy", tmp_path / "y.npy")["training"]
