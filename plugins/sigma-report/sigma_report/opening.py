"""``sigma open``: unpack an archive of ``sigma share``, and resume or replay the run in it."""

from __future__ import annotations

from pathlib import Path

import click

from sigma_kernel.errors import SigmaConfigError
from sigma_report.outward import list_attached, list_outward
from sigma_run.config import open_run, read_configuration
from sigma_run.launcher import document, json_option, main, say
from sigma_store import unpack_run


@click.command("open")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--into", metavar="FOLDER", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Create the run folder here.")  # fmt: skip
@click.option("--replay", "replays", is_flag=True, help="Replay the run, and compare.")
@click.option("--resume", "resumes", is_flag=True, help="Continue training.")
@click.option("--data", metavar="PATH", type=click.Path(path_type=Path), help="Where its data are, with the two above.")
@json_option
def open_archive(file: Path, into: Path, replays: bool, resumes: bool, data: Path | None, as_json: bool) -> int:
    """Unpack the archive FILE of `sigma share` to a new run folder, verify it, and resume or replay it if asked to.

    Nothing in the archive is executed, and only files of a run folder are written. Resume runs of people you trust
    alone: a configuration says which files are read.
    """
    if replays and resumes:
        raise SigmaConfigError("--replay --resume: replay first, then `sigma resume` the folder. Leave one out.")
    if data is not None and not (replays or resumes):
        raise SigmaConfigError(f"--data {data}: nothing is read. Pass --replay or --resume as well.")
    run = unpack_run(file, into, lambda folder: _refuse_outward(file, folder), say)
    if as_json:
        document({"folder": str(run)})
    else:
        say(str(run))
    if not (replays or resumes):
        return 0
    command = ["replay", str(run), "--check"] if replays else ["resume", str(run)]
    return main([*command, *([] if data is None else ["--data", str(data)])])


def _refuse_outward(file: Path, run: Path) -> None:
    """Raise SigmaConfigError for monitors and hooks that an archive never has: they could open a port, or send data."""
    stored = open_run(run, say)
    values = read_configuration(stored, run).values
    if values.get("monitors"):
        raise SigmaConfigError(
            f"{file}: its configuration has monitors, which `sigma share` leaves out. Ask for another."
        )
    if hooks := list_outward(values) or list_attached(stored, say):
        raise SigmaConfigError(
            f"{file}: {', '.join(hooks)} would send messages from this machine, with passwords or addresses that are "
            "here. `sigma share` leaves such hooks out. Ask for another."
        )
