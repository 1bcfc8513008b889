"""How much the tests of this folder draw, and from which seed.

Each run of the tests draws little, and the same every time. ``SIGMA_DAILY=1`` draws up to ten times as much, from a
seed of the day, and ``SIGMA_LONG=1`` as much as docs/reliability.md reports.
"""

from __future__ import annotations

import os
from datetime import date

LONG = bool(os.environ.get("SIGMA_LONG"))
DAILY = bool(os.environ.get("SIGMA_DAILY"))
SEED = date.today().toordinal() * 100_000 if LONG or DAILY else 0


def amount(each_time: int, daily: int, long: int) -> int:
    """Return how much to draw."""
    return long if LONG else daily if DAILY else each_time
