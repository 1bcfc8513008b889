"""Where output goes: a command's product on stdout, everything else for people on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def say(text: str, colour: str | None = None) -> None:
    """Tell people something, on stderr."""
    with heard():
        click.echo(click.style(text, fg=colour) if colour else text, err=True, color=colours())


@contextmanager
def heard() -> Iterator[None]:
    """Leave out what is said inside, and all that follows, where stderr is full or its reader has gone."""
    try:
        yield
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let a stream go nowhere: Python tries once more as it ends to write what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def reopen() -> None:
    """Put something in place of standard streams that are closed, before a file of ours gets their number.

    Nothing is read from stdin and stderr goes nowhere; stdout cannot be written, so that what would be lost is told.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", errors="backslashreplace"))


def colours() -> bool | None:
    """Return False where NO_COLOR forbids colours, else None: they are used on a terminal only."""
    return False if os.environ.get("NO_COLOR") else None


def toml(value: str | bool) -> str:
    """Return a text or a truth value as TOML writes it."""
    return json.dumps(value)  # every JSON string is one of TOML


def document(value: Any) -> None:
    """Print a command's product as one JSON document on stdout."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    click.echo(text)


def table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows on stdout, their columns aligned; the last column is as long as it is."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)][:-1]
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*padded, row[-1]]).rstrip())
