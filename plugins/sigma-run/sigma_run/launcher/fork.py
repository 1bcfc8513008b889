"""``sigma fork``: begin a run of its own at a moment of another one, with some values changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from sigma_kernel.errors import SigmaConfigError
from sigma_run.config.stored import described_in
from sigma_run.launcher.configured import understood
from sigma_run.launcher.output import json_option, literal, say
from sigma_run.launcher.resume import check_steered, open_environment
from sigma_run.launcher.run import train
from sigma_run.launcher.showing import add_monitors
from sigma_run.moments.fork import begin_fork, create_fork


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("values", metavar="[ADDRESS=VALUE]...", nargs=-1)
@click.option("--at", metavar="N", type=click.IntRange(min=0), required=True, help="The iteration.")
@click.option("--branch", metavar="B", type=click.IntRange(min=0), help="Its branch. [default: that of today's state]")
@click.option("--monitor", "monitors", metavar="NAME", multiple=True, help="Add this monitor (repeatable).")
@click.option("--quiet", is_flag=True, help="Print errors only.")
@json_option
def fork(
    run: Path,
    values: tuple[str, ...],
    at: int,
    branch: int | None,
    monitors: tuple[str, ...],
    quiet: bool,
    as_json: bool,
) -> int:
    """Train on from iteration N of the run in the folder RUN with other values, as a run of its own beside it.

    An ADDRESS may be shortened to its last levels; VALUE is a TOML literal. RUN may train meanwhile.
    """
    changes = dict(map(_parse_assignment, values))
    folder = create_fork(run, at, branch, (), _warn)
    try:
        environment = open_environment(understood(add_monitors(described_in(folder), monitors)), folder)
        check_steered(environment, quiet, False)
        begin_fork(environment, folder, changes, _warn)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    with environment:
        if not quiet:
            say(f"{folder}: begins as {run.name} at iteration {at}")
        return train(environment, as_json, quiet)


def _parse_assignment(text: str) -> tuple[str, object]:
    """Return the address and the value of an assignment."""
    address, equals, value = text.partition("=")
    if not (equals and address.strip()):
        raise SigmaConfigError(f"{text}: expected ADDRESS=VALUE, such as trainer.optimiser.learning_rate=0.1")
    return address.strip(), literal(value.strip())


def _warn(text: str) -> None:
    say(f"warning: {text}", "yellow")
