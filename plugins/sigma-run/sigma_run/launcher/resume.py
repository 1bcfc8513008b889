"""``sigma resume`` and ``sigma replay``: resume a run from its newest checkpoint, or replay it and compare."""

from __future__ import annotations

from pathlib import Path

import click

from sigma_kernel.environment import Environment
from sigma_kernel.errors import SigmaConfigError
from sigma_kernel.plugins.catalogue import catalogue
from sigma_kernel.watchers import find_steering_monitor
from sigma_run.config import Configuration, Document, build, override, prepare
from sigma_run.config.building import hush
from sigma_run.config.choosing import rank_checkpoints
from sigma_run.config.location import move_data
from sigma_run.config.stored import changed_plugins, described_in
from sigma_run.config.stores import open_run
from sigma_run.launcher.configured import (
    DATA,
    debug_option,
    parallel_option,
    parse_checkpoint,
    refuse_parallel,
    totals,
    understood,
)
from sigma_run.launcher.measured import differing
from sigma_run.launcher.output import document, json_option, say, toml
from sigma_run.launcher.run import train
from sigma_run.launcher.showing import add_monitors, shows, tell
from sigma_run.launcher.studies import resume_study
from sigma_run.study.folder import is_study

FIXED = ("run.seed", "run.precision", "run.folder", "run.name")


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a setting (repeatable).")
@click.option("--backend", metavar="NAME", help="Resume on this backend, within its tolerance.")
@debug_option
@DATA
@click.option("--epochs", metavar="N", help="Train N epochs in total, or inf.")
@click.option(
    "--checkpoint", metavar="N|NAME|best", type=parse_checkpoint, help="Rewind to this checkpoint first, on a branch."
)
@click.option("--monitor", "monitors", metavar="NAME", multiple=True, help="Add this monitor (repeatable).")
@click.option("--paused", is_flag=True, help="Stay paused until a monitor sends a command.")
@click.option("--who", default="", metavar="NAME", help="Who resumes it, for the journal.")
@parallel_option
@click.option("--quiet", is_flag=True, help="Print errors only.")
@json_option
def resume(
    run: Path,
    overrides: tuple[str, ...],
    backend: str | None,
    data: Path | None,
    epochs: str | None,
    checkpoint: int | str | None,
    monitors: tuple[str, ...],
    paused: bool,
    who: str,
    parallel: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Resume the run in the folder RUN, with the same bits as if it had never ended.

    The newest intact checkpoint is restored, and the commands journalled after it are applied again. A paused run
    continues. Members of a study that have not ended continue, or begin.
    """
    if is_study(run):
        changes = (overrides, backend, data, epochs, checkpoint, paused, who or None)
        return resume_study(run, monitors, changes, parallel, as_json, quiet)
    refuse_parallel(parallel)
    described = _change(described_in(run), overrides)
    if backend is not None:
        described = override(described, f"run.backend={toml(backend)}", "--backend")
    for assignment in (more := totals(described, epochs)):
        described = override(described, assignment, "--epochs")
    described, places = (described, []) if data is None else move_data(understood(described), data)
    edits = [*overrides, *([] if backend is None else [f"run.backend={backend}"]), *more, *places]
    configuration = understood(add_monitors(described, monitors))
    with open_environment(configuration, run) as environment:
        check_steered(environment, quiet, paused)
        environment.resume(run.absolute(), edits, _warn, paused, who)
        if checkpoint is not None:
            _rewind(environment, run, checkpoint)
        if not quiet:
            for name, trainer in environment.trainers.items():
                say(f"{name}: resumed from iteration {trainer.session.moment.iteration}")
        return train(environment, as_json, quiet)


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@DATA
@click.option("--check", is_flag=True, help="Exit with code 1 if the results differ.")
@click.option("--quiet", is_flag=True, help="Print errors and differences only.")
@json_option
def replay(run: Path, data: Path | None, check: bool, quiet: bool, as_json: bool) -> int:
    """Replay the run in the folder RUN, with the commands of its journal, and compare the results.

    Nothing is written, and no commands are accepted: of the run's monitors, only those that print are started. The
    first step that differs is reported, with the addresses that differ, or the first measured value that does.
    """
    configuration = understood(described_in(run))
    if data is not None:
        configuration = understood(move_data(configuration, data)[0])
    with open_environment(configuration, run) as environment:
        if quiet:
            hush(environment)
        summary, differs = environment.replay(run.absolute(), shows(quiet))
        differs = {**differing(run, environment, (lambda text: None) if quiet else _warn), **differs}
    for name, where in differs.items():
        say(f"{name}: replay differs. At {where}.", "red")
    if not quiet:
        tell(summary)
    if not (quiet or differs):
        say(f"{run}: replay is identical")
    if as_json:
        document(summary.to_dict())
    return 1 if check and differs else 0


def open_environment(configuration: Configuration, run: Path) -> Environment:
    """Build and prepare the environment of a run; warns about plugins whose version has changed."""
    environment = build(configuration, catalogue())
    environment.begin_from(run)
    prepare(configuration, environment)
    for line in changed_plugins(open_run(run, _warn), _warn):
        _warn(line)
    return environment


def _rewind(environment: Environment, run: Path, checkpoint: int | str) -> None:
    """Rewind each trainer to a checkpoint of the run, after replaying unsaved iterations, which may fail."""
    stored = open_run(run, _warn)
    for name, trainer in environment.trainers.items():
        to = rank_checkpoints(stored, name, checkpoint)[0]
        if trainer.recorder.is_behind:
            trainer.session.replayer.rewind_afterwards(to)
        else:
            environment.rewind(to, trainer=name)


def check_steered(environment: Environment, quiet: bool, paused: bool) -> None:
    """Raise SigmaConfigError if no monitor could end the pause, if there is to be one."""
    steering = find_steering_monitor(environment.catalogue, environment.control)
    monitors = [*steering.values(), *environment.monitors.values()]
    if paused and not any(monitor.steers and not (quiet and monitor.talks) for monitor in monitors):
        raise SigmaConfigError(
            "--paused: no monitor of this run sends commands, so nothing could end the pause. Add one with --monitor, "
            "or leave --paused out."
        )


def _change(described: Document, overrides: tuple[str, ...]) -> Document:
    """Apply overrides of settings that a resume can change."""
    for assignment in overrides:
        _refuse_fixed(assignment)
        described = override(described, assignment)
    return described


def _refuse_fixed(assignment: str) -> None:
    key = assignment.partition("=")[0].strip()
    if key in FIXED:
        raise SigmaConfigError(f"--set {key}: cannot change on resume. Leave it out, or start a new run.")


def _warn(text: str) -> None:
    say(f"warning: {text}", "yellow")
