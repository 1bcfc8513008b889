"""``sigma evaluate``: compute the loss and metrics of a run's checkpoint on its data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from sigma_kernel.config import choosing, prepare
from sigma_kernel.config.stored import opened
from sigma_kernel.contracts import Metric
from sigma_kernel.errors import SigmaCheckpointError
from sigma_kernel.launcher.configured import CHECKPOINT, WEIGHTS, standing
from sigma_kernel.launcher.output import document, json_option, say, table
from sigma_kernel.training.checkpoints.format import Checkpoint
from sigma_kernel.training.history.chain import rows
from sigma_kernel.training.history.replay import Row
from sigma_kernel.training.runs.resume import fit, history, left
from sigma_kernel.training.session.loop import Session
from sigma_kernel.training.trainer import Trainer


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--on", default="validation", show_default=True, help="Evaluate on this split of the data.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Also compute this metric (repeatable).")
@click.option("--edited", is_flag=True, help="With the rows left out and the labels changed in the run.")
@CHECKPOINT
@WEIGHTS
@json_option
def evaluate(
    run: Path, on: str, metrics: tuple[str, ...], edited: bool, checkpoint: int | str | None, weights: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Evaluate a checkpoint of the run folder RUN: its loss, and the metrics that its hooks compute."""
    configuration, environment = opened(run)
    found: dict[str, Any] = {}
    with environment:
        prepare(configuration, environment)
        lines = history(run, environment.trainers, _warn)
        for name, trainer in environment.trainers.items():
            known = rows(run / "journal.jsonl", lines, name)
            use = partial(_restore, trainer.session, known)
            place, restored = choosing.chosen(run, name, checkpoint, _warn, use)
            head = f"{on}." if len(environment.trainers) == 1 else f"{name}.{on}."
            chosen: dict[str, Any] = {**{name: name.rpartition(".")[2] for name in metrics}, **_measured(trainer)}
            measured = trainer.evaluate(on, chosen, edited, weights)
            found |= {f"{head}{metric}": value for metric, value in measured.items()}
            say(f"{name}: {standing(place, restored.score)}")
    if as_json:
        document({"run": configuration.run.name, "folder": str(run), "on": on, "metrics": found})
    else:
        table((address, f"{value:.6g}" if isinstance(value, float) else str(value)) for address, value in found.items())


def _restore(session: Session, known: Sequence[Row], place: Path, found: Checkpoint) -> None:
    """Restore a checkpoint; raise SigmaCheckpointError for one of an abandoned branch, or that does not fit."""
    if left(known, place, found):
        raise SigmaCheckpointError(f"{place}: is on an abandoned branch. Use a checkpoint of the current one.")
    fit(place, found, session)


def _warn(text: str) -> None:
    say(f"warning: {text}", "yellow")


def _measured(trainer: Trainer) -> dict[str, Metric]:
    """Return the metrics that hooks measure, as they are set there, by the names under which they are published."""
    found: dict[str, Metric] = {}
    outlook: Any = SimpleNamespace(ends=trainer.session.setup.model.ends, measure=found.update)
    for hook in trainer.hooks.values():
        hook.check(outlook)
    return found
