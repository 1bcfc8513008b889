"""Base class of data sets of texts with a class each, which an encoder turns into numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import Factory, define, field, frozen

from sigma_data.arrays import Arrays, Titled
from sigma_data.datasets.splits import Divided, Loaded
from sigma_data.encoded import EncodedColumn, EncodedColumns, read_encoded
from sigma_data.labels import Codes, Labels
from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.folder import list_pictures
from sigma_data.readers.samples import ARRAYS, SamplesReader
from sigma_data.sources import local
from sigma_data.splitting import split
from sigma_data.subset import NotedRows
from sigma_kernel import Dataset, Encoder, SigmaConfigError, SigmaDataError
from sigma_kernel.errors import SigmaComponentError
from sigma_text.decoding import TextDecoding, list_texts, read_texts
from sigma_text.encoders.tokens import TokensEncoder

COLUMN = "text"  # as texts are a table of one column
PLACE = "text {}".format


@frozen(eq=False)
class LabelledTexts:
    """Texts and their classes.

    ``parts`` has the rows of each split, if these are given; ``notes`` say what is left out.
    """

    texts: Sequence[str]
    classes: Sequence[str]
    parts: Mapping[str, np.ndarray] = Factory(dict)
    notes: tuple[str, ...] = ()


@define(eq=False, kw_only=True)
class EncodedTexts(Divided):
    """Texts with a class each.

    Args:
        encoder: Encoder of texts, which learns from those of the training split.
    """

    encoder: Encoder = field(factory=TokensEncoder)

    ends = tuple[str, ...]((".txt",))  # of names of files

    @encoder.validator
    def _check_section(self, attribute: Any, value: Encoder) -> None:
        if value.section == "targets":
            raise SigmaConfigError(f"{type(self).__name__}.encoder: its section is that of the classes. Set another.")

    @property
    def decoding(self) -> TextDecoding:
        """Return how files are read."""
        return TextDecoding()

    @abstractmethod
    def read(self) -> LabelledTexts:
        """Return the texts."""

    def all_rows(self) -> tuple[Dataset, tuple[Any, ...]]:
        """Return all rows, encoded as if all were for training."""
        listed = self.read()
        splits, classes = self._encode_splits(listed, {"training": np.arange(len(listed.texts))})
        return splits["training"], classes

    def load(self) -> Loaded:
        """Return the splits, and the names of the classes."""
        listed = self.read()
        if listed.parts and self.fold is not None:
            raise SigmaConfigError(
                f"{type(self).__name__}.fold: the texts have splits already: {', '.join(listed.parts)}. Move them."
            )
        if listed.parts:
            return self._encode_splits(listed, listed.parts)
        numbered = Arrays(row=np.arange(len(listed.texts)), targets=_labels(listed))
        divided = split(numbered, self.split, self.split_by, self.seed, fold=self.fold)
        return self._encode_splits(listed, {name: part.block(0)["row"] for name, part in divided.items()})

    def _encode_splits(self, listed: LabelledTexts, parts: Mapping[str, np.ndarray]) -> Loaded:
        labels, texts, first = _labels(listed), _tabulate(listed.texts), parts["training"]
        plain = EncodedColumns((EncodedColumn(COLUMN, self.encoder),), section=self.encoder.section)
        columns = plain.fit(texts.take(first), labels.array[first], lambda row: PLACE(int(first[row])))
        values = columns.apply(texts, PLACE, first)
        sections: dict[str, Any] = {columns.section: Titled(values, columns.titles, columns, "texts")}
        rows = Arrays(**sections, targets=labels)
        return {name: NotedRows(rows, part, listed.notes) for name, part in parts.items()}, labels.names

    # -- prediction ----------------------------------------------------------------------------------------------------
    def encode_texts(self, texts: Sequence[str], learned: Mapping[str, Any] | None = None) -> np.ndarray:
        """Return the numbers of other texts, to predict from, by what a run ``learned``, or by the training split."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise SigmaDataError(f"texts: must be a list of strings (got {texts!r:.60}).")
        learned = getattr(self["training"], "learned", {}) if learned is None else learned
        columns = read_encoded(learned, self.encoder.section, "texts")
        try:
            return columns.apply(_tabulate(texts), PLACE)
        except (TypeError, LookupError, ValueError, AttributeError, SigmaComponentError) as error:
            raise SigmaDataError(
                "texts: the state of the encoder is damaged in the checkpoint. Use another checkpoint, or train again."
            ) from error

    def samples(
        self,
        path: Path,
        shape: tuple[int, ...],
        white: float | None = None,
        learned: Mapping[str, Any] | None = None,
    ) -> np.ndarray:
        """Return the numbers of the texts of a file, folder or archive; of an ``.npy`` file, its samples."""
        if path.suffix.lower() in ARRAYS:
            return SamplesReader(shape, white).read(local(path))["values"]
        values = self.encode_texts(self._read_texts(path), learned)
        if values.shape[1:] != tuple(shape):
            raise SigmaDataError(
                f"{path}: texts have shape {values.shape[1:]}; the network takes {tuple(shape)}. Set the run's encoder."
            )
        return values

    def _read_texts(self, path: Path) -> list[str]:
        """Return the text of a file, or of each file of a folder or an archive; raise SigmaDataError if it has none."""
        if not path.is_dir() and not is_archive(path):
            return [self.decoding.read(path)]
        if not (files := list_pictures(path, self.ends).pictures):
            raise SigmaDataError(f"{path}: has no text files. Their names must end in {', '.join(self.ends)}.")
        return read_texts(path, files, self.ends, self.decoding)

    def claims(self, path: Path) -> bool:
        """Return whether a path holds texts, a file each, and no table."""
        return path.is_dir() or is_archive(path) or path.name.lower().endswith(self.ends)

    def files(self, path: Path) -> list[Path]:
        """Return the texts in a folder or an archive, in the order of their samples."""
        return [path / name for name in list_texts(path, self.ends)[0]]


def _tabulate(texts: Sequence[str]) -> Any:
    return pa.table({COLUMN: pa.array(texts, pa.large_string())})


def _labels(listed: LabelledTexts) -> Labels:
    return Labels.from_codes(Codes(np.array(listed.classes, np.dtypes.StringDType()), "texts"))
