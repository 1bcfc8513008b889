"""NPY, NumPy's own format."""

from __future__ import annotations

from math import prod
from typing import IO

import numpy as np
from attrs import frozen
from numpy.lib import format as npy

from sigma_data.bounds import exactly, finished
from sigma_kernel import Reader, SigmaDataError, Source


@frozen
class NpyReader(Reader):
    """Read an .npy file as one array, ``values``.

    Nothing is ever unpickled.  Objects, records, a header that is none, a file that is cut off and one that goes on
    behind its end are SigmaDataErrors.
    """

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"values": array}``, in C order and of the machine's own byte order."""
        with source.open() as stream:
            shape, fortran, dtype = self._header(stream, source.name)
            where = f"{source.name}: the header declares shape {shape} of {dtype}"
            data = exactly(stream, prod(shape) * dtype.itemsize, where)
            finished(stream, source.name)
        try:
            values = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
        except ValueError as error:
            raise SigmaDataError(f"{where}, which no array can have: {error}.") from None
        return {"values": np.ascontiguousarray(values, dtype.newbyteorder("="))}

    def _header(self, stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
        try:
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(stream)
        except (ValueError, OSError, EOFError) as error:
            raise SigmaDataError(f"{name}: is not a whole .npy file: {error}.") from None
        if dtype.hasobject or dtype.names or not dtype.itemsize:
            raise SigmaDataError(f"{name}: holds {dtype}, which is not read. Save an array of numbers.")
        if not shape or min(shape) < 0:
            raise SigmaDataError(f"{name}: the header declares shape {shape}. There must be an axis for the rows.")
        return shape, fortran, dtype
