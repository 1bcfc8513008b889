"""Choose an encoder for each kind of column."""

from __future__ import annotations

from typing import Any

from sigma_data.profiling.profile import ColumnProfile

LARGE = 60  # categories from which on rare ones share a column


def choose_encoder(column: ColumnProfile) -> dict[str, Any] | None:
    """Return the table of an encoder that suits a column; None for one that is left out."""
    if column.kind in ("number", "boolean", "date"):
        return {"type": column.kind, **({"indicator": True} if column.missing else {})}
    if column.kind == "category":
        return {"type": "one_hot", **({"least": choose_least(column)} if column.distinct > LARGE else {})}
    return None


def choose_least(column: ColumnProfile) -> int:
    """Return the number of rows below which a category shares a column with others."""
    return max(2, column.rows // 200)
