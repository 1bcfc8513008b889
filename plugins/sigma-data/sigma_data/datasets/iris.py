"""Fisher's iris data set."""

from __future__ import annotations

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_data.datasets.table import features, read_shipped_table
from sigma_data.splitting import KINDS, By
from sigma_kernel.settings import in_


@define(eq=False, kw_only=True)
class Iris(Divided):
    """150 iris flowers: ``inputs`` (4,), sepal and petal lengths and widths in cm; ``targets`` 0 to 2, the species.

    R. A. Fisher, The use of multiple measurements in taxonomic problems, Annals of Eugenics 7 (1936) 179-188.
    """

    split_by: By = field(default="stratified", validator=in_(KINDS))

    def all_rows(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all flowers."""
        columns = read_shipped_table("iris.csv.gz")
        targets = columns["target"].astype(np.int32)
        return Arrays(inputs=features(columns), targets=targets), ("setosa", "versicolor", "virginica")
