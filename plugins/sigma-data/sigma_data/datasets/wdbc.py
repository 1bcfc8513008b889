"""The Wisconsin breast cancer (diagnostic) data set."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_data.datasets.table import features, read_shipped_table
from sigma_data.splitting import KINDS, By
from sigma_kernel.settings import in_


@define(eq=False, kw_only=True)
class Wdbc(Divided):
    """569 breast tumours: ``inputs`` (30,), features of cell nuclei, unscaled; ``targets`` 0 malignant, 1 benign.

    Wolberg, Mangasarian, Street, Street, Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning Repository, 1993.
    """

    split_by: By = field(default="stratified", validator=in_(KINDS))

    def all_rows(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all tumours."""
        columns = read_shipped_table("wdbc.csv.gz")
        return Arrays(inputs=features(columns), targets=columns["target"].astype(np.int32)), ("malignant", "benign")
