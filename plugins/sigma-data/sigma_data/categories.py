"""One-hot encoding of categorical columns among the inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sigma_data.labels import indices, listed
from sigma_kernel import SigmaDataError

CELLS = 1 << 28  # elements that one encoded column may have: 2 GiB


def categories(words: np.ndarray, where: str) -> tuple[str, ...]:
    """Return the categories of a column, sorted by name or number, without blanks."""
    there = words[np.array([bool(cell.strip()) for cell in words.tolist()], bool)]
    if not len(there):
        raise SigmaDataError(f"{where}: there is no category: every cell is blank. Leave the column out.")
    return indices(there, where)[1]


def one_hot(words: np.ndarray, names: Sequence[str], lines: np.ndarray, file: str, column: str) -> np.ndarray:
    """Return one column per category, float64; NaN in all of them for a blank.

    Raises SigmaDataError, with file, line and column, for an unknown category, and for more than CELLS elements.
    """
    if len(words) * len(names) > CELLS:
        raise SigmaDataError(
            f"{file}: column {column!r}: a column for each of {len(names)} categories of {len(words)} rows takes too "
            "much memory. Merge some of them, or leave the column out."
        )
    places = {name: i for i, name in enumerate(names)}
    cells = [cell.strip() for cell in words.tolist()]
    unknown = next((row for row, cell in enumerate(cells) if cell and cell not in places), None)
    if unknown is not None:
        raise SigmaDataError(
            f"{file}:{lines[unknown]}: column {column!r}: {cells[unknown]!r} is not one of the {len(names)} categories "
            f"of the training data: {listed(names)}. Correct it, or leave the row out."
        )
    codes = np.array([places.get(cell, -1) for cell in cells], np.intp)
    found = np.equal(codes[:, None], np.arange(len(names))).astype(np.float64)
    found[codes < 0] = np.nan
    return found
