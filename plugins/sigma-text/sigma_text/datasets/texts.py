"""Your own folder of text files as a data set."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from sigma_data.labels import list_first
from sigma_data.pictures.labelled import read_folders, split_folders
from sigma_kernel import SigmaDataError
from sigma_kernel.settings import ge
from sigma_text.datasets.encoded_texts import EncodedTexts, LabelledTexts
from sigma_text.decoding import TextDecoding, read_texts


@define(eq=False)
class Texts(EncodedTexts):
    """Text files, in a folder for each class, as numbers by an encoder.

    ``inputs`` are those of the encoder: by default the indices of words, int32, of shape (length,).  Rows are in the
    order of their paths.  Hidden files are left out, and files with other ends are, with a warning.  What the encoder
    learns from the training split is saved with the run, so that ``sigma predict RUN text.txt`` reads other texts.

    Folders named ``training`` (or ``train``), ``validation`` (``val``) and ``test`` above those of the classes are the
    splits; ``split`` then has no meaning.

    Args:
        folder: Folder of the texts, or a zip or tar archive of it, which is not extracted; in a configuration, a
            relative one starts in the directory of the configuration.
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
        return tuple(split_folders(self.folder, self.ends)) or super().names

    @property
    def decoding(self) -> TextDecoding:
        """Return how files are read."""
        return TextDecoding(self.encoding, self.largest)

    def read(self) -> LabelledTexts:
        """Return the texts of all files."""
        listed = read_folders(self.folder, self.ends, "text")
        if empty := [name for name, rows in listed.parts.items() if not len(rows)]:
            raise SigmaDataError(f"{self.folder}: the split {empty[0]!r} has no texts. Add some, or delete its folder.")
        others = listed.others
        notes = (f"{len(others)} files are no texts, and left out: {list_first(others)}.",) if others else ()
        texts = read_texts(self.folder, listed.pictures, self.ends, self.decoding)
        return LabelledTexts(texts, listed.classes.tolist(), listed.parts, notes)
