"""Read ``metrics.jsonl``, the metrics of older run folders: a row is a JSON line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sigma_kernel.errors import SigmaConfigError
from sigma_store.regular import open_regular

LARGEST, LONGEST = 1 << 30, 1 << 24  # bytes of a file, and of a line, that are read
NAMES = 1 << 16  # of values in a file
WHOLE = 1 << 53  # beyond, a place in time is not exact


def rows(path: Path, log: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a file, but lines that cannot be read, whose number is logged; the last may be incomplete.

    Raises SigmaConfigError for a file that is missing or not a regular one.
    """
    damaged, names = 0, set[tuple[str, str]]()
    for line in _lines(path):
        row = _row(line)
        if row:
            names |= {(row["trainer"], name) for name in ("", *row["values"])}
        if row is None or len(names) > NAMES:
            damaged += line.endswith(b"\n")
        elif row:
            yield row
    if damaged:
        log(f"{path}: {damaged} damaged line{'s are' if damaged > 1 else ' is'} left out.")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, those that are too long in pieces."""
    try:
        with open_regular(path, LARGEST) as file:
            yield from iter(lambda: file.readline(LONGEST), b"")
    except OSError as error:
        why = "" if isinstance(error, FileNotFoundError) else f": {error.strerror}"
        raise SigmaConfigError(f"{path}: no metrics there{why}. Pass the folder of a run.") from None


def _row(line: bytes) -> Mapping[str, Any] | None:
    """Parse a line: an empty mapping for the head of the file, None if the line is damaged."""
    try:
        row = json.loads(line.decode(errors="replace"))
        if "format" in row:
            return {}
        numbers = [row[key] for key in ("iteration", "epoch", "seconds")]
        for value in row["values"].values():
            numbers += [0.0 if value[key] is None else value[key] for key in ("last", "low", "high")]
        places = [row.get(key, 0) for key in ("branch", "session", "start")]  # which older files do not have
        valid = isinstance(row["trainer"], str) and all(isinstance(number, int | float) for number in numbers)
        valid = valid and all(isinstance(place, int) for place in places)
        valid = valid and all(abs(float(number)) < WHOLE for number in numbers[:3])  # whole numbers may be too large
        return row if valid and [*map(float, numbers)] else None
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, OverflowError):
        return None
