"""A data set from any combination of source, reader and extractor."""

from __future__ import annotations

import numpy as np
from attrs import define

from sigma_data.arrays import Arrays, read_only
from sigma_data.datasets.splits import Divided
from sigma_kernel import Extractor, Reader, Source
from sigma_kernel.errors import expect, introduce_errors


@define(eq=False)
class Records(Divided):
    """Read a source, and split it into sections by an extractor; without one, each array of the reader is a section.

    Args:
        source: Source of bytes.
        reader: Reader that decodes them.
        extractor: Extractor of sections; without one, each array of the reader is a section.
    """

    source: Source
    reader: Reader
    extractor: Extractor | None = None

    def all_rows(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all rows."""
        return Arrays(**read_sections(self.source, self.reader, self.extractor)), ()


def read_sections(source: Source, reader: Reader, extractor: Extractor | None = None) -> dict[str, np.ndarray]:
    """Return the sections that an extractor makes of what a reader reads; without one, the arrays of the reader."""
    with introduce_errors("reader", reader):
        arrays = _arrays("read()", reader.read(source))
    if extractor is not None:
        with introduce_errors("extractor", extractor):
            arrays = _arrays("extract()", extractor.extract(read_only(arrays)))
    return arrays


def _arrays(what: str, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    arrays = isinstance(found, dict) and all(isinstance(values, np.ndarray) for values in found.values())
    expect(arrays, f"{what} must return arrays by name", found)
    return found
