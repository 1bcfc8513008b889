"""Monthly sunspot numbers, a series that comes with this package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from attrs import define, field

from sigma_data.datasets.series import Series
from sigma_kernel.settings import ge


def _file() -> Path:
    return Path(str(files("sigma_data") / "files" / "sunspots.csv.gz"))


@define(eq=False, kw_only=True)
class Sunspots(Series):
    """Mean sunspot numbers of 3,126 months, January 1749 to June 2009, in windows that predict the next ones.

    ``inputs`` are (past, columns): the numbers, and sine and cosine of the month to predict; ``targets`` (ahead,). The
    activity of the sun has cycles of about 11 years, or 132 months.

    National Geophysical Data Center, Boulder: monthly mean sunspot numbers.

    Args:
        past: Number of months that a window reads.
        ahead: Number of months to predict.
    """

    path: Path = field(init=False, factory=_file)
    target: str = field(init=False, default="sunspots")
    time: str = field(init=False, default="month")
    past: int = field(default=132, validator=ge(1))
    ahead: int = field(default=12, validator=ge(1))
