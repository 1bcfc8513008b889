"""``sigma data``: look at data before training on them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sigma_kernel.contracts import Inspector
from sigma_kernel.errors import SigmaConfigError, SigmaDataError
from sigma_kernel.plugins.catalogue import catalogue, load
from sigma_run.launcher.output import document, json_option, say, table


@click.group()
def data() -> None:
    """Look at data before training on them."""


@data.command()
@click.argument("place", metavar="DATA", type=click.Path(path_type=Path))
@json_option
def show(place: Path, as_json: bool) -> None:
    """Show what DATA, a file or a folder, hold: columns with kinds, missing values, and distributions."""
    with usage_errors():
        inspection = choose_inspector(place).inspect(place)
    if as_json:
        document({**inspection.document, "findings": [*inspection.findings]})
        return
    say(inspection.head)
    table(iter(inspection.table))
    for finding in inspection.findings:
        say(f"note: {finding}", "yellow")


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors of data that are named on the command line into errors of its use."""
    try:
        yield
    except SigmaDataError as error:
        raise SigmaConfigError(str(error)) from error


def choose_inspector(place: Path, wishes: Collection[str] = ()) -> Inspector:
    """Return the first inspector that takes a file or folder, if possible one that can heed all wishes.

    Raises SigmaConfigError if there is none.
    """
    if not place.exists():
        raise SigmaConfigError(f"{place}: there is no such file or folder. Check the path.")
    inspectors: list[Inspector] = [load(component)() for component in catalogue().components("inspector")]
    inspectors.sort(key=lambda inspector: len({*wishes} - {*inspector.wishes}))  # one that cannot heed all refuses
    for inspector in inspectors:
        if inspector.takes(place):
            return inspector
    raise SigmaConfigError(
        f"{place}: is no table, and no folder of pictures. Files end in .csv, .parquet, .jsonl and others; a folder of "
        "pictures has a folder for each class."
    )
