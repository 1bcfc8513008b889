"""The components of the project's own rooms, so that errors can name the distribution to install.

``rooms.json`` holds names by distribution and kind: ``offered``, generated from the rooms' records by
``python -m sigma_kernel.testing.generate``, and ``planned``, written by hand.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("rooms.json")
Table = dict[str, dict[str, str]]  # names separated by blanks, by distribution and kind


@cache
def known() -> Table:
    """Return what the rooms of the project offer, or are planned to offer."""
    table: dict[str, Table] = json.loads(PATH.read_text("utf-8"))
    return table["planned"] | table["offered"]


def offering(kind: str, name: str) -> list[str]:
    """Return the rooms that offer a component of this kind and name."""
    return [distribution for distribution, kinds in known().items() if name in kinds.get(kind, "").split()]


def names(kind: str) -> set[str]:
    """Return the names of all components of a kind that rooms offer."""
    return {name for kinds in known().values() for name in kinds.get(kind, "").split()}
