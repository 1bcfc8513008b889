"""``sigma data``: look at data before training on them, and at what became of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from sigma_kernel.contracts import Inspector
from sigma_kernel.errors import SigmaConfigError, SigmaDataError, printable
from sigma_kernel.plugins.catalogue import catalogue
from sigma_run.config.stores import is_run_folder
from sigma_run.launcher.caching import cache
from sigma_run.launcher.checking import check
from sigma_run.launcher.later import lazy_function
from sigma_run.launcher.output import document, json_option, say, table, width
from sigma_run.launcher.rows import rows
from sigma_training.data.inference import find_inspector

print_samples = lazy_function("sigma_run.launcher.mosaic:print_samples")  # only for pictures


@click.group()
def data() -> None:
    """Look at data before training on them, and at what became of their rows."""


@data.command()
@click.argument("place", metavar="DATA", type=click.Path(path_type=Path))
@json_option
def show(place: Path, as_json: bool) -> None:
    """Show what DATA, a file or a folder, hold.

    Of a table, columns with kinds, missing values, and distributions; of a folder of pictures, classes, sizes and
    broken files, on a terminal also samples.
    """
    with usage_errors():
        inspection = find_data(place).inspect(place)
    if as_json:
        document({**inspection.document, "findings": [*inspection.findings]})
        return
    say(inspection.head)
    table(iter(inspection.table))
    if inspection.samples and (columns := width()):
        print_samples({printable(label): pictures for label, pictures in inspection.samples.items()}, columns)
    for finding in inspection.findings:
        say(f"note: {finding}", "yellow")


data.add_command(check)
data.add_command(cache)
data.add_command(rows)


def find_data(place: Path, wishes: Collection[str] = ()) -> Inspector:
    """Return the inspector of a file or a folder; raises SigmaConfigError for a run folder, which holds no data."""
    if is_run_folder(place):
        raise SigmaConfigError(f"{place}: is the folder of a run. `sigma data check` takes it, and checks its data.")
    return find_inspector(place, catalogue(), wishes)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors of data that are named on the command line into errors of its use."""
    try:
        yield
    except SigmaDataError as error:
        raise SigmaConfigError(str(error)) from error
