"""A table of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from attrs import define, field
from attrs.validators import in_, min_len, optional

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_data.extractors.columns import REST, cut, listed
from sigma_data.labels import indices
from sigma_data.readers.csv import CsvReader, place
from sigma_data.sources import local
from sigma_kernel import SigmaDataError


@define(eq=False)
class Csv(Divided):
    """A file of comma-separated values, packed or not, with one row a sample.

    ``target`` names the column to predict, by its name in the first line or by its number; ``inputs`` those to
    predict it from, which hold numbers (``"*"``: all others).  ``targets`` says what the target is: ``classes``,
    words or whole numbers that become indices in their order (see the property ``classes``), or ``numbers``, a vector
    of them, also from several columns.  With ``auto``, one column of words or of whole numbers holds classes.
    ``shape`` is what a sample is cut into, ``scale`` what it is multiplied by.
    """

    path: Path = field(converter=Path)
    target: str | int | tuple[str | int, ...]
    inputs: tuple[str | int, ...] = field(default=(REST,), validator=min_len(1), kw_only=True)
    targets: Literal["auto", "classes", "numbers"] = field(
        default="auto", validator=in_(("auto", "classes", "numbers")), kw_only=True
    )
    shape: tuple[int, ...] | None = field(default=None, validator=optional(min_len(1)), kw_only=True)
    scale: float = field(default=1.0, kw_only=True)
    header: bool = field(default=True, kw_only=True)
    delimiter: str = field(default=",", kw_only=True)
    encoding: str = field(default="utf-8-sig", kw_only=True)

    def whole(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all rows."""
        chosen, targets = self._columns()
        where = f"{self.path}: inputs"
        inputs = cut(np.stack(chosen, axis=1) * self.scale, self.shape, where).astype(np.float32)
        values, classes = self._targets(targets)
        return Arrays(inputs=inputs, targets=values), classes

    def _columns(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the columns of the inputs, and those of the target."""
        targets = listed(self.target)
        words = targets if self._one and self.targets != "numbers" else ()
        rest = tuple(self.inputs) == (REST,)
        wanted = None if rest else (*self.inputs, *targets)
        reader = CsvReader(wanted, words, self.header, self.delimiter, encoding=self.encoding)
        columns = reader.read(local(self.path))
        names, values = list(columns), list(columns.values())
        if not rest:
            return values[: len(self.inputs)], values[len(self.inputs) :]
        places = [place(target, names, str(self.path)) for target in targets]
        if len(places) == len(names):
            raise SigmaDataError(f"{self.path}: there is no column but the target. Add some to predict it from.")
        return [value for i, value in enumerate(values) if i not in places], [values[i] for i in places]

    def _targets(self, columns: list[np.ndarray]) -> tuple[np.ndarray, tuple[str, ...]]:
        numbers = [_numbers(values) for values in columns]
        if self._one and self.targets != "numbers":
            values = columns[0] if numbers[0] is None else numbers[0]
            whole = numbers[0] is None or np.array_equal(values, np.rint(values))
            if whole or self.targets == "classes":
                return indices(values, f"{self.path}: the target")
        return np.stack([values for values in numbers if values is not None], axis=1).astype(np.float32), ()

    @property
    def _one(self) -> bool:
        return len(listed(self.target)) == 1


def _numbers(values: np.ndarray) -> np.ndarray | None:
    """Return words as the numbers that they are, or None if one of them is none."""
    try:
        return values.astype(np.float64)
    except ValueError:
        return None
