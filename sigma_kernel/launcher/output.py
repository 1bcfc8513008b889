"""Where output goes: a command's product on stdout, everything else for people on stderr."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def say(text: str, colour: str | None = None) -> None:
    """Tell people something, on stderr."""
    click.echo(click.style(text, fg=colour) if colour else text, err=True, color=colours())


def colours() -> bool | None:
    """Return False where NO_COLOR forbids colours, else None: they are used on a terminal only."""
    return False if os.environ.get("NO_COLOR") else None


def toml(value: str | bool) -> str:
    """Return a text or a truth value as TOML writes it."""
    return json.dumps(value)  # every JSON string is one of TOML


def document(value: Any) -> None:
    """Print a command's product as one JSON document on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows on stdout, their columns aligned; the last column is as long as it is."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*padded, row[-1]]).rstrip())
