"""The local files of a table: how large they are, and what tells their content from another one."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sigma_data.sources.file import File
from sigma_kernel import SigmaDataError

LARGE = 1 << 30  # bytes of numbers from which on a table is read in blocks
PARQUET = b"PAR1"
PIECE, PIECES = 1 << 14, 64  # bytes of a file that are hashed at once, and how often


def list_table_files(place: Any) -> tuple[Path, ...]:
    """Return the local files of a table, sorted; empty for other places, and where there is none."""
    place = place.path if isinstance(place, File) else place
    if not isinstance(place, Path):
        return ()
    if place.is_dir():
        listed: Sequence[Path] = import_module("sigma_data.tables.folder").list_files(place)
        return tuple(listed)
    if place.is_file():
        return (place,)
    return tuple(sorted(Path(name) for name in glob.glob(str(place), recursive=True) if Path(name).is_file()))


def is_columnar(files: Sequence[Path]) -> bool:
    """Return whether all files are there and Parquet, of which single columns can be read."""
    return all(path.exists() and _read_pieces(path, [0], len(PARQUET)) == PARQUET for path in files)


def count_bytes(files: Sequence[Path]) -> int:
    """Return the size of all files."""
    return sum(path.stat().st_size for path in files)


def describe_files(files: Sequence[Path]) -> list[list[Any]]:
    """Return path, size, time of the last change, number and a hash of evenly spaced pieces of each file."""
    return [_describe(path) for path in files]


def _describe(path: Path) -> list[Any]:
    try:
        status = path.stat()
        starts = [(status.st_size - PIECE) * i // (PIECES - 1) for i in range(PIECES)]
        pieces = _read_pieces(path, sorted({max(0, start) for start in starts}), PIECE)
    except OSError as error:
        raise SigmaDataError(f"{path}: cannot be read: {error.strerror or error}.") from error
    digest = hashlib.sha256(pieces).hexdigest()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, digest]


def _read_pieces(path: Path, starts: Sequence[int], size: int) -> bytes:
    """Return pieces of a file, one after another."""
    with open(path, "rb") as file:
        return b"".join(os.pread(file.fileno(), size, start) for start in starts)
