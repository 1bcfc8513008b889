"""Read chosen columns of a large, plain CSV table as numbers and words, as the reader ``csv`` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import frozen

from sigma_data.labels import EXACT
from sigma_data.readers.delimited import GAP_WORDS, Parser, Piece, Unfit, merges_integers, pieces
from sigma_data.threads import map_ahead
from sigma_kernel import Source

STRINGS = np.dtypes.StringDType()


@frozen
class Spelling:
    """The format of a table; with ``gaps``, values may be missing."""

    encoding: str
    delimiter: str
    decimal: str
    gaps: bool


def read(
    source: Source, spelling: Spelling, before: int, width: int, chosen: Sequence[int], words: set[int]
) -> list[np.ndarray]:
    """Return the number of each line behind the first lines, and the chosen columns; ValueError if Arrow cannot."""
    names = [str(i) for i in range(width)]
    types = {names[i]: pa.string() if i in words else pa.float64() for i in chosen}
    parser = Parser(names, spelling.delimiter, spelling.decimal, types, [*types], GAP_WORDS if spelling.gaps else ())

    def parse(piece: Piece) -> tuple[Any, np.ndarray]:
        table = parser.parse(piece)
        for part in (part for i in chosen if i not in words for part in table[names[i]].chunks):
            _check_numbers(part, piece.text)
        return table, piece.number_rows(table.num_rows)

    parts = [*map_ahead(parse, pieces(source, spelling.encoding, before, spelling.delimiter, len(names)))]
    if not parts:
        raise Unfit("no rows")
    whole = pa.concat_tables([table for table, _ in parts])
    return [
        np.concatenate([lines for _, lines in parts]),
        *(
            _words(whole[names[i]], spelling.gaps) if i in words else np.array(whole[names[i]].to_numpy())
            for i in chosen
        ),
    ]


def _check_numbers(part: Any, text: bytes) -> None:
    """Raise Unfit unless all numbers are finite, and no integer among them is merged with others."""
    values = part.to_numpy(zero_copy_only=False)
    if part.null_count:
        values = values[~np.isnan(values)]
    if len(values) != len(part) - part.null_count:
        raise Unfit("numbers that are not finite")
    plain = not len(values) or (values.min() > -EXACT and values.max() < EXACT)  # False for NaN
    if not plain and (not np.isfinite(values).all() or merges_integers(values, text)):
        raise Unfit("numbers that are not finite, or integers that merge")


def _words(column: Any, gaps: bool) -> np.ndarray:
    codes = column.combine_chunks().dictionary_encode()
    words = codes.dictionary.to_pylist()
    if not gaps and not all(map(str.strip, words)):
        raise Unfit("a missing word")
    return np.asarray(np.array(words, STRINGS)[codes.indices.to_numpy()])
