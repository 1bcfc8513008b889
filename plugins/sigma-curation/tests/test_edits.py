from __future__ import annotations

import numpy as np

from sigma_curation.edits import Edited
from sigma_kernel.contracts import Dataset
from sigma_testing import DatasetSuite
from sigma_training.data.dataset import Rows


class TestEdited(DatasetSuite):
    def make(self) -> Dataset:
        rows = Rows({"inputs": np.arange(20.0).reshape(10, 2), "targets": np.arange(10) % 3})
        return Edited(rows, {"excluded": [2, 7], "labels": [[4, {"targets": 0}]]}, classes=(0, 1, 2))
