"""``sigma evaluate``: compute the loss and metrics of a run's checkpoint on its data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from sigma_kernel.contracts.storing import Checkpoint, Excerpt, Log, StoredRun
from sigma_kernel.errors import SigmaCheckpointError, SigmaStateError
from sigma_run.config import choosing, prepare
from sigma_run.config.stored import open_stored, rows_of
from sigma_run.config.stores import open_run
from sigma_run.config.trained import load
from sigma_run.launcher.configured import CHECKPOINT, DATA, WEIGHTS, standing
from sigma_run.launcher.output import document, json_option, say, table
from sigma_training.history.replay import Row
from sigma_training.hooks.outlook import list_metrics
from sigma_training.runs.resume import fit, is_abandoned
from sigma_training.session.session import Session

Choice = Mapping[str, Any]  # of a checkpoint, and of weights in place of the parameters


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("file", metavar="[FILE]", type=click.Path(path_type=Path), required=False)
@DATA
@click.option("--on", default="validation", show_default=True, help="Evaluate on this split of the data.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Also compute this metric (repeatable).")
@click.option("--edited", is_flag=True, help="With the rows left out and the labels changed in the run.")
@CHECKPOINT
@WEIGHTS
@json_option
def evaluate(
    run: Path, file: Path | None, data: Path | None, on: str, metrics: tuple[str, ...], edited: bool,
    checkpoint: int | str | None, weights: str, as_json: bool,
) -> None:  # fmt: skip
    """Evaluate a checkpoint of the run folder RUN: its loss, and the metrics that its trainer and its hooks compute.

    A FILE is read like the data of the run, with its columns by name, its classes and its preprocessors, and evaluated
    instead: all its rows.
    """
    choice: Choice = {"checkpoint": checkpoint, "weights": weights}
    wanted = {name: name.rpartition(".")[2] for name in metrics}
    if file is None:
        name, rows = _of_split(run, data, on, wanted, edited, choice)
    else:
        name, rows = _of_file(run, file, on, wanted, choice)
    if as_json:
        where = on if file is None else str(file)
        document({"run": name, "folder": str(run), "on": where, "metrics": rows})
    else:
        table((address, f"{value:.6g}" if isinstance(value, float) else str(value)) for address, value in rows.items())


def _of_split(
    run: Path, data: Path | None, on: str, wanted: Mapping[str, str], edited: bool, choice: Choice
) -> tuple[str, dict[str, float]]:
    """Return the name of a run, and its trainers' results on a split of its data, which may have moved."""
    configuration, environment = open_stored(run, data=data)
    values: dict[str, Any] = {}
    with environment:
        environment.begin_from(run)
        prepare(configuration, environment)
        stored = open_run(run, _warn)
        journal = stored.excerpt(environment.trainers, _warn, whole=False)
        for name, trainer in environment.trainers.items():
            rows_since = partial(_rows_since, stored, environment.trainers, name, journal)
            use = partial(_restore, trainer.session, rows_since, None if data is None else _warn)
            place, restored = choosing.select_checkpoint(stored, name, choice["checkpoint"], _warn, use)
            head = f"{on}." if len(environment.trainers) == 1 else f"{name}.{on}."
            own = list_metrics(trainer.hooks.values(), trainer.session.setup.model)
            measured = trainer.evaluate(on, {**wanted, **own}, edited, choice["weights"])
            values |= {f"{head}{metric}": value for metric, value in measured.items()}
            say(f"{name}: {standing(stored.checkpoints(name), place, restored.score)}")
    return configuration.run.name, values


def _of_file(run: Path, file: Path, on: str, wanted: Mapping[str, str], choice: Choice) -> tuple[str, dict[str, float]]:
    """Return the name of a run, and what its trainers measure on a file; the data of the run are not read."""
    configuration, values = open_stored(run)[0], dict[str, float]()
    for name in configuration.trainers:
        model = load(run, name, log=_warn, **choice)
        measured = model.evaluate(rows_of(configuration, name, file, on), {**wanted, **model.metrics})
        head = "" if len(configuration.trainers) == 1 else f"{name}."
        values |= {f"{head}{metric}": value for metric, value in measured.items()}
        say(f"{name}: {standing(model.run.checkpoints(name), model.path, model.checkpoint.score)}")
    return configuration.run.name, values


def _rows_since(
    run: StoredRun, trainers: Collection[str], name: str, journal: Excerpt, found: Checkpoint
) -> Sequence[Row]:
    """Return the rows of a trainer since a checkpoint, from the whole journal if a part of it does not reach there.

    Raises SigmaStateError if that is wrong: no other checkpoint is tried.
    """
    if journal.reaches(found):
        return journal.rows(name)
    try:
        return run.excerpt(trainers, lambda text: None).rows(name)
    except SigmaCheckpointError as error:
        raise SigmaStateError(str(error)) from error


def _restore(
    session: Session,
    known: Callable[[Checkpoint], Sequence[Row]],
    accepted: Log | None,
    place: Path,
    found: Checkpoint,
) -> None:
    """Restore a checkpoint; raise SigmaCheckpointError for one of an abandoned branch, or that does not fit."""
    if is_abandoned(known(found), found.values["clock"]["iteration"], found):
        raise SigmaCheckpointError(f"{place}: is on an abandoned branch. Use a checkpoint of the current one.")
    fit(place, found, session, accepted)


def _warn(text: str) -> None:
    say(f"warning: {text}", "yellow")
