"""``sigma export``: write a trained network in the format of another program."""

from __future__ import annotations

import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from sigma_kernel.contracts import Exporter, Inference
from sigma_kernel.errors import SigmaConfigError, SigmaPluginError, component_name
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.plugins.resolver import Resolver
from sigma_run.config.trained import load
from sigma_run.launcher.configured import CHECKPOINT, WEIGHTS
from sigma_run.launcher.output import say


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "name",
    metavar="NAME",
    help="The exporter, or a table with its settings. [default: the one called like FILE's extension]",
)
@click.option("--trainer", metavar="NAME", help="Use this trainer, if the run has several.")
@CHECKPOINT
@WEIGHTS
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def export(
    run: Path,
    file: Path,
    name: str | None,
    trainer: str | None,
    checkpoint: int | str | None,
    weights: str,
    force: bool,
) -> None:
    """Write the trained network of the run folder RUN to FILE.

    The extension of FILE names the exporter: `model.npz` is written by `npz`. `sigma components exporter` lists them.
    """
    exporter = select_exporter(file, name)
    trained = load(run, trainer, checkpoint=checkpoint, weights=weights, log=_warn)
    for path in export_network(exporter, trained.inference(), file, force):
        say(f"{trained.trainer.name}: {trained.path} -> {path}")


def _warn(text: object) -> None:
    say(f"warning: {text}", "yellow")


def select_exporter(file: Path, name: str | None) -> Exporter:
    """Return the exporter of a name, or for the extension of a file."""
    name = (name or file.suffix[1:].lower()).strip()
    if not name:
        names = ", ".join(sorted(component.name for component in catalogue().components("exporter"))) or "none"
        raise SigmaConfigError(f"{file}: has no extension that names an exporter. Add one, or pass --as: {names}.")
    exporter: Exporter = Resolver(catalogue())(Exporter, _table(name), "--as")
    return exporter


def _table(text: str) -> Any:
    """Return a table with settings, written as in a configuration; any other text is a name."""
    try:
        return tomllib.loads(f"as = {text}")["as"] if text.startswith("{") else text
    except tomllib.TOMLDecodeError as error:
        raise SigmaConfigError(f"--as: {error} (got {text}).") from None


def export_network(exporter: Exporter, network: Inference, file: Path, force: bool = False) -> list[Path]:
    """Export a network; return the files that were written, the named one first.

    They are written to a new directory beside ``file``, then moved, so that a failure leaves nothing behind.  Raises
    SigmaConfigError, and writes nothing, if one exists, unless with ``force``; and SigmaPluginError if the exporter did
    not write the named one.
    """
    if not file.parent.is_dir():
        raise SigmaConfigError(f"{file}: {str(file.parent)!r} is not a directory. Create it first.")
    if file.exists() and not force:
        raise SigmaConfigError(f"{file}: already exists. Pass --force to overwrite it.")
    try:
        with TemporaryDirectory(prefix=".sigma-", dir=file.parent) as folder:
            exporter.export(network, Path(folder) / file.name)
            paths = sorted(Path(folder).iterdir(), key=lambda path: (path.name != file.name, path.name))
            if not (Path(folder) / file.name).is_file():
                raise SigmaPluginError(
                    f"{file}: the exporter {component_name(exporter)!r} did not write it. Report it there."
                )
            for path in paths:
                if (file.parent / path.name).exists() and not force:
                    raise SigmaConfigError(f"{file.parent / path.name}: already exists. Pass --force to overwrite it.")
            return [path.replace(file.parent / path.name) for path in paths]
    except OSError as error:
        raise SigmaConfigError(f"{file}: cannot be written: {error.strerror}. Free space there.") from error
