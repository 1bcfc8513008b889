"""Encode texts by the numbers of their words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from attrs import field, frozen

from sigma_kernel import Encoder
from sigma_kernel.settings import ge, in_
from sigma_text.encoders.pieces import Counts, Pieces, place_pieces, read_all_texts, read_texts

WEIGHTS = ("counts", "presence", "tf_idf")


@frozen
class BagOfWordsEncoder(Encoder):
    """Encode a text as a number for each of the most frequent words of the training rows; others are left out.

    It is how often the text has the word, 1 if it has it, or its ``tf_idf``: the former times ln((1 + n) / (1 + d)) +
    1 for a word in d of n training rows, divided by the Euclidean norm of the text.  Words are those of ``tokens``.  A
    text without any, or a missing one, is all zeros.

    Salton and Buckley, Term-Weighting Approaches in Automatic Text Retrieval, Information Processing and Management 24
    (5), 1988; with the frequencies that scikit-learn calls smooth.

    Args:
        most: Number of words.
        weights: What the numbers are.
        lower: Whether upper and lower case are the same.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("text", "category", "identifier", "constant")
    most: int = field(default=1000, validator=ge(1), kw_only=True)
    weights: Literal["counts", "presence", "tf_idf"] = field(default="tf_idf", validator=in_(WEIGHTS), kw_only=True)
    lower: bool = field(default=True, kw_only=True)
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``tokens``, in how many ``texts`` each one is, and the number of ``rows``."""
        counts = Counts.from_batches(read_all_texts(columns, self.lower), "words")
        tokens = counts.most_frequent(self.most)
        return {
            "tokens": tokens,
            "texts": [counts.texts[token] for token in tokens],
            "rows": counts.lengths.total(),
        }

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return the numbers, float64, of shape (rows, words)."""
        pieces, width = Pieces.from_texts(read_texts(column, self.lower), "words"), len(state["tokens"])
        places = place_pieces(pieces, state["tokens"])
        cells = (pieces.rows * width + places)[places >= 0]
        counts = np.bincount(cells, minlength=len(column) * width).reshape(len(column), width).astype(np.float64)
        if self.weights == "presence":
            return np.minimum(counts, 1.0)
        if self.weights == "counts":
            return counts
        counts *= np.log((1 + state["rows"]) / (1 + np.array(state["texts"]))) + 1
        norms = np.sqrt(np.square(counts).sum(axis=1, keepdims=True))
        return np.asarray(counts / np.where(norms, norms, 1.0))

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the column with each word."""
        return tuple(f"{column} {token}" for token in state["tokens"])
