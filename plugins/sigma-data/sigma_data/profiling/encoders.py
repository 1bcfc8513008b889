"""Choose an encoder for each kind of column."""

from __future__ import annotations

from typing import Any

from sigma_data.profiling.kinds import Inferred, Kind

LARGE = 60  # categories from which on rare ones share a column


def choose_for(inferred: Inferred, column: Any) -> dict[str, Any] | None:
    """Return the table of an encoder for a column of this kind; None for a kind that is left out."""
    return choose_encoder(inferred.kind, len(column), column.null_count, inferred.distinct or 0)


def choose_encoder(kind: Kind, rows: int, missing: int, distinct: int) -> dict[str, Any] | None:
    """Return the table of an encoder for a column with so many cells; None for a kind that is left out."""
    if kind in ("number", "boolean", "date"):
        return {"type": kind, **({"indicator": True} if missing else {})}
    if kind == "category":
        return {"type": "one_hot", **({"least": max(2, rows // 200)} if distinct > LARGE else {})}
    return None
