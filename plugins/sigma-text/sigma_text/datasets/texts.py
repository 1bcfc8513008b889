"""Your own folder of text files as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, evolve, field

from sigma_data.datasets.splits import Loaded
from sigma_data.labels import list_first
from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.folder import subfolders
from sigma_data.pictures.labelled import read_folders, split_folders
from sigma_data.readers.samples import ARRAYS
from sigma_kernel import Dataset, Inspection, Label, SigmaDataError
from sigma_kernel.settings import ge, optional
from sigma_text.datasets.encoded_texts import EncodedTexts, LabelledTexts
from sigma_text.datasets.packing import check_parts, note_others, pack_splits, read_documents
from sigma_text.decoding import TextDecoding, list_texts, read_texts
from sigma_text.profile import inspect_running, inspect_texts
from sigma_text.vocabularies import TokenVocabulary, read_vocabulary

LARGEST, LONGEST = 1 << 24, 1 << 30  # bytes of a file of a class, and of another


@define(eq=False)
class Texts(EncodedTexts):
    """Text files, in a folder for each class, as numbers by an encoder; or, without classes, to predict what follows.

    ``inputs`` are those of the encoder: by default the indices of words, int32, of shape (length,).  Rows are in the
    order of their paths.  Hidden files are left out, and files with other ends are, with a warning.  What the encoder
    learns from the training split is saved with the run, so that ``sigma predict RUN text.txt`` reads other texts.

    Files without folders of two or more classes, or a single file, are packed: all tokens of a split follow one
    another, with index 0 between two texts, and are cut into windows of ``context`` tokens.  ``inputs`` and
    ``targets``, int32, are windows; a target is the token that follows.  The encoder must be ``tokens``; its
    ``length`` then has no meaning.  Splits have their share of the texts; a single one is cut, in the order of the
    splits.

    Folders named ``training`` (or ``train``), ``validation`` (``val``) and ``test`` above those of the classes are the
    splits; ``split`` then has no meaning.

    Args:
        folder: Folder of the texts, a zip or tar archive of it, which is not extracted, or a text file; in a
            configuration, a relative one starts in the directory of the configuration.
        ends: Ends of the names of text files, in lower case; ``""`` is any.
        encoding: Encoding of the files.
        largest: Most bytes of a file; by default 16 MiB of one in the folder of a class, and 1 GiB of another.
        context: Tokens of a window, of texts without classes.
        divider: What divides a file without a class into texts, such as ``"<|endoftext|>"``; by default it is one.
    """

    folder: Path = field(converter=Path)
    ends: tuple[str, ...] = field(default=(".txt",), converter=tuple, kw_only=True)
    encoding: str = field(default="utf-8-sig", kw_only=True)
    largest: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    context: int = field(default=128, validator=ge(1), kw_only=True)
    divider: str = field(default="", kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the splits; only the names of folders are read."""
        return tuple(split_folders(self.folder, self.ends)) or super().names

    @property
    def decoding(self) -> TextDecoding:
        """Return how the files of classes are read."""
        return TextDecoding(self.encoding, self.largest or LARGEST)

    def read(self) -> LabelledTexts:
        """Return the texts of all files."""
        self._check_loose()
        listed = read_folders(self.folder, self.ends, "text")
        check_parts(self.folder, listed.parts)
        texts = read_texts(self.folder, listed.pictures, self.ends, self.decoding)
        return LabelledTexts(texts, listed.classes.tolist(), listed.parts, note_others(listed.others))

    def _check_loose(self) -> None:
        """Raise SigmaDataError for texts beside a single folder, of which neither can be meant."""
        paths = list_texts(self.folder, self.ends)[0]
        folders = [*{path.partition("/")[0] for path in paths if "/" in path}]
        if (loose := [path for path in paths if "/" not in path]) and len(folders) == 1:
            raise SigmaDataError(
                f"{self.folder}: {list_first(loose)} is not in the folder of a class, and {list_first(folders)} is the "
                "only folder. Move its texts out of it, or make a folder for each class."
            )

    def profile(self) -> Inspection:
        """Return the lengths and the words of the texts, by class if they have any, as ``sigma data show`` does."""
        if not self.has_classes:
            listed = self.read_documents()
            return inspect_running(self.folder, listed.texts, listed.notes)
        listed = self.read()
        return inspect_texts(self.folder, listed.texts, listed.classes, listed.notes)

    # -- texts without classes -----------------------------------------------------------------------------------------
    @property
    def has_classes(self) -> bool:
        """Return whether files are in folders of two classes or more; only their names are read.

        A single folder is none of a class, unless there are files beside it, which is an error when they are read.
        """
        if self.folder.is_file() and not is_archive(self.folder):
            return False
        depth = len(split_folders(self.folder, self.ends)[:1])
        paths = [path.split("/") for path in list_texts(self.folder, self.ends)[0]]
        homes = {path[depth] if len(path) > depth + 1 else "" for path in paths}
        return not paths or len(homes if depth else homes.union(subfolders(self.folder, self.ends))) > 1

    def read_documents(self) -> LabelledTexts:
        """Return the texts of all files, without classes."""
        return self._read_documents(self.folder)

    def _read_documents(self, place: Path) -> LabelledTexts:
        return read_documents(place, TextDecoding(self.encoding, self.largest or LONGEST), self.ends, self.divider)

    def all_rows(self) -> tuple[Dataset, tuple[Label, ...]]:
        """Return all rows, encoded as if all were for training."""
        if self.has_classes:
            return super().all_rows()
        listed = self.read_documents()
        whole = evolve(listed, parts={"training": np.arange(len(listed.texts))})
        splits, names = pack_splits(self, self.folder, self.context, whole)
        return splits["training"], names

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes, or of the tokens."""
        if self.has_classes:
            return super().load()
        return pack_splits(self, self.folder, self.context, self.read_documents())

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the numbers of the text of a file, or of each file of a folder; without classes, their windows."""
        vocabulary = read_vocabulary((learned or {}) if learned is not None or self.has_classes else self._state)
        if not isinstance(vocabulary, TokenVocabulary) or path.suffix.lower() in ARRAYS:
            return super().samples(path, shape, white, learned)
        codes = vocabulary.pack(self._read_documents(path).texts)
        (length,) = shape
        if len(codes) < length:
            raise SigmaDataError(f"{path}: has {len(codes)} tokens; a sample takes {length}. Give a longer text.")
        return codes[: len(codes) // length * length].reshape(-1, length)

    @property
    def _state(self) -> Mapping[str, Any]:
        return dict(getattr(self["training"], "learned", {}))

    def files(self, path: Path) -> list[Path]:
        """Return the texts in a folder, in the order of their samples; none if windows reach over several."""
        return super().files(path) if self.has_classes else []
