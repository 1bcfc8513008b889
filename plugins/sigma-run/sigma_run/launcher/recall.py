"""``sigma recall``: compute a moment of a run again, and save its network."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sigma_run.launcher.configured import DATA
from sigma_run.launcher.output import document, json_option, say
from sigma_run.moments.replica import LOWEST, RunCopy, Wish

INTERVAL = 2.0  # seconds between two messages


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("network", metavar="NETWORK", type=click.Path(path_type=Path))
@click.option("--at", metavar="N", type=click.IntRange(min=0), required=True, help="The iteration.")
@click.option("--branch", metavar="B", type=click.IntRange(min=0), help="Its branch. [default: that of today's state]")
@click.option("--trainer", metavar="NAME", help="Use this trainer, if the run has several.")
@DATA
@click.option("--quiet", is_flag=True, help="Print errors only.")
@json_option
def recall(
    run: Path,
    network: Path,
    at: int,
    branch: int | None,
    trainer: str | None,
    data: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compute iteration N of the run in the folder RUN again, to the bit, and save the network to NETWORK.

    The newest state that is kept before it is restored, and the journal is replayed up to it, at the lowest priority.
    RUN may train meanwhile. Ctrl-C cancels.
    """
    tell = (lambda text: None) if quiet else say
    os.nice(LOWEST)
    copy = RunCopy.open(Wish(str(run), at, branch, trainer, None if data is None else str(data)), tell)
    with copy.environment:
        copy.go_reporting(lambda iteration: tell(f"iteration {iteration} of {at}"), INTERVAL)
        copy.trainer.save(network)
        moment = copy.trainer.session.moment
    tell(f"{copy.trainer.name}: iteration {moment.iteration}, epoch {moment.epoch} -> {network}")
    if as_json:
        document({"network": str(network), "iteration": moment.iteration, "epoch": moment.epoch})
