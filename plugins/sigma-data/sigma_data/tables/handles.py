"""Open sources for Arrow, which reads the formats with an index from any place in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from sigma_data.sources.file import File
from sigma_kernel import Source


@contextmanager
def random_access(source: Source) -> Iterator[Any]:
    """Return an Arrow file of a source; one that is not a local file is read into memory."""
    with source.open() as stream:
        if isinstance(source, File):
            with pa.OSFile(str(source.path)) as file:
                yield file
        else:
            yield pa.BufferReader(stream.read())
