"""Read the lines of a text file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

import numpy as np
from attrs import field, frozen

from sigma_kernel import Reader, SigmaDataError, Source
from sigma_kernel.settings import ge


@frozen
class LinesReader(Reader):
    """Read a text file as one array of strings, ``lines``, without line ends and blank lines.

    Raises SigmaDataError for a line of more than ``longest`` characters, or one that is not text in ``encoding``.

    Args:
        encoding: Encoding of the file.
        longest: Most characters of a line.
    """

    encoding: str = "utf-8-sig"
    longest: int = field(default=1 << 20, validator=ge(1))

    def read(self, source: Source) -> dict[str, np.ndarray]:
        """Return ``{"lines": array}``."""
        with source.open() as stream, as_text(stream, self.encoding) as text:
            rows = [line.rstrip("\n") for line in lines(text, self.longest, source.name) if line.strip()]
        # variable-length strings: a fixed width would pad every line to the longest
        return {"lines": np.array(rows, np.dtypes.StringDType())}


def as_text(stream: IO[bytes], encoding: str, newline: str | None = None) -> io.TextIOWrapper:
    """Return a text stream over a byte stream; SigmaDataError for an unknown encoding."""
    try:
        return io.TextIOWrapper(stream, encoding=encoding, newline=newline)
    except (LookupError, ValueError):  # ValueError for a NUL
        raise SigmaDataError(f"encoding: there is no {encoding!r}. Most files are 'utf-8'.") from None


def lines(text: io.TextIOWrapper, longest: int, name: str) -> Iterator[str]:
    """Yield each line with its end; SigmaDataError for a line that is too long or not text."""
    number = 1
    try:
        while line := text.readline(longest + 2):
            if len(line.rstrip("\r\n")) > longest:
                raise SigmaDataError(
                    f"{name}:{number}: the line has more than {longest} characters. Is this a text file with lines?"
                )
            yield line
            number += 1
    except UnicodeError as error:  # UTF-16 without a byte order mark raises no more specific error
        raise SigmaDataError(
            f"{name}:{number}: in or soon after this line, the text is not valid "
            f"{text.encoding.removesuffix('-sig')} ({getattr(error, 'reason', error)}). "
            "Set the file's own `encoding`, such as 'latin-1'."
        ) from None
