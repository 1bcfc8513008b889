"""Words and characters of a column of texts, and how often they occur in the training rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import Factory, frozen

from sigma_data.encoders.columns import FIX, cast, decode
from sigma_kernel import SigmaDataError

By = Literal["words", "characters"]
PUNCTUATION = r"([^\p{L}\p{M}\p{N}\s])"  # all but letters, their marks, digits and blanks


@frozen(eq=False)
class Pieces:
    """The pieces of some texts, one after another: ``rows`` are their texts, ``codes`` their places in ``values``.

    ``values`` are the different pieces, an Arrow array of strings; ``texts`` is the number of texts.
    """

    texts: int
    rows: np.ndarray
    codes: np.ndarray
    values: Any

    @classmethod
    def from_texts(cls, texts: Any, by: By) -> Pieces:
        """Return the words or the characters of an Arrow array of large strings."""
        return cls(len(texts), *(_split_words(texts) if by == "words" else _split_characters(texts)))


def read_texts(column: Any, lower: bool) -> Any:
    """Return a column as large strings, in lower case if that is asked for; a missing text is an empty one."""
    column = decode(column)
    texts = pc.fill_null(cast(column, pa.large_string(), f"{{}} is no text. {FIX}"), "")
    return pc.utf8_lower(texts) if lower else texts


def read_all_texts(columns: Iterable[Any], lower: bool) -> Iterable[Any]:
    """Yield the texts of each batch; an error counts its row over all of them."""
    first = 0
    for column in columns:
        try:
            yield read_texts(column, lower)
        except SigmaDataError as error:
            raise SigmaDataError(*error.args, row=first + (error.row or 0)) from None
        first += len(column)


def _split_words(texts: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return rows, codes and values of what blanks and punctuation divide; each mark of the latter is a word."""
    lists = pc.utf8_split_whitespace(pc.replace_substring_regex(texts, PUNCTUATION, r" \1 "))
    words, rows = pc.list_flatten(lists), pc.list_parent_indices(lists)
    there = pc.not_equal(pc.binary_length(words), 0)
    codes = pc.dictionary_encode(words.filter(there))
    return rows.filter(there).to_numpy().astype(np.int64), codes.indices.to_numpy(), codes.dictionary


def _split_characters(texts: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    points = np.frombuffer("".join(texts.to_pylist()).encode("utf-32-le"), np.uint32)
    values, codes = np.unique(points, return_inverse=True)
    rows = np.repeat(np.arange(len(texts)), pc.utf8_length(texts).to_numpy().astype(np.int64))
    return rows, codes, pa.array(map(chr, values.tolist()), pa.large_string())


@frozen(eq=False)
class Counts:
    """How often each piece occurs, in how many texts, and how many texts have each number of pieces."""

    pieces: Counter[str] = Factory(Counter)
    texts: Counter[str] = Factory(Counter)
    lengths: Counter[int] = Factory(Counter)

    @classmethod
    def from_batches(cls, batches: Iterable[Any], by: By) -> Counts:
        """Return the counts of batches of texts; they do not depend on how these are divided."""
        counts = cls()
        for texts in batches:
            counts._add(Pieces.from_texts(texts, by))
        return counts

    def _add(self, pieces: Pieces) -> None:
        words, size = pieces.values.to_pylist(), len(pieces.values)
        self.pieces.update(dict(zip(words, np.bincount(pieces.codes, minlength=size).tolist(), strict=True)))
        apart = np.unique(pieces.rows * max(1, size) + pieces.codes) % max(1, size)
        self.texts.update(dict(zip(words, np.bincount(apart, minlength=size).tolist(), strict=True)))
        self.lengths.update(np.bincount(pieces.rows, minlength=pieces.texts).tolist())

    def most_frequent(self, most: int) -> list[str]:
        """Return the most frequent pieces, those of equal counts in alphabetical order; SigmaDataError for none."""
        if not self.pieces:
            raise SigmaDataError("no row has a text. Leave the column out.")
        return sorted(self.pieces, key=lambda piece: (-self.pieces[piece], piece))[:most]


def choose_length(lengths: Counter[int]) -> int:
    """Return the number of pieces that at least 99 % of the texts do not exceed, at least 1."""
    numbers = sorted(lengths)
    shares = np.cumsum([lengths[number] for number in numbers])
    return max(1, numbers[int(np.argmax(100 * shares >= 99 * shares[-1]))]) if numbers else 1


def place_pieces(pieces: Pieces, vocabulary: Any) -> np.ndarray:
    """Return the place of each piece in a vocabulary, int64, -1 for those that are not in it."""
    wanted = pa.array(vocabulary, pa.large_string())
    places = pc.fill_null(pc.index_in(pieces.values, value_set=wanted), -1).to_numpy().astype(np.int64)
    return np.asarray(places[pieces.codes])


def fill_rows(texts: int, length: int, rows: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return indices in the rows of a matrix, int32, cut off or padded with 0; a row without any is 1, unknown."""
    matrix = np.zeros((texts, length), np.int32)
    starts = np.searchsorted(rows, np.arange(texts + 1))
    matrix[starts[:-1] == starts[1:], 0] = 1
    columns = np.arange(len(rows)) - starts[rows]
    inside = columns < length
    matrix[rows[inside], columns[inside]] = indices[inside]
    return matrix
