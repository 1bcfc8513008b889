"""Sources of bytes: local files, downloads, compressed files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sigma_data.sources.compressed import Compressed, compression
from sigma_data.sources.file import File
from sigma_data.sources.fsspec_file import FsspecFile
from sigma_data.sources.unpacked import Unpacked
from sigma_kernel import Source


def local(path: Path) -> Source:
    """Return the source of a local file, decompressed if it is compressed."""
    file = File(path)
    with file.open() as stream:
        packed = compression(stream)
    return Compressed(file) if packed else file


def stamp_of(source: Source) -> Any:
    """Return what differs after a change of the file behind a source: size, time and number; None for other sources."""
    while isinstance(source, Compressed | Unpacked):
        source = source.source
    if isinstance(source, FsspecFile):
        return source.stamp()
    if not isinstance(source, File) or not source.path.exists():
        return None
    status = source.path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino
