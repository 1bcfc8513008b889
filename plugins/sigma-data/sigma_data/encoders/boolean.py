"""Encode a column of two values as 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from sigma_data.encoders.columns import (
    EMPTY,
    FIX,
    cast,
    count_categories,
    decode,
    fill_rule,
    is_missing,
    place_categories,
    read_batches,
    refuse,
    refuse_missing,
)
from sigma_kernel import Encoder, SigmaDataError

WORDS = ("refuse", "mean", "most_frequent")
REMEDY = "set missing = 'most_frequent' or another replacement, or leave the row out"
PAIRS = [("false", "true"), ("no", "yes"), ("off", "on"), ("n", "y"), ("f", "t"), ("0", "1"), ("0.0", "1.0")]


@frozen
class BooleanEncoder(Encoder):
    """Encode booleans, or words for them, as 0 and 1.

    Without ``true``, words are true and false, yes and no, on and off, t and f, y and n, or 1 and 0, in any case.

    Args:
        true: The word, in any case, that becomes 1; the other one of the training rows becomes 0.
        missing: What replaces missing values: the mean or the most frequent of the training rows, or this number;
            or ``refuse``: a missing value is an error.
        indicator: Add a number that is 1 where the value is missing, else 0.
        section: Section of the data that the numbers belong to.
    """

    kinds: ClassVar[tuple[str, ...]] = ("boolean",)
    true: str = ""
    missing: Literal["refuse", "mean", "most_frequent"] | float = field(
        default="most_frequent", validator=fill_rule(*WORDS)
    )
    indicator: bool = False
    section: str = field(default="inputs", kw_only=True)

    def fit(self, columns: Iterable[Any], targets: Iterable[np.ndarray] | None = None) -> dict[str, Any]:
        """Return the ``words`` that become 0 and those that become 1, and the replacement ``fill``."""
        texts, counts, _ = count_categories(read_batches(columns, self._read))
        if not len(texts):
            raise SigmaDataError(EMPTY)
        words = self._words(texts.to_pylist())
        if (place_categories(texts, [*words[0], *words[1]]) < 0).any():
            self._refuse_others(columns, words)
        ones = int(counts[place_categories(texts, words[1]) >= 0].sum())
        share = ones / int(counts.sum())
        replacements = {"refuse": None, "mean": share, "most_frequent": float(share > 0.5)}
        fill = replacements[self.missing] if isinstance(self.missing, str) else float(self.missing)
        return {"words": words, "fill": fill}

    def _read(self, column: Any) -> Any:
        """Return the words of a column, in lower case."""
        column = decode(column)
        if self.missing == "refuse":
            refuse_missing(is_missing(column), column, REMEDY)
        return pc.utf8_lower(cast(column, pa.string(), f"{{}} is no boolean. {FIX}"))

    def _words(self, texts: list[str]) -> list[list[str]]:
        """Return the words for 0 and those for 1."""
        if not self.true:
            return [[pair[value] for pair in PAIRS] for value in (0, 1)]
        others = [text for text in texts if text != self.true.lower()]
        return [others[:1], [self.true.lower()]]

    def _refuse_others(self, columns: Iterable[Any], words: list[list[str]]) -> None:
        """Raise SigmaDataError for the first row that has another word."""
        for _ in read_batches(columns, lambda column: self._place(column, words)):
            pass

    def _place(self, column: Any, words: list[list[str]]) -> np.ndarray:
        """Return 0 or 1 for each row, NaN where there is no value."""
        texts = self._read(column)
        ones, zeros = (place_categories(texts, words[value]) >= 0 for value in (1, 0))
        missing = is_missing(decode(column))
        wanted = f"{words[1][0]!r} or {words[0][0]!r}" if words[0] else repr(words[1][0])
        refuse(~(ones | zeros | missing), decode(column), f"{{}} is not {wanted}. {FIX}")
        return np.where(missing, np.nan, ones)

    def apply(self, column: Any, state: Mapping[str, Any]) -> np.ndarray:
        """Return 0 or 1 and, if set, the indicator."""
        values = self._place(column, state["words"])
        missing = np.isnan(values)
        if state["fill"] is not None:
            values = np.where(missing, state["fill"], values)
        return np.stack([values, missing] if self.indicator else [values], axis=1).astype(np.float64)

    def names(self, column: str, state: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the name of the column and, if set, that of the indicator."""
        return (column, f"{column} is missing") if self.indicator else (column,)
