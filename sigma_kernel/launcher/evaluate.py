"""``sigma evaluate``: compute the loss and metrics of a run's newest checkpoint on its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sigma_kernel.config import prepare
from sigma_kernel.config.stored import opened
from sigma_kernel.launcher.configured import offered
from sigma_kernel.launcher.output import document, json_option, say, table
from sigma_kernel.training.history.chain import rows
from sigma_kernel.training.runs.resume import history, restore
from sigma_kernel.training.trainer import Trainer


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--on", default="validation", show_default=True, help="Evaluate on this split of the data.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Also compute this metric (repeatable).")
@json_option
def evaluate(run: Path, on: str, metrics: tuple[str, ...], as_json: bool) -> None:
    """Evaluate the newest checkpoint of the run folder RUN: its loss, and the metrics that its hooks compute."""
    configuration, environment = opened(run)
    found: dict[str, Any] = {}
    with environment:
        prepare(configuration, environment)
        lines = history(run, environment.trainers, _warn)
        for name, trainer in environment.trainers.items():
            known = rows(run / "journal.jsonl", lines, name)
            place, _ = restore(run, trainer.session, _warn, rows=known)
            head = f"{on}." if len(environment.trainers) == 1 else f"{name}.{on}."
            chosen = {name: name.rpartition(".")[2] for name in (*_measured(trainer), *metrics)}
            measured = trainer.evaluate(on, chosen)
            found |= {f"{head}{metric}": value for metric, value in measured.items()}
            say(f"{name}: {place}")
    if as_json:
        document({"run": configuration.run.name, "folder": str(run), "on": on, "metrics": found})
    else:
        table((address, f"{value:.6g}" if isinstance(value, float) else str(value)) for address, value in found.items())


def _warn(text: str) -> None:
    say(f"warning: {text}", "yellow")


def _measured(trainer: Trainer) -> list[str]:
    """Return the names of the metrics that hooks publish for any split, with the outputs that they measure."""
    hooks: list[Any] = list(trainer.hooks.values())
    written = [address.partition(".")[2] for hook in hooks for address in hook.writes]
    return [name for name in dict.fromkeys(written) if offered("metric", name.rpartition(".")[2])]
