"""Divide texts into tokens by what an encoder learned, and join tokens to texts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from sigma_text.encoders.pairs import Pairs
from sigma_text.encoders.pieces import By, Pieces, place_pieces, read_texts

FIRST = 2  # index after those of padding and of unknown tokens
UNKNOWN = "\ufffd"  # the text of an unknown token
OPENING = {*"([{\u201c\u2018'\u2019-\u2013"}  # marks without a blank behind them
CLOSING = {*".,;:!?)]}%\u2026\u201d\u2019'-\u2013"}  # marks without a blank before them


@frozen(eq=False)
class Tokeniser(ABC):
    """The tokens of an encoder; ``lower`` is whether texts are read in lower case."""

    lower: bool

    @property
    @abstractmethod
    def tokens(self) -> Sequence[str]:
        """Return the tokens from index 2 on."""

    @abstractmethod
    def split(self, texts: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the text of each token, by number, and the tokens' indices: 1 for those that are unknown.

        ``texts`` are an Arrow array of large strings; at most ``length`` tokens of each are needed.
        """

    @abstractmethod
    def join(self, indices: Sequence[int]) -> str:
        """Return the text of tokens."""

    @property
    def size(self) -> int:
        """Return the number of indices."""
        return FIRST + len(self.tokens)

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the text of each token, by number, and all tokens' indices, of a list of texts."""
        return self.split(read_texts(pa.array(texts, pa.large_string()), self.lower))


@frozen(eq=False)
class PieceTokeniser(Tokeniser):
    """Words or characters."""

    by: By
    tokens: tuple[str, ...]

    def split(self, texts: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return text and index of each piece."""
        pieces = Pieces.from_texts(texts, self.by)
        return pieces.rows, place_pieces(pieces, self.tokens) + FIRST  # an unknown one is -1

    def join(self, indices: Sequence[int]) -> str:
        """Return the characters, or the words with blanks between them."""
        pieces = [self.tokens[i - FIRST] if i >= FIRST else UNKNOWN for i in indices]
        return "".join(pieces if self.by == "characters" else separate_words(pieces))


@frozen(eq=False)
class PairTokeniser(Tokeniser):
    """Byte pairs."""

    pairs: Pairs

    @property
    def tokens(self) -> Sequence[str]:
        """Return the names of the byte pairs."""
        return self.pairs.tokens

    @property
    def size(self) -> int:
        """Return the number of indices."""
        return FIRST + self.pairs.size

    def split(self, texts: Any, length: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return text and index of each byte pair."""
        rows, numbers = self.pairs.encode(texts, length)
        return rows, numbers + FIRST

    def join(self, indices: Sequence[int]) -> str:
        """Return the text of the bytes; incomplete characters are replaced."""
        return self.pairs.decode([i - FIRST for i in indices if i >= FIRST])


def separate_words(words: Iterable[str]) -> Iterable[str]:
    """Yield words with blanks between two, but before a closing mark and after an opening one."""
    last = ""
    for word in words:
        if last and word not in CLOSING and last not in OPENING:
            yield " "
        yield word
        last = word
