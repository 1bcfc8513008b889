"""A part of the table of runs: those that a filter leaves, sorted, with the columns that differ first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from sigma_run.overview import columns_of, differing, select_rows, sort_rows

ROWS, COLUMNS = 200, 60  # of an answer


@frozen
class TableQuery:
    """What a page shows of the table of runs: the newest first, unless it is sorted."""

    where: str = ""
    sort: str = ""
    descending: bool = False
    archived: bool = False
    start: int = 0
    count: int = ROWS

    def answer(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return how many runs there are and are left, the columns, and the rows in the window.

        Raises SigmaConfigError for a filter or an order that means nothing.
        """
        shown = [row for row in rows if self.archived or not row.get("archived")]
        left = select_rows(shown, self.where, "filter")
        left = sort_rows(left, self.sort, self.descending, "order") if self.sort else left[::-1]
        settings, metrics = differing([row["settings"] for row in left]), columns_of([row["metrics"] for row in left])
        settings, metrics = settings[:COLUMNS], metrics[:COLUMNS]
        start = max(0, self.start)
        return {
            "all": len(rows),
            "shown": len(shown),
            "total": len(left),
            "settings": settings,
            "metrics": metrics,
            "start": start,
            "rows": [_narrow(row, settings) for row in left[start : start + min(ROWS, max(0, self.count))]],
        }


def _narrow(row: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    return {**row, "settings": {name: row["settings"][name] for name in settings if name in row["settings"]}}


def compare_settings(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the settings that are not the same in all tables, each with its values."""
    return [{"name": name, "values": [table.get(name) for table in tables]} for name in differing(tables)]
