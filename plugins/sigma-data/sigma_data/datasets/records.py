"""A data set from any combination of source, reader and extractor."""

from __future__ import annotations

from attrs import define

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Divided
from sigma_kernel import Extractor, Reader, Source


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

    def whole(self) -> tuple[Arrays, tuple[str, ...]]:
        """Return all rows."""
        records = self.reader.read(self.source)
        return Arrays(**(self.extractor.extract(records) if self.extractor else records)), ()
