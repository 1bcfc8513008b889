"""Terminal output: a command's result on stdout, as a table or JSON; messages on stderr."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any, TextIO

import click

from sigma_kernel.tables import aligned

NARROW, INDENT = 24, "    "  # text has at least so many columns beside others, or else its own lines

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def say(text: str, colour: str | None = None) -> None:
    """Print a message on stderr."""
    with heard():
        click.echo(click.style(text, fg=colour) if colour else text, err=True, color=colours())


@contextmanager
def heard() -> Iterator[None]:
    """Silence stderr from here on if writing to it fails (disk full, reader gone)."""
    try:
        yield
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Redirect a stream to the null device, since Python flushes it once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def reopen() -> None:
    """Replace closed standard streams, before another file gets their descriptor.

    Stdin reads as empty and stderr is discarded; writing to stdout fails, so that lost output raises an error.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", errors="backslashreplace"))


def colours() -> bool | None:
    """Return False if NO_COLOR is set, else None: colours on a terminal only."""
    return False if os.environ.get("NO_COLOR") else None


def toml(value: str | bool) -> str:
    """Format a string or a boolean as TOML."""
    return json.dumps(value)  # every JSON string is a TOML string


def document(value: Any) -> None:
    """Print a command's result as one JSON document on stdout."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    click.echo(text)


def table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows on stdout with aligned columns.

    On a terminal, the last column is wrapped to fit its width; in a pipe or a file, each row is one line, in full.
    """
    cells, columns = [list(row) for row in rows], width()
    for line, row in zip(aligned(cells), cells, strict=True):
        click.echo(line if columns is None or len(line) <= columns else _wrapped(line, len(row[-1].rstrip()), columns))


def width() -> int | None:
    """Return the columns of the terminal that stdout is; None for a pipe or a file."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(line: str, last: int, columns: int) -> str:
    """Wrap the last characters of a line below each other, or below the line if there is little room beside it."""
    head, text = line[: len(line) - last], line[len(line) - last :]
    if columns - len(head) < NARROW:
        return f"{head.rstrip()}\n{textwrap.fill(text, columns, initial_indent=INDENT, subsequent_indent=INDENT)}"
    return textwrap.fill(text, columns, initial_indent=head, subsequent_indent=" " * len(head))
