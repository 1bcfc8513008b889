"""Mix pairs of rows.

H. Zhang, M. Cisse, Y. N. Dauphin, D. Lopez-Paz, mixup: Beyond empirical risk minimization, ICLR 2018.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from attrs import field, frozen

from sigma_data.varying import Sections, add_axes, as_type, numbers_of
from sigma_kernel import Augmentation, SigmaDataError
from sigma_kernel.graph import RowDraws
from sigma_kernel.settings import and_, gt, le


@frozen
class MixUp(Augmentation):
    """Mix each row with another one of its block: inputs and targets, with the same random share.

    The share of the other row is drawn from the Beta distribution with both parameters ``alpha``. Targets must be
    floats: numbers to estimate, or a vector with a probability for each class. Raises SigmaDataError for class indices.

    In a table that is read in blocks, the other row is near in the order of the table, so that bits do not depend on
    how many blocks are in memory: put the rows of a file in a random order if they are sorted by class.

    Source: H. Zhang, M. Cisse, Y. N. Dauphin, D. Lopez-Paz, mixup: Beyond empirical risk minimization, ICLR 2018.

    Args:
        alpha: Parameter of the distribution, above 0 and at most 1: the greater, the more evenly rows are mixed.
        inputs: Sections of inputs to mix.
        targets: Sections of targets to mix.
    """

    mixes_rows: ClassVar[bool] = True

    alpha: float = field(default=0.2, validator=and_(gt(0), le(1)))
    inputs: tuple[str, ...] = field(default=("inputs",), kw_only=True)
    targets: tuple[str, ...] = field(default=("targets",), kw_only=True)

    def augment(self, sections: Sections, draw: RowDraws) -> Sections:
        """Return the sections with the mixed rows."""
        others, mixed = draw.integers(0, len(draw.rows) - 1), dict(sections)
        shares = draw_beta(draw, self.alpha)
        for name in (*self.inputs, *self.targets):
            values = numbers_of("mix_up", sections, name)
            if name in self.targets and values.dtype.kind != "f":
                raise SigmaDataError(
                    f"mix_up: section {name!r} holds {values.dtype}: class indices, for instance, cannot be mixed. "
                    "Give a vector for each row, such as numpy.eye(classes, dtype='float32')[labels]."
                )
            share = add_axes(shares, values)
            mixed[name] = as_type(values * (1 - share) + values[others] * share, values.dtype)
        return mixed


def draw_beta(draw: RowDraws, alpha: float) -> np.ndarray:
    """Return a number for each row from the Beta distribution with both parameters alpha, at most 1.

    Source: M. D. Jöhnk, Erzeugung von betaverteilten und gammaverteilten Zufallszahlen, Metrika 8 (1964) 5-15.
    """
    shares = np.full(len(draw.rows), np.nan)
    while (left := np.isnan(shares)).any():
        first, second = np.log1p(-draw.uniform((2,))).T / alpha
        total = np.logaddexp(first, second)
        accepted = left & (total <= 0)
        shares[accepted] = np.exp(first - total)[accepted]
    return shares
