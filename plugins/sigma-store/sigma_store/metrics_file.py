"""The file ``metrics.jsonl``: rows of measurements, joined with their neighbours as the file grows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from sigma_store.journal import Lines

SAME = ("branch", "session", "start", "edited")  # fields of two rows that can be joined


@define(eq=False)
class MetricsFile(Lines):
    """The rows of ``metrics.jsonl``; in a file that becomes larger than ``most``, older rows are joined."""

    most: int = 32 << 20  # bytes: of ten rows a second with 20 values each, those of half an hour are as written
    _next: int = field(default=0, init=False)  # the size at which rows are joined next

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        super().append(row)
        if self.size > max(self.most, self._next):
            self.rewrite(join_older_rows)
            self._next = self.size * 9 // 8  # should few rows have had a neighbour


def join_older_rows(text: bytes) -> bytes:
    """Join neighbours among the rows in the older half of a file: of one trainer, on one branch of one session."""
    middle = text.find(b"\n", len(text) // 2) + 1
    first, *lines = text[:middle].splitlines()
    result, held = [first], dict[str, dict[str, Any]]()
    for line in lines:
        row = json.loads(line)
        before = held.pop(row["trainer"], None)
        if before is not None and all(before.get(name) == row.get(name) for name in SAME):
            result.append(_encode(_merge_rows(before, row)))
        else:
            result += [] if before is None else [_encode(before)]
            held[row["trainer"]] = row
    return b"\n".join([*result, *map(_encode, held.values())]) + b"\n" + text[middle:]


def _encode(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode()


def _merge_rows(row: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return one row in place of two: the last values, the least and the greatest of both."""
    values = {**row["values"], **later["values"]}
    for name in row["values"].keys() & later["values"].keys():
        ends = row["values"][name], later["values"][name]
        low, high = ([end[key] for end in ends if end[key] is not None] for key in ("low", "high"))
        values[name] = {"last": ends[1]["last"], "low": min(low, default=None), "high": max(high, default=None)}
    texts = {**row.get("texts", {}), **later.get("texts", {})}
    return {**row, **later, **({"texts": texts} if texts else {}), "values": values}
