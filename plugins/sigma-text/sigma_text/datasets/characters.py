"""Base class of character-level text data sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from sigma_data.datasets.splits import Loaded, Splits, shares
from sigma_data.readers.lines import as_text, lines
from sigma_data.readers.samples import ARRAYS, SamplesReader
from sigma_data.sources import local
from sigma_data.splitting import allot, cut
from sigma_kernel import SigmaDataError, Source
from sigma_kernel.settings import ge, must, optional
from sigma_text.windows import TextWindows, indices

WHOLE = 1 << 30  # the most characters of a line
CHARACTERS = must(lambda x: isinstance(x, str) and 0 < len(x) == len(set(x)), "a text with each character once")


@define(eq=False, kw_only=True)
class Characters(Splits):
    """Windows of characters; each target is the next character.

    The text is split first, in the order of the splits, so that no window crosses into another one.

    Args:
        length: Number of characters of a window.
        split: Share of the text of each split, by its name; one of them is ``training``.
        characters: Characters by index; by default all that the text has.
    """

    length: int = field(default=100, validator=ge(1))
    split: Mapping[str, float] = field(factory=lambda: {"training": 0.9, "validation": 0.1}, validator=shares)
    characters: str | None = field(default=None, validator=optional(CHARACTERS))

    encoding = "utf-8-sig"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits."""
        return tuple(self.split)

    @abstractmethod
    def read(self) -> tuple[str, str]:
        """Return the name of the text for errors, and the text."""

    def load(self) -> Loaded:
        """Return the windows of each part of the text, and its characters."""
        name, text = self.read()
        chars = self.characters or "".join(sorted(set(text)))
        codes = indices(text, chars, name, "Replace them, or leave out the setting `characters`.")
        parts = cut(codes, allot(len(codes), self.split))
        return {
            split: TextWindows(f"{name}: split {split!r}", part, chars, self.length) for split, part in parts.items()
        }, tuple(chars)

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the windows of another text, with the indices of the characters that a run has ``learned``.

        An ``.npy`` file holds windows of such indices.
        """
        if path.suffix.lower() in ARRAYS:
            return SamplesReader(shape, white).read(local(path))["values"]
        characters = (learned or {}).get("characters") or "".join(map(str, self.classes))
        text = read_text(local(path), self.encoding)
        codes = indices(text, characters, str(path), "The network has not learned them: replace them.")
        (length,) = shape
        if len(codes) < length:
            raise SigmaDataError(f"{path}: has {len(codes)} characters; a sample takes {length}. Give a longer text.")
        return codes[: len(codes) // length * length].reshape(-1, length)


def read_text(source: Source, encoding: str) -> str:
    """Return the text of a source, with line feeds; raise SigmaDataError if it is empty or has NUL characters."""
    with source.open() as stream, as_text(stream, encoding) as text:
        content = "".join(lines(text, WHOLE, source.name))
    if "\0" in content:
        line = content.count("\n", 0, content.index("\0")) + 1
        raise SigmaDataError(
            f"{source.name}:{line}: there is a NUL character. Set the `encoding` of the file, such as 'utf-16'."
        )
    if not content:
        raise SigmaDataError(f"{source.name}: is empty. Give a file with text.")
    return content
