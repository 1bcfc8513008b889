"""``sigma init``: create a configuration file from a recipe, or from data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from sigma_kernel.contracts import ConfigurationDraft
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.launcher.configured import recipe as offered
from sigma_run.launcher.inspection import find_data, usage_errors
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import say

train_file = lazy_function("sigma_run.launcher.run:train_file")  # only for --run


@click.command()
@click.argument("what", metavar="[RECIPE|DATA]", required=False, default="default:first")
@click.option("--target", metavar="COLUMN", help="Of DATA: the column to predict.")
@click.option("--text", metavar="COLUMN", help="Of DATA: the column of texts to predict from.")
@click.option("--time", metavar="COLUMN", help="Of a series: the column of times.")
@click.option("--ahead", metavar="STEPS", type=click.IntRange(min=1), help="Of a series: the steps to predict.")
@click.option("--past", metavar="ROWS", type=click.IntRange(min=1), help="Of a series: the rows to predict from.")
@click.option("--data", "is_data", is_flag=True, help="WHAT is a file or folder of data, also if it looks like a name.")
@click.option("--run", "runs", is_flag=True, help="Train at once.")
@click.option("--output", type=click.Path(path_type=Path), help="Write to this file. [default: NAME.toml]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.pass_context
def init(
    context: click.Context,
    /,
    what: str,
    target: str | None,
    text: str | None,
    is_data: bool,
    runs: bool,
    output: Path | None,
    force: bool,
    **series: Any,
) -> int:
    """Create a configuration file from a RECIPE, by default the first one to try, or from your own DATA.

    DATA is a file or a folder. Its columns are inspected, and the file says how each is used, and why; what is unsure
    is printed. A path has a suffix or a slash; the name of a recipe goes first.
    """
    given = {"target": target, "text": text, **series}
    wishes = {name: str(value) for name, value in given.items() if value is not None}
    if is_data or _is_path(what):
        name, content, notes = _draft(Path(what), output, wishes)
    elif wishes:
        raise SigmaConfigError(f"--{min(wishes)}: {what!r} is a recipe. Give a path of data, or pass --data.")
    else:
        name, notes = catalogue().resolve("recipe", what).name, []
        content = offered(what).text
    path = output or Path(f"{name}.toml")
    write_new(path, content, force)
    for note in notes:
        say(f"note: {note}", "yellow")
    say(f"wrote {path}; {'training on it' if runs else f'edit it, then: sigma run {path}'}")
    return int(train_file(context, path)) if runs else 0


def _is_path(what: str) -> bool:
    looks = os.sep in what or "/" in what or bool(Path(what).suffix)
    return looks or (Path(what).exists() and not catalogue().offers("recipe", what))


def _draft(place: Path, output: Path | None, wishes: dict[str, str]) -> tuple[str, str, list[str]]:
    """Return the name of a run on data, the text of its configuration, and what is unsure."""
    folder = Path() if output is None else output.parent
    inside = place.resolve().is_relative_to(folder.resolve())
    written = place.resolve().relative_to(folder.resolve()) if inside else place.resolve()
    with usage_errors():
        draft: ConfigurationDraft = find_data(place, wishes).draft(place, written.as_posix(), wishes)
    return draft.name, draft.text, [*draft.notes]


def write_new(path: Path, text: str, force: bool) -> None:
    """Write a file that does not exist; with ``force``, replace it. Raises SigmaConfigError if that fails."""
    try:
        _write(path.resolve(), text, force)
    except FileExistsError:
        raise SigmaConfigError(f"{path}: already exists. Choose another --output, or pass --force.") from None
    except OSError as error:
        raise SigmaConfigError(f"{path}: cannot be written: {error.strerror}. Choose another --output.") from None


def _write(path: Path, text: str, force: bool) -> None:
    """Write a file atomically; anything but a regular file, such as a pipe, is written to directly."""
    if path.exists() and not force:
        raise FileExistsError
    part = path.with_name(f".{path.name}.part") if path.is_file() or not path.exists() else path
    try:
        part.write_text(text, encoding="utf-8")
        if part is not path:
            part.replace(path)
    except OSError:
        if part is not path:
            part.unlink(missing_ok=True)
        raise
