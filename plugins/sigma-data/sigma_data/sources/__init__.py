"""Sources of bytes: local files, downloads, compressed files."""

from __future__ import annotations

from pathlib import Path

from sigma_data.sources.compressed import Compressed, compression
from sigma_data.sources.file import File
from sigma_kernel import Source


def local(path: Path) -> Source:
    """Return the source of a local file, decompressed if it is compressed."""
    file = File(path)
    with file.open() as stream:
        packed = compression(stream)
    return Compressed(file) if packed else file
