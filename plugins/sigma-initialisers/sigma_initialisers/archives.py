"""Check an NPZ file before NumPy allocates its declared arrays."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import IO
from zipfile import ZipFile, is_zipfile

from numpy.lib import format as npy

from sigma_kernel.errors import SigmaDataError

DAMAGED = "The file is damaged: write it again."
MOST = 1032  # bytes of one that deflate has compressed: RFC 1951 has no shorter code for a repetition of 258 bytes

LARGE, FEW = 2**30, 100  # bytes in all, and in one of the file: more of both are a bomb


def check_sizes(path: Path) -> None:
    """Raise SigmaDataError for a member that is no array, or declares more than the file holds, and for a bomb."""
    if not is_zipfile(path):
        return
    whole = path.stat().st_size
    with ZipFile(path) as archive:
        for member in archive.infolist():
            where = f"{path}: {member.filename!r}"
            if not member.filename.endswith(".npy"):
                raise SigmaDataError(f"{where} is not an array. Write arrays of numbers with numpy.savez.")
            if member.file_size > MOST * min(member.compress_size, whole):
                raise SigmaDataError(f"{where} declares {member.file_size} bytes, more than there are. {DAMAGED}")
            with archive.open(member) as stream:
                declared = _declared_bytes(stream)
            if declared > member.file_size:
                raise SigmaDataError(f"{where} declares {declared} bytes and has {member.file_size}. {DAMAGED}")
        total = sum(member.file_size for member in archive.infolist())
        if total > LARGE and total > FEW * whole:
            raise SigmaDataError(
                f"{path}: {whole} bytes become {total}, which trained parameters do not. Write them with numpy.savez."
            )


def _declared_bytes(stream: IO[bytes]) -> int:
    """Return the bytes of the array that a header declares."""
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    return 0 if dtype.hasobject else prod(shape) * int(dtype.itemsize)  # NumPy refuses objects itself
