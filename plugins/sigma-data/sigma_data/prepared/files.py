"""Where a table is that is read in blocks: local files, their size, and what tells their content from another one."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

from attrs import frozen

from sigma_data.prepared.entries import PreparedEntry
from sigma_data.sources.file import File
from sigma_data.tables import open_table
from sigma_kernel import SigmaDataError

NUMBER = 8  # bytes of a number
PARQUET = b"PAR1"
PIECE, PIECES = 1 << 14, 64  # bytes of a file that are hashed at once, and how often


class Original(Protocol):
    """A table as it is before it is prepared."""

    @property
    def is_copied(self) -> bool:
        """Return whether the rows are at another place, from which they are copied before they are prepared."""

    def describe(self) -> Sequence[Any]:
        """Return what tells the content that is there now from another one."""

    def count_bytes(self) -> int:
        """Return the bytes of its numbers; of a format that does not tell how many there are, of the file."""

    def copy_to(self, entry: PreparedEntry) -> None:
        """Copy the rows to an entry of the cache, unless that needs none."""

    def list_files(self, entry: PreparedEntry) -> Sequence[Path]:
        """Return the local files that hold the rows."""

    def open(self, entry: PreparedEntry) -> Any:
        """Return the rows as record batches."""


@frozen(eq=False)
class LocalFiles:
    """A table in local files, at a place that ``open_table`` takes, in this form."""

    place: Any
    form: Mapping[str, Any]
    files: tuple[Path, ...]
    is_copied: ClassVar[bool] = False

    @classmethod
    def find(cls, place: Any, form: Mapping[str, Any]) -> LocalFiles | None:
        """Return the files at a place; None if it is no path, or if there is none."""
        files = list_table_files(place)
        return cls(place, form, files) if files else None

    def describe(self) -> Sequence[Any]:
        """Return what tells the content of the files from another one."""
        return describe_files(self.files)

    def count_bytes(self) -> int:
        """Return the bytes of the numbers of Parquet files, or of the characters of others."""
        if not is_columnar(self.files):
            return count_bytes(self.files)
        table = open_table(self.place, **self.form)
        return (table.rows or 0) * len(table.schema) * NUMBER

    def copy_to(self, entry: PreparedEntry) -> None:
        """Do nothing: local files are read where they are."""

    def list_files(self, entry: PreparedEntry) -> Sequence[Path]:
        """Return the files."""
        return self.files

    def open(self, entry: PreparedEntry) -> Any:
        """Return the rows as record batches."""
        return open_table(self.place, **self.form)


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
