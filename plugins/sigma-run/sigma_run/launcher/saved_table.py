"""``sigma predict --save``: write predictions as a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_run.config.trained import Trained
from sigma_run.launcher.output import say
from sigma_run.launcher.predictions import writable
from sigma_run.predicting.predicted import save_predictions
from sigma_run.predicting.writing import check_place


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a table to write to a command."""
    for option in (
        click.option("--force", is_flag=True, help="With --save: replace the table if it exists."),
        click.option(
            "--keep", metavar="COLUMNS", help="With --save: keep these columns of INPUT as well, separated by commas."
        ),
        click.option(
            "--save",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Write a .csv, .parquet or .jsonl table with named classes, probabilities, and what names a row.",
        ),
    ):
        command = option(command)
    return command


@frozen
class WantedTable:
    """The table to write, the columns to keep, and whether to replace a file; without a path, none is wanted."""

    path: Path | None
    keep: str | None
    force: bool

    def check(self, output: Path | None) -> None:
        """Raise a SigmaError for a file that cannot be written, and UsageError for options that do not fit."""
        if self.path is None and (self.keep is not None or self.force):
            name = "--keep" if self.keep is not None else "--force"
            raise click.UsageError(f"{name} is for a table. Give --save FILE, too.")
        if self.path is not None and output is not None:
            raise click.UsageError("Both --output and --save were given. Give one: --save writes named columns.")
        if output is not None:
            writable(output)
        if self.path is not None:
            check_place(self.path, self.force, "--save ")

    def write(self, model: Trained, inputs: tuple[Path, ...], white: float | None) -> None:
        """Write the predictions for files, part by part."""
        assert self.path is not None
        columns = [name.strip() for name in (self.keep or "").split(",") if name.strip()]
        try:
            saved = save_predictions(model, inputs, self.path, columns, white, self.force)
        except SigmaDataError as error:
            raise SigmaConfigError(str(error)) from error
        if saved.note:
            say(saved.note)
        say(f"{saved.rows:,} rows -> {self.path}")
