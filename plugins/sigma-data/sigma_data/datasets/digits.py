"""The UCI handwritten digits data set, 8 x 8 pixels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import define, field

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_data.datasets.table import features, read_shipped_table
from sigma_data.splitting import KINDS, By
from sigma_kernel.settings import in_


@define(eq=False, kw_only=True)
class Digits(Divided):
    """1,797 handwritten digits: ``inputs`` (8, 8), pixels from 0 to 1; ``targets`` 0 to 9.

    Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.
    """

    white: ClassVar[float | None] = 1.0

    split_by: By = field(default="stratified", validator=in_(KINDS))

    def all_rows(self) -> tuple[Arrays, tuple[int, ...]]:
        """Return all digits."""
        columns = read_shipped_table("digits.csv.gz")
        images = features(columns).array.reshape(-1, 8, 8) / np.float32(16)
        return Arrays(inputs=images, targets=columns["target"].astype(np.int32)), tuple(range(10))
