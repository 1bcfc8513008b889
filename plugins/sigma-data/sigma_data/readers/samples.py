"""Read samples for prediction from a table, an .npy file or an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from attrs import field, frozen

from sigma_data.arrays import scale_numbers
from sigma_data.categories import one_hot
from sigma_data.readers.csv import DELIMITER, REST, CsvReader, is_gap, separator
from sigma_data.readers.figures import DECIMAL, THOUSANDS, Figures, differ, truth
from sigma_data.readers.image import ImageReader
from sigma_data.readers.npy import NpyReader
from sigma_kernel import Reader, SigmaDataError, Source
from sigma_kernel.settings import deep_iterable, ge, optional

Colours = Literal["grey", "rgb"]
TABLES, ARRAYS, IMAGES = (".csv", ".tsv", ".txt"), (".npy",), (".png", ".jpg", ".jpeg")
PACKED = (".gz", ".bz2", ".xz", ".zip")
CHANNELS: dict[int, Colours] = {1: "grey", 3: "rgb"}


class _Table(CsvReader):
    gap_advice = "leave the row out"
    words_advice = "or leave the column out"
    names_advice = "or make them differ"


@frozen
class SamplesReader(Reader):
    """Read samples of one ``shape`` as ``values``, one row each; the file name's suffix selects the format.

    A table (``.csv``, ``.tsv``, ``.txt``) has one column for each number, with or without a header.

    An ``.npy`` file holds samples, or a single one.  An image (``.png``, ``.jpg``) is one sample, of shape ``(height,
    width)``, with 1 or 3 channels first or last, or flat and grey; its pixels are scaled to 0 to ``white``.  Other
    values, and pixels without ``white``, are multiplied by ``scale``.

    Raises SigmaDataError for samples that do not fit, and for numbers that are not finite.

    Args:
        shape: Shape of one sample.
        white: Value of a white pixel of an image; by default pixels are multiplied by the scale.
        scale: Factor on all other values.
        inputs: Columns of a table to read; ``"*"`` is all except those of the target.
        target: Columns of the target, which may be left out.
        missing: Number that replaces missing values; by default they are refused.
        delimiter: Character between two values of a table; by default that of the first line.
        encoding: Encoding of the file.
        decimal: Decimal mark.
        thousands: Separator of groups of three digits; none by default.
        categories: Categories of one-hot encoded columns, by their index among the columns.
        header: Whether the training data had names; if not, a first line with a number holds values, such as a target.
    """

    shape: tuple[int, ...] = field(validator=deep_iterable(ge(1)))
    white: float | None = None
    scale: float = 1.0
    inputs: tuple[str | int, ...] = (REST,)
    target: tuple[str | int, ...] = ("target",)
    missing: float | None = None
    delimiter: str | None = field(default=None, validator=optional(DELIMITER))
    encoding: str = "utf-8-sig"
    decimal: str = field(default=".", validator=DECIMAL)
    thousands: str | None = field(default=None, validator=[THOUSANDS, differ])
    categories: Mapping[str, tuple[str, ...]] = field(factory=dict, kw_only=True)
    header: bool = field(default=True, kw_only=True)

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"values": array}``."""
        ends = [end.lower() for end in PurePath(source.name).suffixes]
        end = next((end for end in reversed(ends) if end not in PACKED), "")
        if end in TABLES:
            values = self._table(source)
        elif end in ARRAYS:
            values = self._array(source)
        elif end in IMAGES:
            values = self._image(source)
        else:
            endings = ", ".join((*TABLES, *ARRAYS, *IMAGES))
            raise SigmaDataError(f"{source.name}: unknown file type. Files end in {endings}.")
        return {"values": _finite(values, source.name)}

    # -- arrays --------------------------------------------------------------------------------------------------------
    def _array(self, source: Source) -> np.ndarray:
        values = NpyReader().read(source)["values"]
        values = values[None] if values.shape == self.shape else values
        if values.shape[1:] != self.shape or not len(values):
            raise SigmaDataError(
                f"{source.name}: has shape {values.shape}; expected {('n', *self.shape)}, one row per "
                "sample. Reshape it."
            )
        return scale_numbers(values, self.scale)

    # -- tables --------------------------------------------------------------------------------------------------------
    def _table(self, source: Source) -> np.ndarray:
        delimiter = self.delimiter or separator(source, self.encoding)
        form: dict[str, Any] = {"encoding": self.encoding, "decimal": self.decimal, "thousands": self.thousands}
        first = _Table(delimiter=delimiter, **form)
        cells = first.top(source)
        header = self._are_names(cells, first.figures)
        columns = self._columns([cell.strip() for cell in cells], header, source.name)
        gaps: Literal["refuse", "nan"] = "refuse" if self.missing is None else "nan"
        text = tuple(columns[int(i)] for i in self.categories)
        lines, by_name = _Table(columns, text, header, delimiter, gaps, **form).table(source)
        values = self._encode_inputs(by_name, lines, source.name)
        values = values if self.missing is None else np.where(np.isnan(values), self.missing, values)
        return scale_numbers(values, self.scale).reshape(-1, *self.shape)

    def _are_names(self, cells: Sequence[str], figures: Figures) -> bool:
        """Return whether the first line holds names; a stray word among numbers does not count."""
        numbers = [figures.is_number(cell) or truth(cell) is not None for cell in cells]
        if self.categories:  # a row may also hold words
            words = {name for names in self.categories.values() for name in names}
            return not any(numbers) and not all(is_gap(cell) or cell.strip() in words for cell in cells)
        values = all(number or is_gap(cell) for number, cell in zip(numbers, cells, strict=True))
        return not values and len(set(cells)) == len(cells) and (self.header or not any(numbers))

    def _encode_inputs(self, columns: Mapping[str, np.ndarray], lines: np.ndarray, name: str) -> np.ndarray:
        """Return columns as one array, categorical ones one-hot encoded."""
        categories = [self.categories.get(str(i)) for i in range(len(columns))]
        return np.column_stack([
            values if names is None else one_hot(values, names, lambda row: f"{name}:{lines[row]}", column)
            for names, (column, values) in zip(categories, columns.items(), strict=True)
        ])  # fmt: skip

    @property
    def _count(self) -> int:
        """Return the number of columns of a sample."""
        return prod(self.shape) - sum(len(names) - 1 for names in self.categories.values())

    def _columns(self, cells: list[str], header: bool, name: str) -> tuple[str | int, ...]:
        """Return the columns to read, in the order of a sample's elements."""
        if REST in self.inputs:
            columns = self._remaining_columns(cells, header)
        elif header and all(isinstance(column, str) for column in self.inputs):
            columns = self.inputs
        elif len(cells) == len(self.inputs):  # without the target; later columns have moved up
            numbers = [column for column in self.inputs if isinstance(column, int)]
            order: list[str | int] = [*sorted(numbers)] if len(numbers) == len(cells) else [*self.inputs]
            columns = tuple(order.index(column) for column in self.inputs)
        else:
            columns = self.inputs if all(isinstance(column, int) for column in self.inputs) else ()
        if len(columns) != self._count:
            raise self._width(name, len(columns) or len(cells))
        return columns

    def _remaining_columns(self, cells: list[str], header: bool) -> tuple[str | int, ...]:
        numbered = [column % len(cells) for column in self.target if isinstance(column, int)]
        named = [i for i, cell in enumerate(cells) if header and cell in self.target]
        there = len(cells) - len(named) == self._count + len(numbered)
        return tuple(i for i in range(len(cells)) if i not in named and not (there and i in numbered))

    def _width(self, name: str, there: int) -> SigmaDataError:
        wanted, note = prod(self.shape), f", made of {self._count} columns" if self.categories else ""
        return SigmaDataError(
            f"{name}: {there} columns to predict from; a sample of shape {self.shape} has {wanted} numbers{note}. Give "
            "the columns of the training data, without its target or with their names in the first line."
        )

    # -- images --------------------------------------------------------------------------------------------------------
    def _image(self, source: Source) -> np.ndarray:
        colours, axis, sides = self._form(source.name)
        pixels = ImageReader(colours).read(source)["values"]
        height, width = pixels.shape[1:3]
        if (height, width) != sides and (sides or height * width != prod(self.shape)):
            wanted = f"{sides[1]} x {sides[0]}" if sides else f"{prod(self.shape)} in all"
            raise SigmaDataError(f"{source.name}: has {width} x {height} pixels; expected {wanted}. Resize it.")
        if self.white is None and self.scale == 1.0:
            raise SigmaDataError(
                f"{source.name}: the value of a white pixel in the training data is unknown. Set it with --white, or "
                "white=, such as 1 or 255."
            )
        pixels = np.moveaxis(pixels, -1, 1) if axis == 0 and colours == "rgb" else pixels
        factor = self.scale if self.white is None else self.white / 255
        return (pixels * np.float64(factor)).astype(np.float32).reshape(1, *self.shape)

    def _form(self, name: str) -> tuple[Colours, int, tuple[int, ...]]:
        """Return the colours of an image, the axis of its channels, and its height and width, empty if it is flat."""
        sides = list(self.shape)
        if len(sides) < 3:
            return "grey", 0, self.shape if len(sides) == 2 else ()
        for axis in (0, -1):
            if len(sides) == 3 and sides[axis] in CHANNELS:
                return CHANNELS[sides.pop(axis)], axis, tuple(sides)
        raise SigmaDataError(
            f"{name}: a sample of shape {self.shape} is not an image. Images are (height, width), with 1 or 3 "
            "channels first or last."
        )


def _finite(values: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(values).all():
        first = tuple(np.argwhere(~np.isfinite(values))[0])
        raise SigmaDataError(
            f"{name}: row {first[0]}: {values[first]} is not a finite number. Fill it in, or leave it out."
        )
    return values
