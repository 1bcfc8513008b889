"""Places of tables: paths, and tables in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from sigma_kernel import SigmaConfigError, Source


class InMemory(Protocol):
    """A table of Arrow, a frame, or anything else that Arrow reads."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a stream of Arrow."""


def as_place(given: Any) -> Path | Source | InMemory:
    """Return a path for a text; a source or a table in memory as it is; raise SigmaConfigError for anything else."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return Path(given)
    is_table = isinstance(given, Mapping) or hasattr(given, "columns") or hasattr(given, "__arrow_c_stream__")
    if not is_table:
        raise SigmaConfigError(f"path: must be a path or a table (got {type(given).__name__}). Give 'houses.csv'.")
    table: InMemory = given
    return table


def name_place(place: Path | Source | InMemory) -> str:
    """Return the name of a place for people."""
    return str(place) if isinstance(place, Path) else str(getattr(place, "name", "table"))
