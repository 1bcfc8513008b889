"""The settings of a run as hyper-parameters: flat names with plain values."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LONGEST = 500  # characters of a value
OTHER = ("format", "unwritten", "monitors")  # no settings of the training


def settings(run: Path) -> dict[str, bool | float | str]:
    """Return the settings in the ``config.toml`` of a run folder; none if it cannot be read."""
    try:
        table = tomllib.loads((run / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(flat({key: value for key, value in table.items() if key not in OTHER}))


def flat(table: Mapping[str, Any], head: str = "") -> Iterator[tuple[str, bool | float | str]]:
    """Yield the values of a table and of the tables within it, by dotted names; lists as JSON."""
    for key, value in table.items():
        name = f"{head}{key}"
        if isinstance(value, Mapping):
            yield from flat(value, f"{name}.")
        elif isinstance(value, bool | int | float | str):
            yield name, value[:LONGEST] if isinstance(value, str) else value
        else:
            yield name, json.dumps(value, default=str)[:LONGEST]
