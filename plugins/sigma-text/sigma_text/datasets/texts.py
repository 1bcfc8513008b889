"""Your own folder of text files as a data set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from attrs import define, field

from sigma_data.labels import list_first
from sigma_data.pictures.folder import subfolders
from sigma_data.pictures.labelled import SPLITS, split_folders
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import ge
from sigma_text.datasets.encoded_texts import EncodedTexts, LabelledTexts
from sigma_text.decoding import TextDecoding, list_texts


@define(eq=False)
class Texts(EncodedTexts):
    """Text files, in a folder for each class, as numbers by an encoder.

    ``inputs`` are those of the encoder: by default the indices of words, int32, of shape (length,).  Rows are in the
    order of their paths.  Hidden files are left out, and files with other ends are, with a warning.  What the encoder
    learns from the training split is saved with the run, so that ``sigma predict RUN text.txt`` reads other texts.

    Folders named ``training`` (or ``train``), ``validation`` (``val``) and ``test`` above those of the classes are the
    splits; ``split`` then has no meaning.

    Args:
        folder: Folder of the texts; in a configuration, a relative one starts in the directory of the configuration.
        ends: Ends of the names of text files, in lower case; ``""`` is any.
        encoding: Encoding of the files.
        largest: Most bytes of a file.
    """

    folder: Path = field(converter=Path)
    ends: tuple[str, ...] = field(default=(".txt",), converter=tuple, kw_only=True)
    encoding: str = field(default="utf-8-sig", kw_only=True)
    largest: int = field(default=1 << 24, validator=ge(1), kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; only the names of folders are read."""
        return tuple(split_folders(self.folder)) or tuple(self.split)

    @property
    def decoding(self) -> TextDecoding:
        """Return how files are read."""
        return TextDecoding(self.encoding, self.largest)

    def read(self) -> LabelledTexts:
        """Return the texts of all files."""
        paths, others = list_texts(self.folder, self.ends)
        if not paths:
            raise SigmaDataError(f"{self.folder}: there is no text in it. Their names end in {', '.join(self.ends)}.")
        depth = 1 if split_folders(self.folder) else 0
        parts = [path.split("/") for path in paths]
        if loose := ["/".join(part) for part in parts if len(part) < depth + 2]:
            raise SigmaDataError(f"{self.folder}: {list_first(loose)} is not in the folder of a class. Move it to one.")
        classes = [part[depth] for part in parts]
        self._check_folders(depth, {*classes})
        homes = np.array([SPLITS.get(part[0].lower(), "") for part in parts])
        rows = {name: np.flatnonzero(homes == name) for name in split_folders(self.folder)}
        if empty := [name for name, there in rows.items() if not len(there)]:
            raise SigmaDataError(f"{self.folder}: there is no text of the split {empty[0]!r}. Add some, or delete it.")
        notes = (f"{len(others)} files are no texts, and left out: {list_first(others)}.",) if others else ()
        return LabelledTexts([self.decoding.read(self.folder / path) for path in paths], classes, rows, notes)

    def _check_folders(self, depth: int, classes: set[str]) -> None:
        """Raise SigmaDataError for the folder of a class without texts."""
        places = [self.folder / part for part in subfolders(self.folder)] if depth else [self.folder]
        if empty := sorted({name for place in places for name in subfolders(place)} - classes):
            raise SigmaDataError(
                f"{self.folder}: there is no text of the class {list_first(empty)}. Add some, or delete it."
            )
