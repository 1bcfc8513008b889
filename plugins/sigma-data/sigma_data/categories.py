"""One-hot encoding of categorical columns among the inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sigma_data.labels import Row, check_blanks, in_order, indices, list_first
from sigma_kernel import SigmaDataError

CELLS = 1 << 28  # elements that one encoded column may have: 2 GiB


def categories(words: np.ndarray, where: str, row: Row = "row {}".format, order: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the categories of a column without blanks: in their ``order``, else sorted by name or number."""
    check_blanks(words, where, row)
    there = words[np.array([bool(cell.strip()) for cell in words.tolist()], bool)]
    if not len(there):
        raise SigmaDataError(f"{where}: there is no category: every cell is blank. Leave the column out.")
    return tuple(map(str, indices(there, where, order=order)[1]))


def parse_categories(saved: Any, columns: int, size: int, where: str) -> dict[str, tuple[str, ...]]:
    """Return the categories that a run saved, by the index of their column.

    Raises SigmaDataError unless they are those of this many ``columns``, each in order, in samples of ``size`` numbers.
    """
    by_column = saved if isinstance(saved, Mapping) else {}
    whole = len(by_column) == columns and all(map(_are_categories, by_column.values()))
    width = size - sum(len(names) - 1 for names in by_column.values()) if whole else 0  # columns of a sample
    if not whole or not all(re.fullmatch("0|[1-9][0-9]{0,8}", i) and int(i) < width for i in by_column):
        raise SigmaDataError(
            f"{where}: the categories of its {columns} encoded columns are damaged in the checkpoint: it holds "
            f"{saved!r:.60}. Use another checkpoint, or train again."
        )
    return {i: tuple(names) for i, names in by_column.items()}


def _are_categories(names: Any) -> bool:
    if not names or not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return False
    return in_order(names) == tuple(names) and all(name and name == name.strip() for name in names)


def one_hot(words: np.ndarray, names: Sequence[str], place: Callable[[int], str], column: str) -> np.ndarray:
    """Return one column per category, float64; NaN in all of them for a blank.

    ``place`` is where a row is.  Raises SigmaDataError, with place and column, for an unknown category, and for more
    than CELLS elements.
    """
    if len(words) * len(names) > CELLS:
        raise SigmaDataError(
            f"{place(0)}: column {column!r}: a column for each of {len(names)} categories of {len(words)} rows takes "
            "too much memory. Merge some of them, or leave the column out."
        )
    places = {name: i for i, name in enumerate(names)}
    cells = [cell.strip() for cell in words.tolist()]
    unknown = next((row for row, cell in enumerate(cells) if cell and cell not in places), None)
    if unknown is not None:
        raise SigmaDataError(
            f"{place(unknown)}: column {column!r}: {cells[unknown]!r} is not one of the {len(names)} categories "
            f"of the training data: {list_first(names)}. Correct it, or leave the row out."
        )
    codes = np.array([places.get(cell, -1) for cell in cells], np.intp)
    matrix = np.equal(codes[:, None], np.arange(len(names))).astype(np.float64)
    matrix[codes < 0] = np.nan
    return matrix
