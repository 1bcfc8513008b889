"""``sigma init``: create a configuration file from a recipe."""

from __future__ import annotations

from pathlib import Path

import click

from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.launcher.configured import recipe as offered
from sigma_run.launcher.output import say


@click.command()
@click.argument("recipe", required=False, default="default:first")
@click.option("--output", type=click.Path(path_type=Path), help="Write to this file. [default: RECIPE.toml]")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init(recipe: str, output: Path | None, force: bool) -> None:
    """Create a configuration file from RECIPE, by default from the first one to try."""
    name = catalogue().resolve("recipe", recipe).name
    text, path = offered(recipe).text, output or Path(f"{name}.toml")
    try:
        _write(path.resolve(), text, force)
    except FileExistsError:
        raise SigmaConfigError(f"{path}: already exists. Choose another --output, or pass --force.") from None
    except OSError as error:
        raise SigmaConfigError(f"{path}: cannot be written: {error.strerror}. Choose another --output.") from None
    say(f"wrote {path}; edit it, then: sigma run {path}")


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
