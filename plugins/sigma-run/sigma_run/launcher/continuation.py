"""``sigma predict --text``: continue a text with a network that was trained on characters or tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from sigma_kernel.errors import SigmaConfigError, SigmaDataError, SigmaNetworkError
from sigma_run.config.trained import Trained
from sigma_run.launcher.output import document

DEFAULTS: dict[str, Any] = {"length": 200, "temperature": 1.0, "seed": 0}


def text_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a text to continue to a command; each is None unless it is given."""
    for option in (
        click.option(
            "--seed", metavar="N", type=click.IntRange(min=0), help="With --text: the seed of sampling, by default 0."
        ),
        click.option(
            "--temperature",
            metavar="X",
            type=click.FloatRange(min=0),
            help="With --text: 0 for the most probable characters or tokens, below 1 for safer ones, by default 1.",
        ),
        click.option(
            "--length",
            metavar="N",
            type=click.IntRange(min=1),
            help="With --text: characters or tokens to add, by default 200; fewer, if the text ends.",
        ),
        click.option("--text", metavar="TEXT", help="Continue this text, or predict from it."),
    ):
        command = option(command)
    return command


def check_options(inputs: tuple[Path, ...], how: Mapping[str, Any], others: Mapping[str, bool]) -> bool:
    """Return whether to continue a text; raise UsageError for options that do not belong together."""
    continues = how["text"] is not None
    if wrong := [f"--{name}" for name in DEFAULTS if how[name] is not None and not continues]:
        raise click.UsageError(f"{wrong[0]} is for a text to continue. Give --text as well, or leave it out.")
    if continues == bool(inputs):
        what = "Both INPUT and --text were given" if continues else "There is nothing to predict from"
        raise click.UsageError(f"{what}. Give files, or a text to continue with --text.")
    for name in (name for name, given in others.items() if continues and given):
        raise click.UsageError(f"{name} is for files to predict from. Leave it out with --text.")
    return continues


def write_on(run: Path, model: Trained, how: Mapping[str, Any], as_json: bool) -> None:
    """Print a text and its continuation, each piece as soon as it is drawn."""
    chosen = DEFAULTS | {name: value for name, value in how.items() if value is not None}
    try:
        added = model.continuation(**chosen)
        first = next(added, "")  # refuses a network that cannot continue text, before anything is printed
    except (SigmaDataError, SigmaNetworkError) as error:
        raise SigmaConfigError(f"{run}: {str(error).removeprefix('generate: ')}") from error
    if as_json:
        document({"folder": str(run), "checkpoint": str(model.path), **chosen, "continuation": first + "".join(added)})
        return
    click.echo(chosen["text"] + first, nl=False)
    for piece in added:
        click.echo(piece, nl=False)
    click.echo()
