"""Number formats of tables: decimal mark and thousands separator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from attrs import Attribute, define, field

from sigma_data.labels import EXACT
from sigma_kernel import SigmaConfigError
from sigma_kernel.settings import in_, matches_re, optional

DECIMAL = in_((".", ","))
GAPS = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})  # cells that stand for a missing value
MISSING = GAPS | {"-", "--", "\u2013", "\u2014"}  # among the numbers of a table whose kinds are inferred
TRUTHS = {"true": 1.0, "false": 0.0}  # in any case, as files of pandas, polars and R have them

THOUSANDS = optional(matches_re(r"[^\w\"\r\n+-]|_", "one character that can stand between groups of three digits"))


def differ(owner: Any, attribute: Attribute[Any], value: str | None) -> None:
    """Raise SigmaConfigError if both marks are the same."""
    if value is not None and value == owner.decimal:
        raise SigmaConfigError(
            f"{type(owner).__name__}.{attribute.alias}: {value!r} is also the decimal mark. Set decimal = ','."
        )


def truth(cell: str) -> float | None:
    """Return 1 for true and 0 for false; None for anything else."""
    return TRUTHS.get(cell.strip().lower())


def has_only_digits(cells: Iterable[str]) -> bool:
    """Return whether cells have neither other digits than 0 to 9 nor an underscore, which Python reads as numbers."""
    text = "".join(cells)
    return text.isascii() and "_" not in text


def _as_float(text: str) -> float:
    if not has_only_digits(text.strip()):
        raise ValueError("no number outside Python")
    return float(text)


@define(slots=False)
class Figures:
    """Parse numbers with a ``decimal`` mark and an optional ``thousands`` separator."""

    decimal: str = field(default=".", validator=DECIMAL)
    thousands: str | None = field(default=None, validator=THOUSANDS)

    @property
    def is_plain(self) -> bool:
        """Return whether the format is Python's."""
        return self.decimal == "." and self.thousands is None

    def value(self, cell: str) -> float:
        """Return the number in a cell; raises ValueError if it is not a number."""
        if self.is_plain:
            return _as_float(cell)
        text = cell.strip()
        if self.thousands is not None and self.thousands in text:
            if not self._grouping_pattern.fullmatch(text):
                raise ValueError("groups of thousands have three digits")
            text = text.replace(self.thousands, "")
        if self.decimal != ".":
            if "." in text:
                raise ValueError("another mark stands before the fraction")
            text = text.replace(self.decimal, ".")
        return _as_float(text)

    def values(self, cells: Sequence[str]) -> np.ndarray:
        """Return the numbers in cells, float64; raises ValueError if one is not a number."""
        plain = self.is_plain and has_only_digits(cells)
        return np.array(cells if plain else [self.value(cell) for cell in cells], np.float64)

    def merges(self, cell: str, value: float) -> bool:
        """Return whether a cell holds an integer that a float cannot tell from its neighbours."""
        if abs(value) < EXACT:
            return False
        digits = re.fullmatch(r"[+-]?0*+([0-9]*+)", cell.strip().replace(self.thousands or " ", ""))
        return digits is not None and digits[1] != str(EXACT)

    def is_number(self, cell: str) -> bool:
        """Return whether a cell holds a number."""
        try:
            self.value(cell)
        except ValueError:
            return False
        return True

    def advice(self, cell: str) -> str:
        """Return the setting to change if the commas of a cell could be decimal marks or separators."""
        marked = self.is_plain and "," in cell and Figures(",").is_number(cell.replace(",", "", cell.count(",") - 1))
        grouped = self.is_plain and Figures(thousands=",").is_number(cell) and "," in cell
        if self.is_plain and "_" in cell and Figures(thousands="_").is_number(cell):
            return " If _ stands between thousands, set thousands = '_'."
        if grouped and "." in cell:
            return " If commas stand between thousands, set thousands = ','."
        return " If a comma stands before the fraction, set decimal = ','." if marked else ""

    @cached_property
    def _grouping_pattern(self) -> re.Pattern[str]:
        mark, point = re.escape(str(self.thousands)), re.escape(self.decimal)
        return re.compile(rf"[+-]?\d{{1,3}}(?:{mark}\d{{3}})++(?:{point}\d*+)?(?:[eE][+-]?\d++)?", re.ASCII)
