"""Bounded reads: never allocate what a file's header declares before the bytes have been read."""

from __future__ import annotations

from typing import IO, Literal

import numpy as np

from sigma_kernel import SigmaDataError

CHUNK = 1 << 20  # bytes requested at once: the most that a wrong header can cost


def read_exactly(stream: IO[bytes], count: int, where: str) -> bytearray:
    """Return the next ``count`` bytes; SigmaDataError if there are fewer, without allocating more than there are."""
    there = remaining(stream)
    if there is not None and there < count:
        raise _truncation_error(where, count, there)
    data = bytearray()
    while len(data) < count:
        chunk = stream.read(min(CHUNK, count - len(data)))
        if not chunk:
            raise _truncation_error(where, count, len(data))
        data += chunk
    return data


def remaining(stream: IO[bytes]) -> int | None:
    """Return the number of bytes to the end, or None if the stream cannot tell."""
    if not stream.seekable():
        return None
    here = stream.tell()
    end = stream.seek(0, 2)
    stream.seek(here)
    return end - here


def check_end(stream: IO[bytes], where: str) -> None:
    """Raise SigmaDataError if anything follows."""
    if stream.read(1):
        raise SigmaDataError(
            f"{where}: more bytes follow than the file declares. It is damaged, or of another format than expected."
        )


def to_array(
    data: bytearray, dtype: np.dtype, shape: tuple[int, ...], order: Literal["C", "F"], where: str
) -> np.ndarray:
    """Return bytes as an array, in C order and native byte order; SigmaDataError for an impossible shape."""
    try:
        values = np.frombuffer(data, dtype).reshape(shape, order=order)
    except ValueError:  # no elements, and a product of the other dimensions that overflows an index
        raise SigmaDataError(f"{where}: no array can have shape {shape}. The file is damaged.") from None
    return np.ascontiguousarray(values, dtype.newbyteorder("="))


def _truncation_error(where: str, count: int, there: int) -> SigmaDataError:
    return SigmaDataError(
        f"{where}: {count} bytes should follow, {there} are there. The file is cut off: fetch it again."
    )
