"""Number formats of tables: decimal mark and thousands separator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import Attribute, define, field

from sigma_kernel import SigmaConfigError
from sigma_kernel.settings import in_, matches_re, optional

DECIMAL = in_((".", ","))
THOUSANDS = optional(matches_re(r"[^\w\"\r\n+-]|_", "one character that can stand between groups of three digits"))


def differ(owner: Any, attribute: Attribute[Any], value: str | None) -> None:
    """Raise SigmaConfigError if both marks are the same."""
    if value is not None and value == owner.decimal:
        raise SigmaConfigError(
            f"{type(owner).__name__}.{attribute.alias}: {value!r} is also the decimal mark. Set decimal = ','."
        )


@define(slots=False)
class Figures:
    """Parse numbers with a ``decimal`` mark and an optional ``thousands`` separator."""

    decimal: str = field(default=".", validator=DECIMAL)
    thousands: str | None = field(default=None, validator=THOUSANDS)

    @property
    def plain(self) -> bool:
        """Return whether the format is Python's."""
        return self.decimal == "." and self.thousands is None

    def value(self, cell: str) -> float:
        """Return the number in a cell; raises ValueError if it is not a number."""
        if self.plain:
            return float(cell)
        text = cell.strip()
        if self.thousands is not None and self.thousands in text:
            if not self._grouped.fullmatch(text):
                raise ValueError("groups of thousands have three digits")
            text = text.replace(self.thousands, "")
        if self.decimal != ".":
            if "." in text:
                raise ValueError("another mark stands before the fraction")
            text = text.replace(self.decimal, ".")
        return float(text)

    def values(self, cells: Sequence[str]) -> np.ndarray:
        """Return the numbers in cells, float64; raises ValueError if one is not a number."""
        return np.array(cells if self.plain else [self.value(cell) for cell in cells], np.float64)

    def is_number(self, cell: str) -> bool:
        """Return whether a cell holds a number."""
        try:
            self.value(cell)
        except ValueError:
            return False
        return True

    def advice(self, cell: str) -> str:
        """Return the setting to change if the commas of a cell could be decimal marks or separators."""
        marked = self.plain and "," in cell and Figures(",").is_number(cell.replace(",", "", cell.count(",") - 1))
        grouped = self.plain and Figures(thousands=",").is_number(cell) and "," in cell
        if grouped and "." in cell:
            return " If commas stand between thousands, set thousands = ','."
        return " If a comma stands before the fraction, set decimal = ','." if marked else ""

    @cached_property
    def _grouped(self) -> re.Pattern[str]:
        mark, point = re.escape(str(self.thousands)), re.escape(self.decimal)
        return re.compile(rf"[+-]?\d{{1,3}}(?:{mark}\d{{3}})++(?:{point}\d*+)?(?:[eE][+-]?\d++)?", re.ASCII)
