"""Terminal output: a command's result on stdout, as a table or JSON; messages on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from contextvars import ContextVar
from itertools import accumulate
from shutil import get_terminal_size
from typing import Any, TextIO

import click

from sigma_kernel.errors import SigmaConfigError, printable
from sigma_kernel.plain import strict
from sigma_kernel.tables import align_rows

NARROW, INDENT = 24, "    "  # text has at least so many columns beside others, or else its own lines

MEANS = re.compile(r"(?:^|\.)training\.(?:loss|cost\..++)$")  # of which summaries have the mean of the last epoch

RESERVED: ContextVar[TextIO | None] = ContextVar("the stdout that is kept for a document", default=None)


class DocumentOption(click.Option):
    """The option ``--json`` of commands that print by :func:`document`: stdout is then kept for that."""


json_option = click.option(
    "--json", "as_json", is_flag=True, cls=DocumentOption, help="Print one JSON document on stdout."
)


def literal(text: str) -> Any:
    """Return the value of a TOML literal, or else the text itself: ``0.1``, ``true``, ``{type = "loss"}``, ``adam``.

    Raises SigmaConfigError for an array, a table or a quoted string that is not complete.
    """
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith(("[", "{", '"', "'")):
            raise SigmaConfigError(f"{text}: is not a TOML value: {error}. Quote it for the shell.") from None
        return text
    return table["value"] if table.keys() == {"value"} else text


def say(text: str, colour: str | None = None) -> None:
    """Print a message on stderr, without the control characters of names and values that it quotes."""
    text = printable(text)
    with heard():
        click.echo(click.style(text, fg=colour) if colour else text, err=True, color=colours())


def takes_document(command: click.Command) -> bool:
    """Return whether a command, or one in it, has the option ``--json`` of this module."""
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    return any(isinstance(option, DocumentOption) for option in command.params) or any(map(takes_document, inner))


@contextmanager
def reserve_stdout() -> Iterator[ExitStack]:
    """Keep stdout for :func:`document`; all else that is printed goes to stderr, as by plugins and child processes.

    Closing the stack that is yielded gives stdout back before the end.
    """
    with ExitStack() as stack:
        kept = stack.enter_context(_duplicate(sys.stdout))
        stack.callback(RESERVED.reset, RESERVED.set(kept))
        stack.enter_context(redirect_stdout(sys.stderr))
        yield stack


@contextmanager
def _duplicate(stream: TextIO) -> Iterator[TextIO]:
    """Yield a stream to stdout, whose descriptor leads to stderr until the end; one in memory stays as it is."""
    if not _has_descriptor(stream, 1) or not _has_descriptor(sys.stderr, 2):
        yield stream
        return
    stream.flush()
    kept = os.fdopen(os.dup(1), "w", encoding=stream.encoding, errors=stream.errors)
    os.dup2(2, 1)
    try:
        yield kept
    finally:
        stream.flush()  # what was written to it in spite of all, also to stderr
        os.dup2(kept.fileno(), 1)
        kept.close()


def _has_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (AttributeError, OSError, ValueError):
        return False


def results() -> TextIO:
    """Return the stream that results are printed on: stdout, also where it is kept for a document."""
    return RESERVED.get() or sys.stdout


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
    """Print a command's result as one JSON document on stdout, with null for numbers that are not finite."""
    value = strict(value)
    text = printable(json.dumps(value, indent=2, ensure_ascii=False))
    try:
        text.encode(getattr(results(), "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    click.echo(text, file=results())


def table(rows: Iterable[Sequence[str]]) -> None:
    """Print rows on stdout with aligned columns.

    On a terminal, the last column is wrapped to fit its width, and columns beyond it are below the line; in a pipe or a
    file, each row is one line, in full.
    """
    cells, columns = [list(map(printable, row)) for row in rows], width() or sys.maxsize
    starts = [0, *accumulate(2 + max(map(len, column)) for column in zip(*cells, strict=True))][:-1]
    for line, row in zip(align_rows(cells), cells, strict=True):
        click.echo(line if len(line) <= columns else _wrap_row(line, row, starts, columns))


def name_metric(address: str) -> str:
    """Return what a metric of a summary is called: a mean of an epoch is told from the value of an iteration."""
    return f"{address} (mean of the epoch)" if MEANS.search(address) else address


def width() -> int | None:
    """Return the columns of the terminal that stdout is; None for a pipe or a file."""
    return get_terminal_size().columns if sys.stdout.isatty() else None


def wrap_text(text: str) -> str:
    """Wrap a text between words to the width of the terminal; in a pipe or a file it is one line."""
    return textwrap.fill(text, width() or sys.maxsize, break_long_words=False, break_on_hyphens=False)


def _wrap_row(line: str, row: Sequence[str], starts: Sequence[int], columns: int) -> str:
    """Wrap the last column below itself; with little room there, it and the columns that do not fit below the line."""
    if columns - starts[-1] >= NARROW:
        return textwrap.fill(row[-1], columns, initial_indent=line[: starts[-1]], subsequent_indent=" " * starts[-1])
    fitting = sum(start - 2 <= columns for start in starts[1:])
    rest = textwrap.fill("  ".join(row[fitting:]), columns, initial_indent=INDENT, subsequent_indent=INDENT)
    return f"{line[: starts[fitting]].rstrip()}\n{rest}".lstrip("\n")
