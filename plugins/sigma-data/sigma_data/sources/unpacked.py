"""The content of another source, in memory, for formats that are read from any place in a file."""

from __future__ import annotations

import io
from typing import IO

from attrs import field, frozen

from sigma_data.bounds import CHUNK
from sigma_kernel import SigmaDataError, Source


@frozen
class Unpacked(Source):
    """The bytes that a source had when they were read; :func:`read_all` reads them."""

    source: Source
    content: bytes = field(repr=False)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Return the name of the source."""
        return self.source.name

    def open(self) -> IO[bytes]:
        """Return the content as an open file."""
        return io.BytesIO(self.content)


def read_all(source: Source, limit: int) -> Unpacked:
    """Return the content of a source; SigmaDataError if it has more than ``limit`` bytes."""
    if isinstance(source, Unpacked):
        return source
    content = bytearray()
    with source.open() as stream:
        while chunk := stream.read(CHUNK):
            content += chunk
            if len(content) > limit:
                raise SigmaDataError(f"{source.name}: has more than {limit} bytes. If that is right, raise `limit`.")
    return Unpacked(source, bytes(content))
