"""Arguments and options of all commands, and how they print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

import click

from sigma_kernel.errors import printable
from sigma_run.launcher import document, json_option

run_option = click.option("--run", metavar="RUN", help="The run: its folder or its name; by default the only one.")
trainer_option = click.option("--trainer", metavar="NAME", help="This trainer alone, where there are several.")

Command = Callable[..., Any]


def steering(command: Command) -> Command:
    """Add the options of a command that steers."""
    return run_option(trainer_option(json_option(command)))


# -- output ------------------------------------------------------------------------------------------------------------
def show(value: Any) -> str:
    """Return a value as one line of text."""
    if isinstance(value, Mapping) and value.keys() == {"array"}:
        return _array(value["array"])
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def _array(about: Mapping[str, Any]) -> str:
    shape = " x ".join(map(str, about["shape"])) or "one"
    if about.get("low") is None:
        return f"{shape} {about['dtype']}"
    low, high, mean = (show(about[name]) for name in ("low", "high", "mean"))
    return f"{shape} {about['dtype']}, {low} to {high}, mean {mean}"


def columns(rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows with aligned columns, no wider than the terminal, if it is one; names lose their middle there."""
    cells = [tuple(map(printable, row)) for row in rows]
    if sys.stdout.isatty():
        most = get_terminal_size().columns
        cells = [(crop_text(first, most * 2 // 3), *rest) for first, *rest in cells]
        lines = [crop_text(line, most) for line in align_columns(cells)]
    else:
        lines = align_columns(cells)
    for line in lines:
        click.echo(line)


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the last column is not padded."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    padded = ([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]] for row in rows)
    return ["  ".join(row).rstrip() for row in padded]


def crop_text(text: str, most: int) -> str:
    """Return a text without its middle if it is longer than ``most``."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def print_moments(what: str, run: str, moments: Mapping[str, Mapping[str, Any]], as_json: bool) -> None:
    """Print which run a command has changed, at which moment each trainer applied it, and what it adds to its row."""
    if as_json:
        document({"run": run, "applied": moments})
        return
    where = "; ".join(f"{name} at {_describe_moment(moment)}" for name, moment in moments.items())
    click.echo(printable(f"{run}: {what}: {where or 'done'}"))


def _describe_moment(moment: Mapping[str, Any]) -> str:
    row = "".join(f", {name} = {show(value)}" for name, value in moment.get("row", {}).items())
    return f"iteration {moment['iteration']}, epoch {moment['epoch']}{row}"
