"""Three plays of Shakespeare, character by character."""

from __future__ import annotations

from importlib.resources import as_file, files

from attrs import define

from sigma_data.sources import local
from sigma_text.datasets.characters import Characters, read_text


@define(eq=False, kw_only=True)
class Shakespeare(Characters):
    """Richard III, Richard II, and Romeo and Juliet, 421,989 characters, in windows: predict each next character.

    ``inputs`` and ``targets`` ``(length,)`` are indices of 62 characters, int32; targets are one character ahead. The
    entropy of single characters is 4.78 bits. The last tenth, of Romeo and Juliet, is for validation.

    William Shakespeare, in the public domain; part of the text of Karpathy, The Unreasonable Effectiveness of Recurrent
    Neural Networks, 2015.
    """

    def read(self) -> tuple[str, str]:
        """Return the text of the file that comes with this package."""
        with as_file(files("sigma_text") / "files" / "shakespeare.txt.gz") as path:
            return path.name, read_text(local(path), self.encoding)
