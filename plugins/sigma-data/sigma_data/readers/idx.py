"""Read IDX files, the format of MNIST."""

from __future__ import annotations

import struct
from math import prod
from typing import IO

import numpy as np
from attrs import frozen

from sigma_data.bounds import check_end, read_exactly, to_array
from sigma_kernel import Reader, SigmaDataError, Source

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
SIDES = 32  # dimensions that every version of NumPy supports


@frozen
class IdxReader(Reader):
    """Read an IDX file as one array, ``values``, of the shape and dtype in its header.

    LeCun, Cortes, Burges, The MNIST database of handwritten digits, section "the IDX file format".  Raises
    SigmaDataError for an invalid header, a truncated file, and trailing bytes.
    """

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"values": array}``."""
        with source.open() as stream:
            dtype, shape = self._header(stream, source.name)
            sides = " x ".join(map(str, shape))
            where = f"{source.name}: byte {4 + 4 * len(shape)}: {sides} values of {dtype.itemsize} bytes"
            data = read_exactly(stream, prod(shape) * dtype.itemsize, where)
            check_end(stream, source.name)
        return {"values": to_array(data, dtype, shape, "C", f"{source.name}: byte 4")}

    def _header(self, stream: IO[bytes], name: str) -> tuple[np.dtype, tuple[int, ...]]:
        zeros, code, sides = struct.unpack(">HBB", read_exactly(stream, 4, f"{name}: byte 0: the header"))
        if zeros or code not in TYPES:
            magic = zeros << 16 | code << 8 | sides
            raise SigmaDataError(f"{name}: byte 0: the magic number {magic:#010x} is not that of an IDX file.")
        if not 0 < sides <= SIDES:
            raise SigmaDataError(f"{name}: byte 3: the file declares {sides} axes. There may be 1 to {SIDES}.")
        shape = struct.unpack(f">{sides}I", read_exactly(stream, 4 * sides, f"{name}: byte 4: {sides} sides"))
        return np.dtype(TYPES[code]), shape
