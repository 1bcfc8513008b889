"""Read binary files of fixed-size records."""

from __future__ import annotations

import numpy as np
from attrs import field, frozen

from sigma_data.bounds import CHUNK, read_exactly, to_array
from sigma_kernel import Reader, SigmaDataError, Source
from sigma_kernel.settings import ge


@frozen
class BytesReader(Reader):
    """Read records of ``size`` bytes each, after a header of ``skip`` bytes, as one uint8 array, ``records``.

    The :class:`~sigma_data.Offsets` extractor splits records into sections.  Raises SigmaDataError if the last record
    is incomplete.

    Args:
        size: Bytes of a record.
        skip: Bytes of the header before the first record.
    """

    size: int = field(validator=ge(1))
    skip: int = field(default=0, validator=ge(0))

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"records": array}`` of shape ``(rows, size)``."""
        data = bytearray()
        with source.open() as stream:
            read_exactly(stream, self.skip, f"{source.name}: the header")
            while chunk := stream.read(CHUNK):
                data += chunk
        rows, rest = divmod(len(data), self.size)
        if rest:
            raise SigmaDataError(
                f"{source.name}: byte {self.skip + rows * self.size}: record {rows} has {rest} bytes instead of "
                f"{self.size}. The file is cut off, or `size` or `skip` is wrong."
            )
        return {"records": to_array(data, np.dtype("u1"), (rows, self.size), "C", source.name)}
