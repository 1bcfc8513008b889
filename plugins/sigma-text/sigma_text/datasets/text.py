"""Your own text as a data set, character by character."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from sigma_data.sources import local
from sigma_text.datasets.characters import Characters, read_text


@define(eq=False)
class Text(Characters):
    """The characters of a text file, compressed or not, in windows of ``length``: predict each next character.

    ``inputs`` and ``targets`` ``(length,)`` are indices of characters, int32; targets are one character ahead. Windows
    follow one another without overlap. Characters are those of the whole file in the order of their code points; they
    are saved with the run, so that ``sigma predict RUN --text "To be"`` needs no other file.

    Args:
        path: Path of the file; in a configuration, a relative one starts in the directory of the configuration.
        encoding: Encoding of the file.
    """

    path: Path = field(converter=Path)
    encoding: str = field(default="utf-8-sig", kw_only=True)

    def read(self) -> tuple[str, str]:
        """Return the path, and the text of the file."""
        return str(self.path), read_text(local(self.path), self.encoding)
