"""Encode texts as indices of their words, characters or byte pairs, for the layer ``embedding``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import converters, field, frozen

from sigma_kernel import Encoder, SigmaConfigError
from sigma_kernel.settings import ge, in_, optional
from sigma_text.encoders.pairs import Pairs
from sigma_text.encoders.pieces import Counts, choose_length, fill_rows, read_all_texts, read_texts
from sigma_text.encoders.tokenisers import FIRST, PairTokeniser, PieceTokeniser, Tokeniser

BYTES = 256


@frozen
class TokensEncoder(Encoder):
    """Encode a text as the indices of its tokens, int32: 0 is padding, at the end, and 1 an unknown token.

    Tokens are words, with each punctuation mark as a word of its own, characters, or byte pairs.  The most frequent
    ones of the training rows have the indices from 2 on, by frequency.  Texts that are longer than ``length`` are cut
    off.  A text without tokens, or a missing one, is a single unknown token, so that no mask is empty.  A layer
    ``embedding`` has a vocabulary of at most ``most``.

    Byte pairs need the library tokenizers: ``python -m pip install "sigma-text[tokens]"``.  They are learned from the
    training rows, or those of a ``tokenizer.json``, whose indices are increased by 2.  Sennrich, Haddow and Birch,
    Neural Machine Translation of Rare Words with Subword Units, ACL 2016.

    Args:
        by: What tokens are.
        most: Number of indices, those of padding and of unknown tokens included.
        length: Number of tokens of a text; by default, that which 99 % of the training rows do not exceed.
        lower: Whether upper and lower case are the same.
        file: The ``tokenizer.json`` of given byte pairs; ``most`` and ``lower`` then have no meaning.
        section: Section of the data that the indices belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("text", "category", "identifier", "constant")
    by: Literal["words", "characters", "pairs"] = field(
        default="words", validator=in_(("words", "characters", "pairs")), kw_only=True
    )
    most: int = field(default=10_000, validator=ge(FIRST + 1), kw_only=True)
    length: int | None = field(default=None, validator=optional(ge(1)), kw_only=True)
    lower: bool = field(default=True, kw_only=True)
    file: Path | None = field(default=None, converter=converters.optional(Path), kw_only=True)
    section: str = field(default="inputs", kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Raise SigmaConfigError for settings that do not fit each other."""
        if self.file is not None and self.by != "pairs":
            raise SigmaConfigError(
                f"TokensEncoder.file: is for by = 'pairs' (got {self.by!r}). Set that, or drop the file."
            )
        if self.by == "pairs" and self.file is None and self.most < FIRST + BYTES:
            raise SigmaConfigError(
                f"TokensEncoder.most: must be at least {FIRST + BYTES} for byte pairs, which start from {BYTES} bytes "
                f"(got {self.most})."
            )

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``tokens`` from index 2 on, or the ``tokenizer``, and the ``length``."""
        if self.by == "pairs":
            return self._fit_pairs(columns)
        counts = Counts.from_batches(read_all_texts(columns, self.lower), self.by)
        return {
            "tokens": counts.most_frequent(self.most - FIRST),
            "length": self.length or choose_length(counts.lengths),
        }

    def _fit_pairs(self, columns: Iterable[Any]) -> dict[str, Any]:
        if self.file is not None:
            pairs = Pairs.from_file(self.file)
        else:
            pairs = Pairs.learn(read_all_texts(columns, self.lowers), self.most - FIRST)
        length = self.length or choose_length(pairs.count_lengths(read_all_texts(columns, self.lowers)))
        return {"tokenizer": pairs.to_plain(), "length": length}

    @property
    def lowers(self) -> bool:
        """Return whether texts are read in lower case."""
        return self.lower and self.file is None  # a tokenizer has its own way

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the indices, int32, of shape (rows, length)."""
        length = int(state["length"])
        rows, indices = self.open(state).split(read_texts(column, self.lowers), length)
        return fill_rows(len(column), length, rows, indices)

    def open(self, state: Mapping[str, Any]) -> Tokeniser:
        """Return what divides texts into tokens, and joins these; raise SigmaDataError for a damaged state."""
        if self.by == "pairs":
            return PairTokeniser(self.lowers, Pairs.from_plain(state["tokenizer"]))
        return PieceTokeniser(self.lowers, self.by, tuple(state["tokens"]))

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the column with the number of each token of a text."""
        return tuple(f"{column} {place}" for place in range(int(state["length"])))

    def size(self, state: Mapping[str, Any]) -> int:
        """Return the number of indices: the ``vocabulary`` of a layer ``embedding``."""
        return self.open(state).size
