"""Pack texts without classes into windows of tokens, to predict each next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve

from sigma_data.arrays import Arrays
from sigma_data.datasets.splits import Loaded
from sigma_data.labels import list_first
from sigma_data.pictures.archive import is_archive
from sigma_data.pictures.folder import list_pictures
from sigma_data.pictures.labelled import SPLITS, split_folders
from sigma_data.splitting import split
from sigma_data.subset import NotedRows
from sigma_kernel import Dataset, SigmaConfigError, SigmaDataError
from sigma_text.datasets.encoded_texts import EncodedTexts, LabelledTexts
from sigma_text.decoding import TextDecoding, read_texts
from sigma_text.encoders.tokens import TokensEncoder
from sigma_text.vocabularies import TokenVocabulary
from sigma_text.windows import TokenWindows


def read_documents(place: Path, decoding: TextDecoding, ends: Sequence[str], divider: str = "") -> LabelledTexts:
    """Return the texts of a file, or of the files in a folder or an archive, perhaps with splits, without classes."""
    if not place.is_dir() and not is_archive(place):
        return LabelledTexts(_divide(decoding.read(place), divider), ())
    listing = list_pictures(place, tuple(ends))
    if not listing.pictures:
        raise SigmaDataError(f"{place}: has no texts. Their names must end in {', '.join(ends)}.")
    homes, texts = list[str](), list[str]()
    for file, text in zip(listing.pictures, read_texts(place, listing.pictures, tuple(ends), decoding), strict=True):
        pieces = _divide(text, divider)
        texts += pieces
        homes += [SPLITS.get(file.path.partition("/")[0].lower(), "")] * len(pieces)
    parts = {part: np.flatnonzero(np.array(homes) == part) for part in split_folders(place, tuple(ends))}
    check_parts(place, parts)
    return LabelledTexts(texts, (), parts, note_others(listing.others))


def pack_splits(data: EncodedTexts, place: Path, context: int, listed: LabelledTexts) -> Loaded:
    """Return the windows of each split, and the names of the tokens; the encoder learns from the training split."""
    encoder: Any = data.encoder
    if not isinstance(encoder, TokensEncoder):
        raise SigmaConfigError(
            f"{type(data).__name__}.encoder: {place} holds texts without classes, of which each next token is "
            f"predicted, and {type(encoder).__name__} has no tokens. Choose 'tokens', or make a folder for each class."
        )
    if not any(map(str.strip, listed.texts)):
        raise SigmaDataError(f"{place}: there is no text to train on, or only blanks. Give files with text.")
    texts = {name: [*filter(str.strip, part)] for name, part in _divide_texts(data, listed).items()}
    if not texts["training"]:
        raise SigmaDataError(f"{place}: there is no text to train on. Give files with text.")
    fitted = evolve(encoder, length=context)  # which saves dividing all texts, to count their tokens
    state = fitted.fit([pa.array(texts["training"], pa.large_string())])
    vocabulary = TokenVocabulary(encoder, state)
    names = vocabulary.names
    splits: dict[str, Dataset] = {}
    for name, part in texts.items():
        where = f"{place}: split {name!r}"
        windows = TokenWindows(where, vocabulary.pack(part), names, context, vocabulary)
        splits[name] = NotedRows(windows, np.arange(len(windows)), listed.notes) if listed.notes else windows
    return splits, names


def _divide_texts(data: EncodedTexts, listed: LabelledTexts) -> dict[str, list[str]]:
    """Return the texts of each split: those of its folder, or its share of the texts or of a single one."""
    texts = listed.texts
    if listed.parts and data.fold is not None:
        raise SigmaConfigError(
            f"{type(data).__name__}.fold: the texts have splits already: {', '.join(listed.parts)}. Move them."
        )
    if listed.parts:
        return {name: [texts[row] for row in part] for name, part in listed.parts.items()}
    if data.split_by == "stratified":
        raise SigmaConfigError(f"{type(data).__name__}.split_by: texts have no classes here. Split by record or block.")
    if len(texts) > 1:
        divided = split(Arrays(row=np.arange(len(texts))), data.split, data.split_by, data.seed, fold=data.fold)
        return {name: [texts[row] for row in part.block(0)["row"]] for name, part in divided.items()}
    (text,) = texts
    cut = split(Arrays(row=np.arange(len(text), dtype=np.int32)), data.split, "block", data.seed, fold=data.fold)
    return {name: _cut_text(text, part.block(0)["row"]) for name, part in cut.items()}


def _cut_text(text: str, rows: np.ndarray) -> list[str]:
    """Return the pieces of a text that have characters at these places."""
    pieces = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    return [text[piece[0] : piece[-1] + 1] for piece in pieces]


def _divide(text: str, divider: str) -> list[str]:
    return [*filter(str.strip, text.split(divider))] if divider else [text]


def check_parts(place: Path, parts: Mapping[str, np.ndarray]) -> None:
    """Raise SigmaDataError for a split without texts."""
    if empty := [name for name, rows in parts.items() if not len(rows)]:
        raise SigmaDataError(f"{place}: the split {empty[0]!r} has no texts. Add some, or delete its folder.")


def note_others(others: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for files that are no texts, if there are any."""
    return (f"{len(others)} files are no texts, and left out: {list_first(others)}.",) if others else ()
