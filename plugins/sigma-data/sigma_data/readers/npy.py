"""Read NumPy .npy files, without unpickling."""

from __future__ import annotations

import ast
import re
import struct
from math import prod
from typing import IO, Any

import numpy as np
from attrs import frozen

from sigma_data.bounds import check_end, read_exactly, to_array
from sigma_kernel import Reader, SigmaDataError, Source

NUMBERS = r"[<>|=]?(b1|[iu][1248]|f[248])"
LONGEST = 1 << 16  # bytes of a header; arrays of numbers have about 100


@frozen
class NpyReader(Reader):
    """Read an .npy file as one array, ``values``.

    Nothing is ever unpickled.  Raises SigmaDataError for anything but numbers and booleans, an invalid header, a
    truncated file, and trailing bytes.  The format: NumPy's ``numpy.lib.format``, versions 1 to 3.
    """

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"values": array}``, in C order and native byte order."""
        with source.open() as stream:
            shape, fortran, dtype = self._header(stream, source.name)
            where = f"{source.name}: the header declares shape {shape} of {dtype}"
            data = read_exactly(stream, prod(shape) * dtype.itemsize, where)
            check_end(stream, source.name)
        return {"values": to_array(data, dtype, shape, "F" if fortran else "C", source.name)}

    def _header(self, stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
        header = _parse_header(_text(stream, name), name)
        descr, shape = header["descr"], header["shape"]
        if not isinstance(descr, str) or not re.fullmatch(NUMBERS, descr):
            raise SigmaDataError(f"{name}: holds {descr!r}, which is not supported. Save an array of numbers.")
        if not isinstance(shape, tuple) or not shape or any(type(side) is not int or side < 0 for side in shape):
            raise SigmaDataError(f"{name}: the header declares shape {shape}. There must be an axis for the rows.")
        return shape, bool(header["fortran_order"]), np.dtype(descr)


def _text(stream: IO[bytes], name: str) -> str:
    """Return the header's text, after checking the magic number, version and length."""
    where = f"{name}: byte 0: the header"
    magic, major, minor = struct.unpack(">6sBB", read_exactly(stream, 8, where))
    if magic != b"\x93NUMPY" or major not in (1, 2, 3) or minor:
        raise SigmaDataError(f"{name}: byte 0: is not an .npy file of version 1, 2 or 3.")
    length = int.from_bytes(read_exactly(stream, 2 if major == 1 else 4, where), "little")
    if length > LONGEST:
        raise SigmaDataError(f"{name}: byte 8: the header claims {length} bytes; at most {LONGEST} are allowed.")
    return read_exactly(stream, length, where).decode("latin-1")


def _parse_header(text: str, name: str) -> dict[str, Any]:
    try:
        header = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
        raise SigmaDataError(f"{name}: byte 10: the header is damaged: {text[:60]!r}.")
    return header
